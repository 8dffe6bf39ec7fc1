/* Whether anything has begun: processes, threads, and what is too old to be believed. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/running/quiet.h"

#define TRIES 10000 /* others start processes, too */

static bool begin_nothing(void)
{
	return true;
}

static bool begin_process(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static void *end_at_once(void *arg)
{
	return arg;
}

static bool begin_thread(void)
{
	pthread_t thread;
	return pthread_create(&thread, NULL, end_at_once, NULL) == 0 &&
	       pthread_join(thread, NULL) == 0;
}

/* How often it held, of tries, with something done in between. */
static int times_quiet(bool (*begin)(void), int tries)
{
	int held = 0;
	for (int i = 0; i < tries && held == 0; i++) {
		struct quiet since = quiet_now();
		assert_true(begin());
		held += quiet_holds(&since);
	}
	return held;
}

static void it_holds_while_nothing_begins(void **state)
{
	(void)state;
	if (quiet_now().newest == 0) {
		print_message("SKIP: /proc/loadavg is not the kernel's here\n");
		skip();
	}
	assert_int_equal(times_quiet(begin_nothing, TRIES), 1);
}

static void a_process_ends_it_though_it_is_gone_already(void **state)
{
	(void)state;
	assert_int_equal(times_quiet(begin_process, 50), 0);
}

static void a_thread_ends_it(void **state)
{
	(void)state;
	assert_int_equal(times_quiet(begin_thread, 50), 0);
}

static void what_was_known_long_ago_is_not_believed(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct quiet since = quiet_now();
		since.since_ns -= 1000000000;
		assert_false(quiet_holds(&since));
	}
}

static void what_is_not_known_does_not_hold(void **state)
{
	(void)state;
	assert_false(quiet_holds(&(struct quiet){ .newest = 0 }));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_while_nothing_begins),
		cmocka_unit_test(a_process_ends_it_though_it_is_gone_already),
		cmocka_unit_test(a_thread_ends_it),
		cmocka_unit_test(what_was_known_long_ago_is_not_believed),
		cmocka_unit_test(what_is_not_known_does_not_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
