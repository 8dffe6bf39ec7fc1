/* What a signal to a blocked caller means: made-up states, and real processes that are stopped. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/running/verdict.h"

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

enum handling { DEFAULT, CAUGHT, IGNORED, BLOCKED, BLOCKED_CAUGHT, HANDLINGS };

static enum verdict judge(int signal, enum handling handling)
{
	struct signal_state state = { .pending = BIT(signal) };
	if (handling == CAUGHT || handling == BLOCKED_CAUGHT)
		state.caught = BIT(signal);
	if (handling == IGNORED)
		state.ignored = BIT(signal);
	if (handling == BLOCKED || handling == BLOCKED_CAUGHT)
		state.blocked = BIT(signal);
	return verdict_of(&state);
}

/* call-semantics.md 4.6, its words as a list: the verdict where it is not caught, and where it is. */
static enum verdict expected(int signal, enum handling handling)
{
	if (signal == SIGKILL)
		return VERDICT_FATAL; /* cannot be caught, ignored or blocked */
	if (handling == DEFAULT)
		switch (signal) {
		case SIGCHLD:
		case SIGURG:
		case SIGWINCH:
		case SIGCONT:
		case SIGSTOP:
		case SIGTSTP:
		case SIGTTIN:
		case SIGTTOU:
			return VERDICT_NONE;
		default:
			return VERDICT_FATAL;
		}
	if (handling != CAUGHT)
		return VERDICT_NONE;
	switch (signal) {
	case SIGINT:
	case SIGQUIT:
		return VERDICT_CANCEL;
	case SIGTERM:
	case SIGHUP:
	case SIGALRM:
	case SIGVTALRM:
		return VERDICT_SOFT;
	default:
		return VERDICT_NONE;
	}
}

static void every_signal_in_every_handling(void **state)
{
	(void)state;
	for (int signal = 1; signal <= 64; signal++)
		for (int handling = 0; handling < HANDLINGS; handling++)
			if (judge(signal, handling) != expected(signal, handling))
				fail_msg("signal %d, handling %d: %d and not %d", signal, handling,
					judge(signal, handling), expected(signal, handling));
}

static void nothing_pending_is_no_verdict(void **state)
{
	(void)state;
	const struct signal_state none = { 0, 0, 0, UINT64_MAX };
	assert_int_equal(verdict_of(&none), VERDICT_NONE);
}

static void the_gravest_of_several_counts(void **state)
{
	(void)state;
	struct signal_state several = { .pending = BIT(SIGCHLD) | BIT(SIGTERM) | BIT(SIGINT),
		.caught = BIT(SIGTERM) | BIT(SIGINT) };
	assert_int_equal(verdict_of(&several), VERDICT_CANCEL);
	several.caught |= BIT(SIGCHLD);
	several.blocked = BIT(SIGINT);
	assert_int_equal(verdict_of(&several), VERDICT_SOFT);
	several.pending |= BIT(SIGUSR1);
	assert_int_equal(verdict_of(&several), VERDICT_FATAL);
	several.caught |= BIT(SIGUSR1);
	assert_int_equal(verdict_of(&several), VERDICT_SOFT);
	several.pending |= BIT(SIGKILL);
	assert_int_equal(verdict_of(&several), VERDICT_FATAL);
}

static void who_cannot_be_looked_at_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(verdict_load(0), VERDICT_UNKNOWN);
	assert_int_equal(verdict_load(-1), VERDICT_UNKNOWN);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(verdict_load(pid), VERDICT_UNKNOWN);
}

/* Nothing that a test forks outlives it, also where the test fails. */
static pid_t fork_bound(void)
{
	pid_t pid = fork();
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void handle(int signal)
{
	(void)signal;
}

/* A process that catches, ignores or takes as it comes what it is sent, and is stopped. */
static pid_t start_stopped(int signal_number, void (*handler)(int))
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork_bound();
	if (pid == 0) {
		signal(signal_number, handler);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	kill(pid, SIGSTOP);
	int status = 0;
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static enum verdict verdict_of_real(int signal_number, void (*handler)(int))
{
	pid_t pid = start_stopped(signal_number, handler);
	kill(pid, signal_number);
	enum verdict verdict = verdict_load(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return verdict;
}

static void real_processes_are_judged_alike(void **state)
{
	(void)state;
	assert_int_equal(verdict_of_real(SIGTERM, SIG_DFL), VERDICT_FATAL);
	assert_int_equal(verdict_of_real(SIGTERM, handle), VERDICT_SOFT);
	assert_int_equal(verdict_of_real(SIGINT, handle), VERDICT_CANCEL);
	assert_int_equal(verdict_of_real(SIGCHLD, handle), VERDICT_NONE);
	assert_int_equal(verdict_of_real(SIGUSR1, handle), VERDICT_NONE);
	assert_int_equal(verdict_of_real(SIGUSR1, SIG_IGN), VERDICT_NONE);
	assert_int_equal(verdict_of_real(SIGRTMIN + 1, SIG_DFL), VERDICT_FATAL);
}

/* The line of groups stands before those of signals, and can be longer than a page. */
static void very_many_groups_hide_no_signal(void **state)
{
	(void)state;
	gid_t groups[1000];
	for (size_t i = 0; i < 1000; i++)
		groups[i] = (gid_t)(1000000000 + i);
	if (geteuid() != 0)
		skip();
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork_bound();
	if (pid == 0) {
		signal(SIGTERM, handle);
		if (setgroups(1000, groups) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	kill(pid, SIGTERM);
	assert_int_equal(verdict_load(pid), VERDICT_SOFT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void *wait_for_ever(void *arg)
{
	*(volatile pid_t *)arg = gettid();
	for (;;)
		pause();
	return NULL;
}

/* A caller is a thread: what is pending for another one is not for it. */
static void a_thread_has_its_own_pending_signals(void **state)
{
	(void)state;
	volatile pid_t tid = 0;
	pthread_t thread;
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, &old);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_ever, (void *)(uintptr_t)&tid), 0);
	while (tid == 0)
		usleep(1000);
	raise(SIGTERM); /* for this thread, which blocks it */
	assert_int_equal(verdict_load(tid), VERDICT_NONE);
	assert_int_equal(verdict_load(gettid()), VERDICT_NONE);
	int taken = 0;
	sigwait(&set, &taken);
	assert_int_equal(taken, SIGTERM);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_signal_in_every_handling),
		cmocka_unit_test(nothing_pending_is_no_verdict),
		cmocka_unit_test(the_gravest_of_several_counts),
		cmocka_unit_test(who_cannot_be_looked_at_is_unknown),
		cmocka_unit_test(real_processes_are_judged_alike),
		cmocka_unit_test(very_many_groups_hide_no_signal),
		cmocka_unit_test(a_thread_has_its_own_pending_signals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
