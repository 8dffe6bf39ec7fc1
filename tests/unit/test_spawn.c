/* What a started process has, and what its starter learns when it cannot be started. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/running/program.h"
#include "core/running/spawn.h"
#include "core/running/warden.h"

static const char *warden(void)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/host/warden/warden", getenv("PEGFS_LIB_DIR"));
	return path;
}

/* Tells the warden nothing more, waits for it, and returns how the child ended. */
static int finish(struct spawn_child *child)
{
	assert_int_equal(waitpid(child->warden_pid, NULL, 0), child->warden_pid);
	struct warden_report report = { .type = -1 };
	assert_int_equal(recv(child->control_fd, &report, sizeof(report), 0), sizeof(report));
	assert_int_equal(report.type, WARDEN_ENDED);
	close(child->socket_fd);
	close(child->output_fd);
	close(child->control_fd);
	return report.status;
}

static const char *const env[] = { "PATH=/usr/bin:/bin", "ONLY=this", NULL };

/* Runs a shell script; returns its output and, in *status, how it ended. */
static void run(const struct identity *who, const char *script, struct buf *out, int *status)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct identity self;
	identity_self(&self);
	struct spawn_request request = { .argv = argv,
		.env = env,
		.warden = warden(),
		.who = who ? who : &self,
		.files_max = 100 };
	struct spawn_child child = SPAWN_CHILD_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(spawn_child(&request, &child, &why), 0);
	assert_int_equal(io_set_nonblock(child.output_fd, false), 0);
	assert_int_equal(io_read_all(child.output_fd, out), 0);
	*status = finish(&child);
}

static void assert_output(const char *script, const char *expected)
{
	auto_buf struct buf out = BUF_INIT(100000);
	int status;
	run(NULL, script, &out, &status);
	assert_string_equal(buf_str(&out), expected);
	assert_true(WIFEXITED(status));
}

static void t12_the_child_has_four_descriptors(void **state)
{
	(void)state;
	/* A descriptor of ours that is not close-on-exec stays here, and one on 3 does no harm. */
	int stray = fcntl(1, F_DUPFD, 50);
	/* 4 is the directory that ls reads. */
	assert_output("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 4 ");
	assert_output("readlink /proc/self/fd/0; readlink /proc/self/fd/3 | cut -c1-7",
		"/dev/null\nsocket:\n");
	assert_output("[ /proc/self/fd/1 -ef /proc/self/fd/2 ] && echo same", "same\n");
	close(stray);
}

static void descriptors_in_each_others_places_are_sorted_out(void **state)
{
	(void)state;
	/* With 0 to 2 closed here, what spawn opens gets these numbers. */
	int saved[3];
	for (int fd = 0; fd < 3; fd++)
		saved[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 60);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	auto_buf struct buf out = BUF_INIT(1000);
	int status;
	run(NULL, "readlink /proc/self/fd/0; echo error >&2; readlink /proc/self/fd/3 | cut -c1-7",
		&out, &status);
	for (int fd = 0; fd < 3; fd++)
		if (saved[fd] >= 0) {
			dup2(saved[fd], fd);
			close(saved[fd]);
		}
	assert_string_equal(buf_str(&out), "/dev/null\nerror\nsocket:\n");
}

