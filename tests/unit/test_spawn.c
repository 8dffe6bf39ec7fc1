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
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/running/spawn.h"

static const char *const env[] = { "PATH=/usr/bin:/bin", "ONLY=this", NULL };

/* Runs a shell script; returns its output and, in *status, how it ended. */
static void run(const struct identity *who, const char *script, struct buf *out, int *status)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	struct identity self;
	identity_self(&self);
	struct spawn_request request = {
		.argv = argv, .env = env, .who = who ? who : &self, .files_max = 100
	};
	struct spawn_child child = SPAWN_CHILD_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(spawn_child(&request, &child, &why), 0);
	assert_int_equal(io_set_nonblock(child.output_fd, false), 0);
	assert_int_equal(io_read_all(child.output_fd, out), 0);
	assert_int_equal(waitpid(child.pid, status, 0), child.pid);
	close(child.socket_fd);
	close(child.output_fd);
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
	signal(SIGPIPE, SIG_IGN);
	sigset_t blocked, before;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	assert_output("read pid rest </proc/self/stat; set -- $rest; "
		      "[ $5 = $pid ] && [ $4 = $pid ] && echo leader; "
		      "grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status | tr -d '\\t'",
		"leader\nSigBlk:0000000000000000\nSigIgn:0000000000000000\nNoNewPrivs:1\n");
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
	struct spawn_request request = { .argv = argv, .env = env, .who = &self };
	struct spawn_child child = SPAWN_CHILD_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(spawn_child(&request, &child, &why), -ENOENT);
	assert_string_equal(why.text, "cannot start '/nowhere/at all': cannot execute it: "
				      "No such file or directory");
	assert_int_equal(child.pid, -1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
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
		struct spawn_request request = { .argv = argv, .env = env, .who = &self };
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
	for (int i = 0; i < 200; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
		auto_buf struct buf command = BUF_INIT(1000);
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || io_read_all(fd, &command) < 0 || command.len == 0)
			return; /* gone, or a zombie that its new parent will reap */
		usleep(10000);
	}
	fail_msg("process %d still runs", (int)pid);
}

static void programs_are_found_by_path(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	static const char *const odd[] = { "PATH=:relative:/nowhere:/usr/bin:/bin", NULL };
	auto_free char *path = spawn_find_program("env", odd, &why);
	assert_string_equal(path, "/usr/bin/env");
	assert_null(spawn_find_program("no such program", odd, &why));
	assert_int_equal(why.code, -ENOENT);
	assert_null(spawn_get_env(env, "ONL"));
	assert_string_equal(spawn_get_env(env, "ONLY"), "this");
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
		cmocka_unit_test(the_child_dies_with_its_parent),
		cmocka_unit_test(programs_are_found_by_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
