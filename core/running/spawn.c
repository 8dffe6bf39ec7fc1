#include "core/running/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/running/warden.h"

#define REPORT_FD 4 /* in the child, until exec closes it */
#define ASIDE_FD 32 /* descriptors are first moved here and above, out of each other's way */
#define SIGNAL_MAX 64

/*
 * What a child was doing when it failed; sent through the report pipe with its errno. STEP_FORKED is
 * no failure: it comes with the host's pid.
 */
enum step {
	STEP_FORKED,
	STEP_WARDEN,
	STEP_DESCRIPTORS,
	STEP_SESSION,
	STEP_LIMITS,
	STEP_IDENTITY,
	STEP_PARENT,
	STEP_EXEC,
};

static const char *const step_texts[] = {
	[STEP_WARDEN] = "cannot start its warden",
	[STEP_DESCRIPTORS] = "cannot set up descriptors",
	[STEP_SESSION] = "cannot start a session",
	[STEP_LIMITS] = "cannot set limits",
	[STEP_IDENTITY] = "cannot take the caller's ids and rights",
	[STEP_PARENT] = "cannot tie its life to its parent",
	[STEP_EXEC] = "cannot execute it",
};

struct report {
	int step;
	int value; /* an errno, or a pid */
};

/* All that the child needs, made before fork. */
struct plan {
	const struct spawn_request *request;
	pid_t warden; /* set between the forks */
	bool switch_identity;
	int null_fd, output_fd, socket_fd, control_fd, report_fd;
	struct rlimit files, memory;        /* rlim_max 0: leave alone */
	char memory_kib[24], processes[24]; /* for the warden */
};

int spawn_check_identity(const struct identity *who, struct fail *why)
{
	if (geteuid() == 0 || who->uid == geteuid())
		return 0;
	return fail_set(why, -EACCES,
		"cannot run a tool as uid %u: pegfs runs as uid %u, and only root may act for others; "
		"run pegfs as root, or call it as uid %u",
		(unsigned)who->uid, (unsigned)geteuid(), (unsigned)geteuid());
}

/* ---- the child: async-signal-safe calls only, between fork and exec */

/*
 * Makes the descriptor table 0 = null, 1 and 2 = out, 3 = socket, 4 = the report pipe until exec.
 * They are moved aside first: each may lie where another is to go.
 */
static int set_descriptors(struct plan *plan, int out_fd, int socket_fd, size_t more)
{
	int sources[5 + SPAWN_FDS_MAX] = { plan->report_fd, plan->null_fd, out_fd, out_fd,
		socket_fd };
	int targets[5 + SPAWN_FDS_MAX] = { REPORT_FD, 0, 1, 2, SPAWN_SOCKET_FD };
	for (size_t i = 0; i < more; i++) {
		sources[5 + i] = plan->request->fds[i];
		targets[5 + i] = SPAWN_FDS_AT + (int)i;
	}
	for (size_t i = 0; i < 5 + more; i++) {
		sources[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, ASIDE_FD);
		if (sources[i] < 0)
			return -1;
	}
	/* The report pipe first, so that the failure of a later step still finds it. */
	for (size_t i = 0; i < 5 + more; i++)
		if (dup3(sources[i], targets[i], i == 0 ? O_CLOEXEC : 0) < 0)
			return -1;
	plan->report_fd = REPORT_FD;
	return (int)syscall(SYS_close_range, SPAWN_FDS_AT + (unsigned)more, ~0U, 0);
}

static void reset_signals(void)
{
	const struct sigaction by_default = { .sa_handler = SIG_DFL };
	for (int signal = 1; signal <= SIGNAL_MAX; signal++)
		sigaction(signal, &by_default, NULL); /* SIGKILL and SIGSTOP refuse: no harm */
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_limit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	return limit->rlim_max == 0 ? 0 : setrlimit(resource, limit);
}

/*
 * A core dump would hold parameters and secrets (A21). One byte rather than none, where that is
 * allowed: Linux writes no file then either, and of the two only 1 keeps it from feeding a
 * core_pattern that is a pipe.
 */
static int forbid_core_dumps(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return -1;
	if (limit.rlim_max > 1)
		limit.rlim_max = 1;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_CORE, &limit);
}

static int set_limits(const struct plan *plan)
{
	if (forbid_core_dumps() < 0 || set_limit(RLIMIT_NOFILE, &plan->files) < 0)
		return -1;
	return set_limit(RLIMIT_DATA, &plan->memory);
}

/* When the machine runs out of memory, a tool goes before pegfs does. Best effort: it may be there. */
static void offer_to_oom_killer(void)
{
	static const char score[] = "500";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, score, sizeof(score) - 1) < 0)
		errno = 0;
	if (fd >= 0)
		close(fd);
}

/*
 * What root gets at execve(2) is the bounding set (capabilities(7)). For others it means nothing,
 * since no_new_privs is set: there it is left alone where this process may not change it.
 */
