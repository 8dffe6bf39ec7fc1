#include "core/running/identity.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t own_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	if (syscall(SYS_capget, &header, data) < 0)
		return 0;
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

void identity_self(struct identity *identity)
{
	memset(identity, 0, sizeof(*identity));
	identity->uid = geteuid();
	identity->gid = getegid();
	int count = getgroups(IDENTITY_GROUPS_MAX, identity->groups);
	identity->group_count = count > 0 ? (size_t)count : 0;
	identity->caps = own_capabilities();
	identity->place = place_here();
}

bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->caps == b->caps &&
	       place_equal(&a->place, &b->place) && a->group_count == b->group_count &&
	       memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)) == 0;
}

bool identity_is_self(const struct identity *who)
{
	struct identity self;
	identity_self(&self);
	return getuid() == self.uid && getgid() == self.gid && who->uid == self.uid &&
	       who->gid == self.gid && who->group_count == self.group_count &&
	       memcmp(who->groups, self.groups, self.group_count * sizeof(*self.groups)) == 0;
}

static int refuse_mixed(struct fail *why)
{
	return fail_set(why, -EACCES,
		"the call file was opened at one place and written to at another (other containers, "
		"sandboxes or cgroups), so nobody can tell where the tool is to run; open it where "
		"you write to it");
}

static int refuse_elsewhere(const struct identity *caller, struct fail *why)
{
	char parts[128];
	if (!caller->place.is_known)
		return fail_set(why, -EACCES,
			"cannot tell where the caller lives (it is outside of the daemon's pid namespace, "
			"or hides from it, or the daemon's /proc is not its own), and so with which "
			"rights the tool may run; run pegfs in the pid namespace of all callers (the "
			"host's), or mount with --call-uid UID, as which all calls are run then");
	if (caller->place.differs & PLACE_MIXED)
		return refuse_mixed(why);
	place_describe(&caller->place, parts, sizeof(parts));
	return fail_set(why, -EACCES,
		"the caller lives in another container or sandbox than pegfs (other %s), and a tool "
		"that runs here would have more rights than it has; run pegfs in that container, or "
		"mount with --run-in caller (calls run where their caller lives), with --run-in "
		"daemon (they run here, each with its caller's uid) or with --call-uid UID (all "
		"calls run here as that user)",
		parts);
}

int identity_resolve(const struct identity *caller, const struct identity_rules *rules,
	struct identity *who, struct fail *why)
{
	if (rules->has_one) {
		*who = (struct identity){
			.uid = rules->call_uid, .gid = rules->call_gid, .place = caller->place
		};
		return 0;
	}
	*who = *caller;
	if (place_is_here(&caller->place))
		return 0;
	if (!rules->takes_all || !caller->place.is_known ||
		(rules->runs_there && caller->place.differs & PLACE_MIXED))
		return refuse_elsewhere(caller, why);
	if (rules->runs_there)
		return 0;
	who->caps = 0;
	if (caller->uid == 0)
		return fail_set(why, -EACCES,
			"root of another container is not root here: call as another user, or mount "
			"with --call-uid UID, as which all calls are run then");
	return 0;
}