static void the_child_has_a_session_and_nothing_blocked(void **state)
{
	(void)state;
	/* Signals 32 and 33 are glibc's own: whoever was started by posix_spawn(3) ignores them. */
	signal(SIGPIPE, SIG_IGN);
	sigset_t blocked, before;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	assert_output("read pid rest </proc/self/stat; set -- $rest; "
		      "[ $5 = $pid ] && [ $4 = $pid ] && echo leader; "
		      "while read -r name value; do case $name in "
		      "SigBlk:|NoNewPrivs:) echo $name$value ;; "
		      "SigIgn:) echo $name$((0x$value & ~0x180000000)) ;; "
		      "esac; done </proc/self/status",
		"leader\nSigBlk:0000000000000000\nSigIgn:0\nNoNewPrivs:1\n");
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static void the_child_has_its_environment_and_limits(void **state)
{
	(void)state;
	assert_output("echo $ONLY; pwd; ulimit -n; ulimit -c; umask", "this\n/\n100\n0\n0022\n");
}

static void r39_root_gives_up_all_its_rights(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct identity who = { .uid = 4242, .gid = 4343, .groups = { 4444 }, .group_count = 1 };
	auto_buf struct buf out = BUF_INIT(1000);
	int status;
	run(&who, "id -u; id -g; id -G; grep -E 'Cap(Prm|Eff)' /proc/self/status | tr -d '\\t'",
		&out, &status);
	assert_string_equal(buf_str(&out), "4242\n4343\n4343 4444\n"
					   "CapPrm:0000000000000000\nCapEff:0000000000000000\n");
}

static void a_program_that_is_missing_is_told(void **state)
{
	(void)state;
	const char *argv[] = { "/nowhere/at all", NULL };
	struct identity self;
	identity_self(&self);
	struct spawn_request request = {
		.argv = argv, .env = env, .warden = warden(), .who = &self
	};
	struct spawn_child child = SPAWN_CHILD_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(spawn_child(&request, &child, &why), -ENOENT);
	assert_string_equal(why.text, "cannot start '/nowhere/at all': cannot execute it: "
				      "No such file or directory");
	assert_int_equal(child.pid, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Whether a process runs; one that has ended and waits to be looked at does not. */
static bool runs(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	auto_buf struct buf command = BUF_INIT(10000);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && io_read_all(fd, &command) == 0 && command.len > 0;
}

static void assert_ends(pid_t pid)
{
	for (int i = 0; i < 200 && runs(pid); i++)
		usleep(10000);
	assert_false(runs(pid));
}

static void start_shell(struct spawn_child *child, const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct identity self;
	identity_self(&self);
	struct spawn_request request = {
		.argv = argv, .env = env, .warden = warden(), .who = &self
	};
	struct fail why = FAIL_INIT;
	assert_int_equal(spawn_child(&request, child, &why), 0);
	assert_int_equal(io_set_nonblock(child->output_fd, false), 0);
}

/* Reads a line with a pid that the child prints. */
static pid_t read_pid(const struct spawn_child *child)
{
	char text[32] = "";
	for (size_t at = 0; at + 1 < sizeof(text) && !strchr(text, '\n'); at++)
		assert_int_equal(read(child->output_fd, text + at, 1), 1);
	return (pid_t)strtol(text, NULL, 10);
}

/* A shell with a grandchild that has left its session, its parent and its output. */
#define FAMILY "(setsid sh -c 'echo $$; exec sleep 60 >/dev/null 2>&1' &) ; "

static void t7_what_has_left_the_session_is_swept(void **state)
{
	(void)state;
	struct spawn_child child;
	start_shell(&child, FAMILY "read x <&3; exit 7");
	pid_t grandchild = read_pid(&child);
	for (int i = 0; i < 200 && !runs(grandchild); i++) /* execve(2) is under way */
		usleep(10000);
	assert_true(runs(grandchild));
	struct warden_order order = { .type = WARDEN_SWEEP };
	send(child.control_fd, &order, sizeof(order), 0);
	struct warden_report report;
	io_set_nonblock(child.control_fd, false);
	assert_int_equal(recv(child.control_fd, &report, sizeof(report), 0), sizeof(report));
	assert_int_equal(report.type, WARDEN_SWEPT);
	assert_int_equal(report.count, 1);
	assert_false(runs(grandchild));
	assert_true(runs(child.pid));
	assert_int_equal(write(child.socket_fd, "x\n", 2), 2);
	assert_int_equal(WEXITSTATUS(finish(&child)), 7);
}

static void t7_what_is_left_at_the_end_is_killed(void **state)
{
	(void)state;
	struct spawn_child child;
	start_shell(&child, FAMILY FAMILY "read x <&3; exit 3");
	pid_t first = read_pid(&child), second = read_pid(&child);
	assert_int_equal(write(child.socket_fd, "x\n", 2), 2);
	assert_int_equal(WEXITSTATUS(finish(&child)), 3);
	assert_false(runs(first) || runs(second));
}

static void t7_a_signal_reaches_all(void **state)
{
	(void)state;
	struct spawn_child child;
	start_shell(&child,
		"(setsid sh -c \"trap 'echo TERM' TERM; echo \\$\\$; sleep 60 & wait\" &);"
		"trap 'echo 11' TERM; read x <&3; wait; sleep 60 & wait");
	read_pid(&child);
	struct warden_order order = { .type = WARDEN_SIGNAL, .signal = SIGTERM };
	send(child.control_fd, &order, sizeof(order), 0);
	usleep(200000);
	order.signal = SIGKILL;
	send(child.control_fd, &order, sizeof(order), 0);
	auto_buf struct buf out = BUF_INIT(1000);
	assert_int_equal(io_read_all(child.output_fd, &out), 0);
	assert_non_null(strstr(buf_str(&out), "TERM"));
	assert_non_null(strstr(buf_str(&out), "11"));
	assert_int_equal(WTERMSIG(finish(&child)), SIGKILL);
}

static void t7_all_ends_when_nobody_is_in_charge(void **state)
{
	(void)state;
	struct spawn_child child;
	start_shell(&child, FAMILY "sleep 60");
	pid_t grandchild = read_pid(&child);
	close(child.control_fd);
	assert_int_equal(waitpid(child.warden_pid, NULL, 0), child.warden_pid);
	assert_false(runs(grandchild) || runs(child.pid));
	close(child.socket_fd);
	close(child.output_fd);
}

static void t7_the_child_dies_with_its_warden(void **state)
{
	(void)state;
	struct spawn_child child;
	start_shell(&child, "echo $$; sleep 60");
	read_pid(&child);
	kill(child.warden_pid, SIGKILL);
	assert_int_equal(waitpid(child.warden_pid, NULL, 0), child.warden_pid);
	assert_ends(child.pid);
	close(child.socket_fd);
	close(child.output_fd);
	close(child.control_fd);
}

static void the_child_dies_with_its_parent(void **state)
{
	(void)state;
	int report[2];
	assert_int_equal(pipe(report), 0);
	pid_t middle = fork();
	if (middle == 0) {
		const char *argv[] = { "/bin/sleep", "60", NULL };
		struct identity self;
		identity_self(&self);
		struct spawn_request request = {
			.argv = argv, .env = env, .warden = warden(), .who = &self
		};
		struct spawn_child child = SPAWN_CHILD_INIT;
		struct fail why = FAIL_INIT;
		spawn_child(&request, &child, &why);
		_exit(write(report[1], &child.pid, sizeof(child.pid)) < 0);
	}
	pid_t pid = -1;
	assert_int_equal(read(report[0], &pid, sizeof(pid)), sizeof(pid));
	waitpid(middle, NULL, 0);
	close(report[0]);
	close(report[1]);
	assert_ends(pid);
}

static void programs_are_found_by_path(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	static const char *const odd[] = { "PATH=:relative:/nowhere:/usr/bin:/bin", NULL };
	auto_free char *path = program_find("env", odd, &why);
	assert_string_equal(path, "/usr/bin/env");
	assert_null(program_find("no such program", odd, &why));
	assert_int_equal(why.code, -ENOENT);
	assert_null(program_get_env(env, "ONL"));
	assert_string_equal(program_get_env(env, "ONLY"), "this");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t12_the_child_has_four_descriptors),
		cmocka_unit_test(descriptors_in_each_others_places_are_sorted_out),
		cmocka_unit_test(the_child_has_a_session_and_nothing_blocked),
		cmocka_unit_test(the_child_has_its_environment_and_limits),
		cmocka_unit_test(r39_root_gives_up_all_its_rights),
		cmocka_unit_test(a_program_that_is_missing_is_told),
		cmocka_unit_test(t7_what_has_left_the_session_is_swept),
		cmocka_unit_test(t7_what_is_left_at_the_end_is_killed),
		cmocka_unit_test(t7_a_signal_reaches_all),
		cmocka_unit_test(t7_all_ends_when_nobody_is_in_charge),
		cmocka_unit_test(t7_the_child_dies_with_its_warden),
		cmocka_unit_test(the_child_dies_with_its_parent),
		cmocka_unit_test(programs_are_found_by_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
