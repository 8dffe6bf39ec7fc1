#include "core/running/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
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

#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

#define REPORT_FD 4 /* in the child, until exec closes it */
#define ASIDE_FD 10 /* descriptors are first moved here and above, out of each other's way */
#define SIGNAL_MAX 64

/* What the child was doing when it failed; sent through the report pipe with its errno. */
enum step { STEP_DESCRIPTORS, STEP_SESSION, STEP_LIMITS, STEP_IDENTITY, STEP_PARENT, STEP_EXEC };

static const char *const step_texts[] = {
	[STEP_DESCRIPTORS] = "cannot set up descriptors",
	[STEP_SESSION] = "cannot start a session",
	[STEP_LIMITS] = "cannot set limits",
	[STEP_IDENTITY] = "cannot take the caller's ids",
	[STEP_PARENT] = "cannot tie its life to its parent",
	[STEP_EXEC] = "cannot execute it",
};

struct report {
	int step;
	int error;
};

/* All that the child needs, made before fork. */
struct plan {
	const struct spawn_request *request;
	pid_t parent;
	bool switch_identity;
	int null_fd, output_fd, socket_fd, report_fd;
	struct rlimit files, processes, memory; /* rlim_max 0: leave alone */
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

static int set_descriptors(struct plan *plan)
{
	int *sources[] = { &plan->null_fd, &plan->output_fd, &plan->socket_fd, &plan->report_fd };
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		int moved = fcntl(*sources[i], F_DUPFD_CLOEXEC, ASIDE_FD);
		if (moved < 0)
			return -1;
		*sources[i] = moved;
	}
	/* The report pipe first, so that the failure of a later step still finds it. */
	if (dup3(plan->report_fd, REPORT_FD, O_CLOEXEC) < 0)
		return -1;
	plan->report_fd = REPORT_FD;
	if (dup2(plan->null_fd, 0) < 0 || dup2(plan->output_fd, 1) < 0 ||
		dup2(plan->output_fd, 2) < 0 || dup2(plan->socket_fd, SPAWN_SOCKET_FD) < 0)
		return -1;
	return (int)syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0);
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

static int set_limits(const struct plan *plan)
{
	/* A core file would hold parameters and secrets (A21). */
	const struct rlimit no_core = { .rlim_cur = 0, .rlim_max = 0 };
	if (setrlimit(RLIMIT_CORE, &no_core) < 0 || set_limit(RLIMIT_NOFILE, &plan->files) < 0)
		return -1;
	if (set_limit(RLIMIT_NPROC, &plan->processes) < 0)
		return -1;
	return set_limit(RLIMIT_DATA, &plan->memory);
}

static int take_identity(const struct plan *plan)
{
	const struct identity *who = plan->request->who;
	if (plan->switch_identity) {
		if (setgroups(who->group_count, who->groups) < 0 ||
			setresgid(who->gid, who->gid, who->gid) < 0 ||
			setresuid(who->uid, who->uid, who->uid) < 0)
			return -1;
	}
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* After the ids: changing them clears the signal. The parent may have died before it was set. */
static int tie_to_parent(const struct plan *plan)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -1;
	if (getppid() == plan->parent)
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

static _Noreturn void run_child(struct plan *plan)
{
	struct report report = { .step = STEP_DESCRIPTORS };
	if (set_descriptors(plan) < 0)
		goto failed;
	report.step = STEP_SESSION;
	if (setsid() < 0)
		goto failed;
	umask(022);
	report.step = STEP_LIMITS;
	if (set_limits(plan) < 0)
		goto failed;
	report.step = STEP_IDENTITY;
	if (take_identity(plan) < 0)
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
	report.error = errno;
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
		plan_limit(RLIMIT_NPROC, request->processes_max, &plan->processes) < 0 ||
		plan_limit(RLIMIT_DATA, request->memory_max, &plan->memory) < 0)
		return fail_errno(why, "cannot read this process's limits");
	return 0;
}

/* fork(2) with all signals blocked, so that no handler of ours runs in the child. */
static pid_t fork_child(struct plan *plan)
{
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	plan->parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		run_child(plan);
	int error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

/* Waits until exec closed the pipe, or for the report of what failed before it. */
static int await_exec(int report_fd, pid_t pid, const char *program, struct fail *why)
{
	struct report report = { .step = STEP_EXEC };
	ssize_t got;
	do {
		got = read(report_fd, &report, sizeof(report));
	} while (got < 0 && errno == EINTR);
	if (got == 0)
		return 0;
	int error = got == (ssize_t)sizeof(report) ? report.error : EIO;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return fail_set(why, -error, "cannot start '%s': %s: %s", program, step_texts[report.step],
		strerror(error));
}

int spawn_child(const struct spawn_request *request, struct spawn_child *child, struct fail *why)
{
	if (spawn_check_identity(request->who, why) < 0)
		return why->code;
	struct plan plan = { .request = request, .switch_identity = geteuid() == 0 };
	if (plan_limits(request, &plan, why) < 0)
		return why->code;

	int pair[2], output[2], report[2];
	auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return fail_errno(why, "cannot open /dev/null");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fail_errno(why, "cannot create a socket for '%s'", request->argv[0]);
	auto_close int near_fd = pair[0], far_fd = pair[1];
	if (pipe2(output, O_CLOEXEC) < 0)
		return fail_errno(why, "cannot create a pipe for '%s'", request->argv[0]);
	auto_close int output_fd = output[0], write_fd = output[1];
	if (pipe2(report, O_CLOEXEC) < 0)
		return fail_errno(why, "cannot create a pipe for '%s'", request->argv[0]);
	auto_close int report_fd = report[0], report_far_fd = report[1];
	if (io_set_nonblock(near_fd, true) < 0 || io_set_nonblock(output_fd, true) < 0)
		return fail_set(why, -EIO, "cannot make the descriptors of '%s' non-blocking",
			request->argv[0]);

	/* /dev/stdout in the child opens the pipe by its inode, which is ours. */
	if (plan.switch_identity && fchown(write_fd, request->who->uid, request->who->gid) < 0)
		return fail_errno(why, "cannot give a pipe to uid %u", (unsigned)request->who->uid);

	plan.null_fd = null_fd;
	plan.output_fd = write_fd;
	plan.socket_fd = far_fd;
	plan.report_fd = report_far_fd;
	pid_t pid = fork_child(&plan);
	if (pid < 0)
		return fail_errno(why, "cannot fork for '%s'", request->argv[0]);
	close(take_fd(&report_far_fd));
	if (await_exec(report_fd, pid, request->argv[0], why) < 0)
		return why->code;
	*child = (struct spawn_child){
		.pid = pid, .socket_fd = take_fd(&near_fd), .output_fd = take_fd(&output_fd)
	};
	return 0;
}

/* ---- environment */

const char *spawn_get_env(const char *const *env, const char *name)
{
	size_t len = strlen(name);
	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

char *spawn_find_program(const char *name, const char *const *env, struct fail *why)
{
	const char *path = spawn_get_env(env, "PATH");
	if (!path)
		path = USUAL_PATH;
	for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int len = (int)strcspn(at, ":");
		struct stat st;
		auto_free char *file = xasprintf("%.*s/%s", len, at, name);
		if (len > 0 && *at == '/' && access(file, X_OK) == 0 && stat(file, &st) == 0 &&
			S_ISREG(st.st_mode))
			return take_ptr(&file);
	}
	fail_set(why, -ENOENT,
		"'%s' is not installed: it is in none of the directories of PATH (%s)", name, path);
	return NULL;
}