static int limit_bounding_set(const struct identity *who)
{
	for (int cap = 0; cap < 64; cap++) {
		int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			break; /* behind the last one */
		if (has && !(who->caps >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 &&
			who->uid == 0)
			return -1;
	}
	return 0;
}

/* Nothing is inherited: neither what this process was given (AmbientCapabilities=) nor more than caps. */
static int drop_capabilities(uint64_t caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(caps >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_capset, &header, data);
}

/*
 * Whoever has a session keyring (keyrings(7)) may use what is in it. Where keyctl(2) is missing or
 * denied, it is so to the child as well.
 */
static int leave_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return 0;
	return errno == ENOSYS || errno == EPERM || geteuid() != 0 ? 0 : -1;
}

static int take_identity(const struct plan *plan)
{
	const struct identity *who = plan->request->who;
	if (leave_keyring() < 0)
		return -1;
	if (limit_bounding_set(who) < 0)
		return -1;
	if (plan->switch_identity) {
		if (setgroups(who->group_count, who->groups) < 0 ||
			setresgid(who->gid, who->gid, who->gid) < 0 ||
			setresuid(who->uid, who->uid, who->uid) < 0)
			return -1;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return drop_capabilities(who->caps);
}

/* After the ids: changing them clears the signal. The parent may have died before it was set. */
static int tie_to_parent(const struct plan *plan)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	if (getppid() == plan->warden)
		return 0;
	errno = ESRCH;
	return -1;
}

static int exec_program(const struct spawn_request *request)
{
	/* execve(2) takes pointers to non-const for historical reasons and changes nothing. */
	union {
		const char *const *given;
		char *const *wanted;
	} argv = { .given = request->argv }, env = { .given = request->env };
	return execve(request->argv[0], argv.wanted, env.wanted);
}

static _Noreturn void run_host(struct plan *plan)
{
	struct report report = { .step = STEP_DESCRIPTORS };
	if (set_descriptors(plan, plan->output_fd, plan->socket_fd, plan->request->fd_count) < 0)
		goto failed;
	report.step = STEP_SESSION;
	if (setsid() < 0)
		goto failed;
	umask(022);
	report.step = STEP_LIMITS;
	if (set_limits(plan) < 0)
		goto failed;
	offer_to_oom_killer();
	report.step = STEP_IDENTITY;
	if (!plan->request->keeps_rights && take_identity(plan) < 0)
		goto failed;
	report.step = STEP_PARENT;
	if (tie_to_parent(plan) < 0)
		goto failed;
	report.step = STEP_EXEC;
	/* "/" and not somewhere else: a working directory may lie on a mount of ours, and then this
	   process would wait for its parent, which waits for it. The host goes where it should. */
	if (chdir("/") < 0)
		goto failed;
	reset_signals();
	exec_program(plan->request);
failed:
	report.value = errno;
	if (write(plan->report_fd, &report, sizeof(report)) < 0)
		_exit(126);
	_exit(127);
}

/* Digits of pid at the end of text; returns where they begin. snprintf is not async-signal-safe. */
static char *put_pid(char *text, size_t size, pid_t pid)
{
	char *at = text + size - 1;
	*at = '\0';
	for (; pid > 0; pid /= 10)
		*--at = (char)('0' + pid % 10);
	return at;
}

static int fork_host(struct plan *plan)
{
	/* Set before there is anybody whose children could be missed; execve(2) keeps it. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || setsid() < 0)
		return -1;
	plan->warden = getpid();
	pid_t pid = fork();
	if (pid == 0)
		run_host(plan);
	return pid;
}

static _Noreturn void run_warden(struct plan *plan)
{
	static const char *const wrappers[] = { "0", "1", "2" };
	struct report report = { .step = STEP_FORKED, .value = fork_host(plan) };
	pid_t host = report.value;
	char digits[16];
	const char *const argv[] = { plan->request->warden, put_pid(digits, sizeof(digits), host),
		plan->memory_kib, plan->processes, wrappers[plan->request->wrappers], NULL };
	static const char *const env[] = { NULL };
	struct spawn_request warden = { .argv = argv, .env = env };
	if (host > 0 && write(plan->report_fd, &report, sizeof(report)) == sizeof(report) &&
		set_descriptors(plan, plan->null_fd, plan->control_fd, 0) == 0 && chdir("/") == 0) {
		reset_signals();
		exec_program(&warden);
	}
	report = (struct report){ .step = STEP_WARDEN, .value = errno };
	if (host > 0)
		kill(host, SIGKILL);
	if (write(plan->report_fd, &report, sizeof(report)) < 0)
		_exit(126);
	_exit(127);
}

/* ---- the parent */

/* Lowers a limit to `wanted`, never above what this process may have. */
static int plan_limit(__rlimit_resource_t resource, uint64_t wanted, struct rlimit *limit)
{
	if (wanted == 0)
		return 0;
	if (getrlimit(resource, limit) < 0)
		return -errno;
	if (limit->rlim_max > wanted)
		limit->rlim_max = (rlim_t)wanted;
	limit->rlim_cur = limit->rlim_max;
	return 0;
}

static int plan_limits(const struct spawn_request *request, struct plan *plan, struct fail *why)
{
	if (plan_limit(RLIMIT_NOFILE, request->files_max, &plan->files) < 0 ||
		plan_limit(RLIMIT_DATA, request->memory_max, &plan->memory) < 0)
		return fail_errno(why, "cannot read this process's limits");
	/* Not RLIMIT_NPROC: that counts all that the user runs anywhere, threads included. */
	snprintf(plan->memory_kib, sizeof(plan->memory_kib), "%llu",
		(unsigned long long)request->memory_max / 1024);
	snprintf(plan->processes, sizeof(plan->processes), "%llu",
		(unsigned long long)request->processes_max);
	return 0;
}

/* fork(2) with all signals blocked, so that no handler of ours runs in the child. */
static pid_t fork_warden(struct plan *plan)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid == 0)
		run_warden(plan);
	int error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

