/*
 * Runs a tool host where its caller lives: in the namespaces, the cgroup and below the root directory
 * of a container, with the caller's ids and no more capabilities than it has.
 *
 *     enter NAME=VALUE... -- PROGRAM ARGUMENT...
 *
 * It is started by pegfs as root, with the descriptors that core/running/anchor.c has opened. There is
 * a root in the container who may be hostile, and some may trace every process that they see. So the
 * order matters:
 *
 * 1. This program is executed afresh: there is nothing of the daemon's memory in it.
 * 2. It executes a sealed copy of itself, which lives in memory. Who reopens /proc/PID/exe of a process
 *    of ours to write to it gets that copy, not the file from which the next call is started; and since
 *    it is a static program, no library of this system is mapped either.
 * 3. Everything is joined and given up, down to the caller's rights, while this process is still in
 *    the daemon's pid namespace, where nobody in the container can see it.
 * 4. Only then it forks: the child is the first process that shows in there, and it has no right that
 *    the caller lacks, and no descriptor but the host's four.
 *
 *     enter            waits, in the daemon's pid namespace and with no right that the caller lacks
 *       enter          in there: the parent of what the tool leaves behind, so that the warden finds it
 *         PROGRAM      the host: 0 reads nothing, 1 and 2 are the log, 3 the daemon, 4 the script
 *
 * Of the container's file system nothing but its root directory is touched before the rights are given
 * up.
 */
#include "core/host/enter/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT_FD 4
#define FAILED 125
#define SEALED "sealed" /* the first argument of the copy */

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U /* Linux 6.3, where a memory file may be barred from being executed */
#endif

void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vdprintf(2, format, args);
	va_end(args);
	_exit(FAILED);
}

void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 1;
	while (fd >= 0 && got > 0 && len < size - 1) {
		got = read(fd, text + len, size - 1 - len);
		len += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
}

/* ---- copies in memory, which nobody can change */

