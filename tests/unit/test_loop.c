#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include "core/base/loop.h"
#include "tests/unit/scratch.h"

/* Each test has a loop and a log of what happened, one character an event. */
struct world {
	struct loop *loop;
	struct loop_timer timers[8];
	struct loop_fd *entries[4];
	struct loop_child *child;
	int pipes[4][2];
	char log[64];
	size_t logged;
	int status;
};

static void note(struct world *world, char event)
{
	assert_true(world->logged < sizeof(world->log) - 1);
	world->log[world->logged++] = event;
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct fail why = FAIL_INIT;
	world->loop = loop_new(&why);
	for (size_t i = 0; i < 4; i++)
		if (pipe2(world->pipes[i], O_CLOEXEC | O_NONBLOCK) < 0)
			return -1;
	*state = world;
	return world->loop ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *world = *state;
	loop_free(world->loop);
	for (size_t i = 0; i < 4; i++) {
		close(world->pipes[i][0]);
		close(world->pipes[i][1]);
	}
	free(world);
	return 0;
}

static void stop(void *arg)
{
	struct world *world = arg;
	loop_stop(world->loop, 7);
}

static void run_for(struct world *world, uint64_t ms)
{
	loop_arm_timer(world->loop, &world->timers[7], ms, stop, world);
	assert_int_equal(loop_run(world->loop), 7);
}

/* On a busy machine a turn may come late: until as much has happened as is due, a second at most. */
static void run_until_logged(struct world *world, size_t count)
{
	for (int i = 0; i < 100 && world->logged < count; i++)
		run_for(world, 10);
	run_for(world, 10);
}

/* ---- timers */

static void on_a(void *arg)
{
	note(arg, 'a');
}

static void on_b(void *arg)
{
	note(arg, 'b');
}

static void on_c(void *arg)
{
	note(arg, 'c');
}

static void timers_fire_in_the_order_of_their_time(void **state)
{
	struct world *world = *state;
	loop_arm_timer(world->loop, &world->timers[0], 15, on_c, world);
	loop_arm_timer(world->loop, &world->timers[1], 5, on_a, world);
	loop_arm_timer(world->loop, &world->timers[2], 10, on_b, world);
	run_for(world, 20);
	assert_string_equal(world->log, "abc");
}

static void a_timer_fires_once_and_can_be_armed_anew(void **state)
{
	struct world *world = *state;
	loop_arm_timer(world->loop, &world->timers[0], 100000, on_a, world);
	loop_arm_timer(world->loop, &world->timers[0], 1, on_b, world);
	run_for(world, 10);
	assert_string_equal(world->log, "b");
	loop_arm_timer(world->loop, &world->timers[0], 1, on_c, world);
	run_for(world, 10);
	assert_string_equal(world->log, "bc");
}

static void a_cancelled_timer_does_not_fire(void **state)
{
	struct world *world = *state;
	loop_arm_timer(world->loop, &world->timers[0], 1, on_a, world);
	loop_cancel_timer(&world->timers[0]);
	loop_cancel_timer(&world->timers[0]);
	loop_cancel_timer(&world->timers[1]);
	run_for(world, 5);
	assert_string_equal(world->log, "");
}

static void on_cancels_others(void *arg)
{
	struct world *world = arg;
	note(world, 'x');
	for (size_t i = 0; i < 4; i++)
		loop_cancel_timer(&world->timers[i]);
}

static void a_timer_may_cancel_others_that_are_due(void **state)
{
	struct world *world = *state;
	loop_arm_timer(world->loop, &world->timers[1], 2, on_a, world);
	loop_arm_timer(world->loop, &world->timers[2], 2, on_a, world);
	loop_arm_timer(world->loop, &world->timers[0], 1, on_cancels_others, world);
	usleep(5000);
	run_for(world, 10);
	assert_string_equal(world->log, "x");
}

static void on_arms_itself(void *arg)
{
	struct world *world = arg;
	world->status++;
	loop_arm_timer(world->loop, &world->timers[0], 0, on_arms_itself, world);
}

static void on_readable(void *arg, uint32_t events)
{
	struct world *world = arg;
	assert_true(events & EPOLLIN);
	note(world, 'r');
	loop_stop(world->loop, 3);
}

static void timers_for_now_do_not_starve_descriptors(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	world->entries[0] =
		loop_add_fd(world->loop, world->pipes[0][0], EPOLLIN, on_readable, world, &why);
	assert_int_equal(write(world->pipes[0][1], "x", 1), 1);
	loop_arm_timer(world->loop, &world->timers[0], 0, on_arms_itself, world);
	assert_int_equal(loop_run(world->loop), 3);
	assert_string_equal(world->log, "r");
	assert_true(world->status <= 1);
}