/* Reads until both children have executed their programs. The host's pid, or *why. */
static pid_t await_exec(int report_fd, const char *program, struct fail *why)
{
	pid_t pid = -1;
	for (;;) {
		struct report report;
		ssize_t got = read(report_fd, &report, sizeof(report));
		if (got < 0 && errno == EINTR)
			continue;
		if (got != (ssize_t)sizeof(report))
			break;
		if (report.step == STEP_FORKED)
			pid = report.value;
		else
			fail_set(why, -report.value, "cannot start '%s': %s: %s", program,
				step_texts[report.step], strerror(report.value));
	}
	if (pid < 0)
		fail_set(why, -EIO, "cannot start '%s': its warden ended", program);
	return pid;
}

/* Both ends of what the child talks through; close-on-exec, ours non-blocking. */
struct channels {
	int near[3], far[3]; /* socket, control, output */
};

static int open_channels(struct channels *channels, struct fail *why)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	int pair[2];
	for (size_t i = 0; i < 3; i++) {
		int failed = i < 2 ? socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, pair)
				   : pipe2(pair, O_CLOEXEC);
		if (failed < 0)
			return fail_errno(why, "cannot open a channel to a process");
		channels->near[i] = pair[0];
		channels->far[i] = pair[1];
		if (io_set_nonblock(pair[0], true) < 0)
			return fail_set(why, -EIO, "cannot make a channel non-blocking");
	}
	return 0;
}

static void close_channels(int fds[3])
{
	for (size_t i = 0; i < 3; i++)
		auto_close_fd(&fds[i]);
}

static int start(const struct spawn_request *request, struct channels *channels,
	struct spawn_child *child, struct fail *why)
{
	struct plan plan = { .request = request,
		/* Root of a user namespace, or with few capabilities, cannot always switch to what it is. */
		.switch_identity = geteuid() == 0 && !identity_is_self(request->who),
		.socket_fd = channels->far[0],
		.control_fd = channels->far[1],
		.output_fd = channels->far[2] };
	if (plan_limits(request, &plan, why) < 0)
		return why->code;
	/* /dev/stdout in the child opens the pipe by its inode, which is ours. */
	if (plan.switch_identity &&
		fchown(plan.output_fd, request->who->uid, request->who->gid) < 0)
		return fail_errno(why, "cannot give a pipe to uid %u", (unsigned)request->who->uid);
	auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return fail_errno(why, "cannot open /dev/null");
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return fail_errno(why, "cannot open a pipe");
	auto_close int report_fd = report[0];
	plan.null_fd = null_fd;
	plan.report_fd = report[1];
	child->warden_pid = fork_warden(&plan);
	int error = errno;
	close(report[1]);
	if (child->warden_pid < 0)
		return fail_set(
			why, -error, "cannot fork for '%s': %s", request->argv[0], strerror(error));
	child->pid = await_exec(report_fd, request->argv[0], why);
	return why->code;
}

int spawn_child(const struct spawn_request *request, struct spawn_child *child, struct fail *why)
{
	struct channels channels = { .near = { -1, -1, -1 }, .far = { -1, -1, -1 } };
	*child = (struct spawn_child)SPAWN_CHILD_INIT;
	if (spawn_check_identity(request->who, why) == 0 && open_channels(&channels, why) == 0)
		start(request, &channels, child, why);
	close_channels(channels.far);
	if (why->code == 0) {
		child->socket_fd = channels.near[0];
		child->control_fd = channels.near[1];
		child->output_fd = channels.near[2];
		return 0;
	}
	close_channels(channels.near); /* at which a warden that runs ends */
	while (child->warden_pid > 0 && waitpid(child->warden_pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	*child = (struct spawn_child)SPAWN_CHILD_INIT;
	return why->code;
}