static int seal(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("pegfs-enter", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("pegfs-enter", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ssize_t sent = from < 0 || fd < 0 ? -1 : 1;
	while (sent > 0)
		sent = sendfile(fd, from, NULL, 1 << 20);
	if (sent < 0 || fcntl(fd, F_ADD_SEALS,
				F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		die("cannot copy '%s' into memory: %s\n", path, strerror(errno));
	close(from);
	return fd;
}

static _Noreturn void run_sealed(char **argv, char **environment)
{
	int fd = seal("/proc/self/exe");
	size_t count = 0;
	while (argv[count])
		count++;
	char **words = calloc(count + 2, sizeof(*words));
	char name[] = "pegfs-enter", sealed[] = SEALED;
	if (!words)
		die("there is no memory\n");
	words[0] = name; /* the container need not know the path */
	words[1] = sealed;
	memcpy(words + 2, argv + 1, count * sizeof(*words));
	fexecve(fd, words, environment);
	die("cannot execute a copy of '%s': %s\n", argv[0], strerror(errno));
}

/* ---- the arguments */

static long number_at(const char **at)
{
	char *end;
	errno = 0;
	long number = strtol(*at, &end, 10);
	if (errno || end == *at || number < 0)
		die("enter: '%s' is no number\n", *at);
	*at = *end == ',' ? end + 1 : end;
	return number;
}

static void take_word(struct plan *plan, const char *name, size_t name_len, const char *value)
{
#define IS(word) (name_len == strlen(word) && strncmp(name, word, name_len) == 0)
	const char *at = value;
	if (IS("namespaces"))
		while (*at && plan->namespace_count < NAMESPACES_MAX)
			plan->namespaces[plan->namespace_count++] = (int)number_at(&at);
	else if (IS("groups"))
		while (*at && plan->group_count < GROUPS_MAX)
			plan->groups[plan->group_count++] = (gid_t)number_at(&at);
	else if (IS("user"))
		plan->user_fd = (int)number_at(&at);
	else if (IS("root"))
		plan->root_fd = (int)number_at(&at);
	else if (IS("uid"))
		plan->uid = (uid_t)number_at(&at);
	else if (IS("gid"))
		plan->gid = (gid_t)number_at(&at);
	else if (IS("caps"))
		plan->caps = strtoull(value, NULL, 16);
	else if (IS("limits"))
		plan->limits = value;
	else if (IS("cgroups"))
		plan->cgroups = value;
	else if (IS("label"))
		plan->label = value;
	else if (IS("script"))
		plan->script = value;
	else if (IS("dir"))
		plan->dir = value;
	else
		die("enter: what is '%s'?\n", name);
#undef IS
}

static void read_plan(struct plan *plan, char **argv)
{
	*plan = (struct plan){ .user_fd = -1, .root_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1 };
	for (argv += 2; *argv && strcmp(*argv, "--") != 0; argv++) {
		const char *value = strchr(*argv, '=');
		if (!value)
			die("enter: started by pegfs only\n");
		take_word(plan, *argv, (size_t)(value - *argv), value + 1);
	}
	plan->program = *argv ? argv + 1 : argv;
	if (!*plan->program || !plan->script || !plan->dir || !plan->cgroups || !plan->limits ||
		!plan->label || plan->root_fd < 0 || plan->uid == (uid_t)-1 ||
		plan->gid == (gid_t)-1)
		die("enter: started by pegfs only\n");
}

/* What the container is not to read in /proc/PID/cmdline: paths of this system. */
static void wipe_words(struct plan *plan, char **argv)
{
	plan->dir = strdup(plan->dir);
	if (!plan->dir)
		die("there is no memory\n");
	plan->cgroups = plan->label = plan->limits = plan->script = "";
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++)
		memset(*argv, 0, strlen(*argv));
}

/* ---- the three processes */

/* Ends as its child did. */
static _Noreturn void end_like(pid_t child)
{
	int status = 0;
	for (pid_t pid = 0; pid != child; pid = waitpid(-1, &status, 0))
		if (pid < 0 && errno != EINTR)
			_exit(FAILED);
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	kill(getpid(), WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}

/* A pipe that has ended: to read it gives nothing. /dev/null of here is not for others to chmod(2). */
static void read_nothing(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[0], 0) < 0)
		die("cannot open a pipe: %s\n", strerror(errno));
	close(ends[0]);
	close(ends[1]);
}

static _Noreturn void run_program(const struct plan *plan)
{
	char *name = plan->program[0];
	if (chdir("/") < 0 || access(plan->dir, R_OK | X_OK) < 0)
		die("The tool's files are not at '%s' where its caller lives: %s. Mount the tree there, "
		    "or say with --at of `pegfs mount` where it is.\n",
			plan->dir, strerror(errno));
	execvp(name, plan->program);
	if (errno == ENOENT)
		die("There is no '%s' where the caller lives (in a directory of PATH=%s), and this tool "
		    "needs it: install it in that container%s, or let calls run beside pegfs: "
		    "`pegfs mount --run-in daemon`.\n",
			name, getenv("PATH"), strcmp(name, "node") == 0 ? " (18 or newer)" : "");
	die("'%s' cannot be executed where the caller lives: %s\n", name, strerror(errno));
}

static _Noreturn void run_inside(const struct plan *plan, int alive_fd)
{
	/* Its parent is in another pid namespace: that it lives is told by the other end of a pipe. */
	char byte;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
		read(alive_fd, &byte, 1) == 0)
		die("cannot tie a process to its parent\n");
	pid_t self = getpid(), pid = fork();
	if (pid < 0)
		die("cannot start a process where the caller lives: %s\n", strerror(errno));
	if (pid == 0) {
		/* In a group of its own, for that of its parents is not of this pid namespace. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != self || setsid() < 0)
			die("cannot tie a process to its parent\n");
		syscall(SYS_close_range, SCRIPT_FD + 1, ~0U, 0);
		run_program(plan);
	}
	syscall(SYS_close_range, 0, ~0U, 0);
	end_like(pid);
}

static pid_t fork_inside(const struct plan *plan)
{
	int alive[2];
	if (pipe2(alive, O_CLOEXEC | O_NONBLOCK) < 0)
		die("cannot open a pipe: %s\n", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		die("cannot start a process where the caller lives: %s\n",
			errno == ENOMEM ? "its pid namespace has ended" : strerror(errno));
	if (pid == 0) {
		close(alive[1]);
		run_inside(plan, alive[0]);
	}
	/* Only now, since the child asks by it. */
	syscall(SYS_close_range, 0, (unsigned)alive[1] - 1, 0);
	syscall(SYS_close_range, (unsigned)alive[1] + 1, ~0U, 0);
	return pid;
}

int main(int argc, char **argv, char **environment)
{
	if (argc < 3)
		die("enter: started by pegfs only\n");
	if (strcmp(argv[1], SEALED) != 0)
		run_sealed(argv, environment);
	struct plan plan;
	read_plan(&plan, argv);
	prctl(PR_SET_NAME, "pegfs-enter");
	/* Nobody may look into it without a right over the daemon's own user namespace. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		die("cannot hide a process: %s\n", strerror(errno));
	int script_fd = seal(plan.script);
	if (dup2(script_fd, SCRIPT_FD) < 0)
		die("cannot hand over the script: %s\n", strerror(errno));
	close(script_fd);
	lower_limits(plan.limits);
	leave_keyring();
	join_label(plan.label);
	join_cgroups(plan.cgroups);
	join_namespaces(&plan);
	become(&plan);
	wipe_words(&plan, argv);
	syscall(SYS_close_range, SCRIPT_FD + 1, ~0U, 0);
	read_nothing();
	end_like(fork_inside(&plan));
}