struct many {
	struct loop_timer timers[1000];
	uint64_t last;
	struct loop *loop;
	size_t fired;
};

static struct many many;

static void on_many(void *arg)
{
	const struct loop_timer *timer = arg;
	if (timer->due_ms < many.last)
		fail_msg("out of order");
	many.last = timer->due_ms;
	many.fired++;
}

static void on_end(void *arg)
{
	(void)arg;
	loop_stop(many.loop, 0);
}

static void a_thousand_timers_keep_their_order_whatever_is_cancelled(void **state)
{
	struct world *world = *state;
	unsigned seed = 1;
	size_t cancelled = 0;
	many.loop = world->loop;
	for (size_t i = 0; i < 1000; i++) {
		seed = seed * 1103515245 + 12345;
		loop_arm_timer(
			world->loop, &many.timers[i], seed >> 16 & 31, on_many, &many.timers[i]);
	}
	for (size_t i = 0; i < 1000; i += 3, cancelled++)
		loop_cancel_timer(&many.timers[i]);
	loop_arm_timer(world->loop, &world->timers[0], 60, on_end, NULL);
	assert_int_equal(loop_run(world->loop), 0);
	assert_int_equal(many.fired, 1000 - cancelled);
}

/* ---- descriptors */

static void on_reads(void *arg, uint32_t events)
{
	struct world *world = arg;
	char byte;
	(void)events;
	assert_int_equal(read(world->pipes[0][0], &byte, 1), 1);
	note(world, byte);
}

static void readable_descriptors_are_told_of(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	world->entries[0] =
		loop_add_fd(world->loop, world->pipes[0][0], EPOLLIN, on_reads, world, &why);
	assert_int_equal(write(world->pipes[0][1], "12", 2), 2);
	run_until_logged(world, 2);
	assert_string_equal(world->log, "12");
	assert_int_equal(loop_set_events(world->entries[0], 0), 0);
	assert_int_equal(write(world->pipes[0][1], "3", 1), 1);
	run_for(world, 10);
	assert_string_equal(world->log, "12");
	loop_remove_fd(&world->entries[0]);
	assert_null(world->entries[0]);
	loop_remove_fd(&world->entries[0]);
}

static void on_removes_all(void *arg, uint32_t events)
{
	struct world *world = arg;
	(void)events;
	note(world, 'x');
	for (size_t i = 0; i < 4; i++)
		loop_remove_fd(&world->entries[i]);
}

static void a_callback_may_remove_every_registration(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	for (size_t i = 0; i < 4; i++) {
		world->entries[i] = loop_add_fd(
			world->loop, world->pipes[i][0], EPOLLIN, on_removes_all, world, &why);
		assert_int_equal(write(world->pipes[i][1], "x", 1), 1);
	}
	run_for(world, 10);
	assert_string_equal(world->log, "x");
}

static void on_replaces(void *arg, uint32_t events)
{
	struct world *world = arg;
	struct fail why = FAIL_INIT;
	(void)events;
	note(world, 'o');
	for (size_t i = 0; i < 2; i++) {
		loop_remove_fd(&world->entries[i]);
		world->entries[i] = loop_add_fd(
			world->loop, world->pipes[i][0], EPOLLIN, on_removes_all, world, &why);
		assert_non_null(world->entries[i]);
	}
}

static void an_event_for_a_removed_registration_is_not_given_to_its_successor(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	for (size_t i = 0; i < 2; i++) {
		world->entries[i] = loop_add_fd(
			world->loop, world->pipes[i][0], EPOLLIN, on_replaces, world, &why);
		assert_int_equal(write(world->pipes[i][1], "x", 1), 1);
	}
	run_until_logged(world, 2);
	assert_string_equal(world->log, "ox");
}

static void what_cannot_be_watched_is_refused(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	auto_close int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	assert_null(loop_add_fd(world->loop, fd, EPOLLIN, on_reads, world, &why));
	assert_int_equal(why.code, -EPERM);
}

