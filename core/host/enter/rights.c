/* Down to the rights of the caller, and no way back. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/host/enter/enter.h"

static rlim_t lesser(rlim_t a, rlim_t b)
{
	return a < b ? a : b;
}

/* No more than the caller, and no more than pegfs gives every tool. */
void lower_limits(const char *limits)
{
	for (int what = 0; *limits && what < (int)RLIM_NLIMITS; what++) {
		char *end;
		struct rlimit limit;
		rlim_t soft = strtoull(limits, &end, 10);
		rlim_t hard = *end == ':' ? strtoull(end + 1, &end, 10) : soft;
		limits = *end == ',' ? end + 1 : end;
		if (getrlimit((__rlimit_resource_t)what, &limit) < 0)
			die("cannot read a limit: %s\n", strerror(errno));
		limit.rlim_max = lesser(limit.rlim_max, hard);
		limit.rlim_cur = lesser(lesser(limit.rlim_cur, soft), limit.rlim_max);
		if (setrlimit((__rlimit_resource_t)what, &limit) < 0)
			die("cannot set a limit of the caller: %s\n", strerror(errno));
	}
}

/* What the daemon's session keyring holds is at the hands of whoever has it. */
void leave_keyring(void)
{
	/* Where keyctl(2) is missing or denied, it is so to the tool as well. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
		errno != EPERM)
		die("cannot leave the daemon's keyring: %s\n", strerror(errno));
}

static void set_capabilities(uint64_t caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	if (syscall(SYS_capget, &header, data) < 0)
		die("cannot read capabilities: %s\n", strerror(errno));
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(caps >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) < 0)
		die("cannot set capabilities: %s\n", strerror(errno));
}

/* What root gets at execve(2) is the bounding set (capabilities(7)). */
static void limit_bounding_set(uint64_t caps)
{
	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			return; /* behind the last one */
		if (has && !(caps >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			die("cannot give up a capability: %s\n", strerror(errno));
	}
}

/*
 * The ids are set in the daemon's numbers before the user namespace is joined: so they are those of
 * the caller, also where that namespace has no number for them. To join it gives all capabilities in
 * it, of which the caller's stay.
 */
void become(const struct plan *plan)
{
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
		setgroups(plan->group_count, plan->groups) < 0 ||
		setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
		setresuid(plan->uid, plan->uid, plan->uid) < 0 ||
		prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		die("cannot take the caller's ids: %s\n", strerror(errno));
	set_capabilities(
		~(uint64_t)0); /* all that are permitted, which a change of ids puts to rest */
	if (plan->user_fd >= 0 && setns(plan->user_fd, CLONE_NEWUSER) < 0)
		die("cannot join the caller's user namespace: %s\n", strerror(errno));
	/* Only now: a file system that a user has mounted lets nobody in from outside. */
	join_root(plan);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		die("cannot give up ambient capabilities: %s\n", strerror(errno));
	limit_bounding_set(plan->caps);
	set_capabilities(plan->caps);
	/* A change of ids or capabilities may have made it visible again, or not: it is not. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		die("cannot bar the way to more rights: %s\n", strerror(errno));
}