static void registrations_that_are_left_go_with_the_loop(void **state)
{
	(void)state;
	size_t before = scratch_count_fds();
	struct fail why = FAIL_INIT;
	struct loop_timer timer = { .loop = NULL };
	struct loop *loop = loop_new(&why);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_non_null(loop_add_fd(loop, ends[0], EPOLLIN, on_reads, NULL, &why));
	assert_non_null(loop_watch_child(loop, pid, NULL, NULL, &why));
	loop_arm_timer(loop, &timer, 1, on_a, NULL);
	loop_free(loop);
	loop_free(NULL);
	assert_int_equal(timer.slot, 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- signals and children */

static void on_signal(void *arg, int signal)
{
	struct world *world = arg;
	note(world, signal == SIGUSR1 ? '1' : '2');
	if (signal == SIGUSR2)
		loop_stop(world->loop, 5);
}

static void signals_arrive_as_events(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	sigset_t signals, old;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGUSR2);
	sigprocmask(SIG_BLOCK, NULL, &old);
	assert_int_equal(loop_watch_signals(world->loop, &signals, on_signal, world, &why), 0);
	raise(SIGUSR1);
	run_for(world, 5);
	assert_string_equal(world->log, "1");
	raise(SIGUSR2);
	assert_int_equal(loop_run(world->loop), 5);
	assert_string_equal(world->log, "12");
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void on_exit_of_child(void *arg, pid_t pid, int status)
{
	struct world *world = arg;
	assert_true(pid > 0);
	world->child = NULL;
	world->status = status;
	note(world, 'e');
	loop_stop(world->loop, 0);
}

static pid_t child_that(void body(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		body();
		_exit(0);
	}
	return pid;
}

static void exits_with_3(void)
{
	_exit(3);
}

static void waits(void)
{
	pause();
}

static void an_exit_is_told_with_its_status_and_reaped(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	pid_t pid = child_that(exits_with_3);
	world->child = loop_watch_child(world->loop, pid, on_exit_of_child, world, &why);
	assert_int_equal(loop_run(world->loop), 0);
	assert_true(WIFEXITED(world->status));
	assert_int_equal(WEXITSTATUS(world->status), 3);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

static void a_killed_child_is_told_with_its_signal(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	pid_t pid = child_that(waits);
	world->child = loop_watch_child(world->loop, pid, on_exit_of_child, world, &why);
	kill(pid, SIGKILL);
	assert_int_equal(loop_run(world->loop), 0);
	assert_true(WIFSIGNALED(world->status));
	assert_int_equal(WTERMSIG(world->status), SIGKILL);
}

static void a_status_that_nobody_knows_is_no_success(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	pid_t pid = child_that(waits);
	world->child = loop_watch_child(world->loop, pid, on_exit_of_child, world, &why);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(loop_run(world->loop), 0);
	assert_int_equal(world->status, LOOP_EXIT_UNKNOWN);
}

static void an_unwatched_child_is_left_to_its_owner(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	pid_t pid = child_that(exits_with_3);
	world->child = loop_watch_child(world->loop, pid, on_exit_of_child, world, &why);
	loop_unwatch_child(&world->child);
	assert_null(world->child);
	loop_unwatch_child(&world->child);
	run_for(world, 10);
	assert_string_equal(world->log, "");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_process_that_is_not_there_cannot_be_watched(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	pid_t pid = child_that(exits_with_3);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_null(loop_watch_child(world->loop, pid, on_exit_of_child, world, &why));
	assert_int_equal(why.code, -ESRCH);
}

static void time_is_that_of_the_turn(void **state)
{
	struct world *world = *state;
	uint64_t before = loop_now_ms(world->loop);
	usleep(3000);
	assert_int_equal(loop_now_ms(world->loop), before);
	run_for(world, 1);
	assert_true(loop_now_ms(world->loop) >= before + 3);
}

#define loop_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		loop_test(timers_fire_in_the_order_of_their_time),
		loop_test(a_timer_fires_once_and_can_be_armed_anew),
		loop_test(a_cancelled_timer_does_not_fire),
		loop_test(a_timer_may_cancel_others_that_are_due),
		loop_test(timers_for_now_do_not_starve_descriptors),
		loop_test(a_thousand_timers_keep_their_order_whatever_is_cancelled),
		loop_test(readable_descriptors_are_told_of),
		loop_test(a_callback_may_remove_every_registration),
		loop_test(an_event_for_a_removed_registration_is_not_given_to_its_successor),
		loop_test(what_cannot_be_watched_is_refused),
		loop_test(registrations_that_are_left_go_with_the_loop),
		loop_test(signals_arrive_as_events),
		loop_test(an_exit_is_told_with_its_status_and_reaped),
		loop_test(a_killed_child_is_told_with_its_signal),
		loop_test(a_status_that_nobody_knows_is_no_success),
		loop_test(an_unwatched_child_is_left_to_its_owner),
		loop_test(a_process_that_is_not_there_cannot_be_watched),
		loop_test(time_is_that_of_the_turn),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
