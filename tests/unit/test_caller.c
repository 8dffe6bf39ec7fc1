/* Callers, looked up in /proc: chains of real processes, threads, names that look like fields. */
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

#include "core/running/caller.h"

#define CHILDREN_MAX 40

/* Processes, each the parent of the next, the last of which waits. */
struct family {
	pid_t pids[CHILDREN_MAX]; /* from the eldest on */
	int count;
	int hold; /* while it is open they live */
};

/* Forks down to depth, and tells each pid to fd. */
static void descend(int depth, int tell_fd, int hold_fd, void (*prepare)(void))
{
	for (int i = 0; i < depth; i++) {
		pid_t child = fork();
		if (child < 0)
			_exit(1);
		if (child > 0) {
			waitpid(child, NULL, 0);
			_exit(0);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare)
			prepare();
		pid_t self = getpid();
		if (write(tell_fd, &self, sizeof(self)) != sizeof(self))
			_exit(1);
	}
	char byte;
	_exit(read(hold_fd, &byte, 1) == 0 ? 0 : 1);
}

static struct family start_family(int count, void (*prepare)(void))
{
	struct family family = { .count = count };
	int tell[2], hold[2];
	assert_int_equal(pipe(tell), 0);
	assert_int_equal(pipe(hold), 0);
	pid_t first = fork();
	assert_true(first >= 0);
	if (first == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(hold[1]);
		if (prepare)
			prepare();
		pid_t self = getpid();
		if (write(tell[1], &self, sizeof(self)) != sizeof(self))
			_exit(1);
		descend(count - 1, tell[1], hold[0], prepare);
	}
	close(hold[0]);
	for (int i = 0; i < count; i++)
		assert_int_equal(read(tell[0], &family.pids[i], sizeof(pid_t)), sizeof(pid_t));
	close(tell[0]);
	close(tell[1]);
	family.hold = hold[1];
	return family;
}

static void end_family(struct family *family)
{
	close(family->hold);
	waitpid(family->pids[0], NULL, 0);
}

static void load(struct caller *caller, pid_t tid)
{
	caller_load(caller, geteuid(), getegid(), tid);
}

static void a_chain_goes_up_to_the_eldest(void **state)
{
	(void)state;
	struct family family = start_family(4, NULL);
	struct caller caller;
	load(&caller, family.pids[3]);
	assert_in_range(caller.chain.count, 5, CALLER_CHAIN_MAX);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(caller.chain.links[i].pid, family.pids[3 - i]);
		assert_true(caller.chain.links[i].start > 0);
		/* None has begun before the one that forked it. */
		assert_true(caller.chain.links[i].start >= caller.chain.links[i + 1].start);
	}
	assert_int_equal(caller.chain.links[4].pid, getpid());
	assert_int_equal(caller.tid, family.pids[3]);
	assert_true(caller.pid_ns > 0);
	end_family(&family);
}

static void a_chain_has_an_end(void **state)
{
	(void)state;
	struct family family = start_family(CHILDREN_MAX, NULL);
	struct caller caller;
	load(&caller, family.pids[CHILDREN_MAX - 1]);
	assert_int_equal(caller.chain.count, CALLER_CHAIN_MAX);
	assert_int_equal(caller.chain.links[0].pid, family.pids[CHILDREN_MAX - 1]);
	end_family(&family);
}

static void the_nearest_common_process_is_found(void **state)
{
	(void)state;
	struct family family = start_family(3, NULL);
	struct caller grandchild, child, self;
	load(&grandchild, family.pids[2]);
	load(&child, family.pids[1]);
	load(&self, getpid());
	assert_int_equal(chain_distance(&grandchild.chain, &grandchild.chain), 0);
	assert_int_equal(chain_distance(&grandchild.chain, &child.chain), 1);
	assert_int_equal(chain_distance(&child.chain, &grandchild.chain), 0);
	assert_int_equal(chain_distance(&grandchild.chain, &self.chain), 3);
	assert_int_equal(chain_distance(&self.chain, &grandchild.chain), 0);
	end_family(&family);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	(void)state;
	const struct chain before = { .links = { { 10, 5 }, { 1, 1 } }, .count = 2 };
	const struct chain after = { .links = { { 10, 6 }, { 1, 1 } }, .count = 2 };
	const struct chain elsewhere = { .links = { { 10, 7 } }, .count = 1 };
	const struct chain unknown = { .count = 0 };
	assert_false(process_equal(&before.links[0], &after.links[0]));
	assert_int_equal(chain_distance(&before, &after), 1);
	assert_int_equal(chain_distance(&before, &elsewhere), CALLER_CHAIN_MAX);
	assert_int_equal(chain_distance(&unknown, &before), CALLER_CHAIN_MAX);
	assert_int_equal(chain_distance(&before, &unknown), CALLER_CHAIN_MAX);
}

static void take_an_odd_name(void)
{
	prctl(PR_SET_NAME, ") S 1 (\n0 9 8");
}

static void a_name_with_blanks_and_parentheses_is_no_field(void **state)
{
	(void)state;
	struct family family = start_family(2, take_an_odd_name);
	struct caller caller;
	load(&caller, family.pids[1]);
	assert_int_equal(caller.chain.links[0].pid, family.pids[1]);
	assert_int_equal(caller.chain.links[1].pid, family.pids[0]);
	assert_int_equal(caller.chain.links[2].pid, getpid());
	end_family(&family);
}

static void take_the_name_of_a_line(void)
{
	prctl(PR_SET_NAME, "x\nTgid:\t1\n");
}

static void a_name_is_no_line_of_status(void **state)
{
	(void)state;
	struct family family = start_family(1, take_the_name_of_a_line);
	struct caller caller;
	load(&caller, family.pids[0]);
	assert_int_equal(caller.chain.links[0].pid, family.pids[0]);
	end_family(&family);
}

struct thread {
	pthread_mutex_t lock;
	pthread_cond_t said;
	pid_t tid;
	int go;
};

static void *run_thread(void *arg)
{
	struct thread *thread = arg;
	pthread_mutex_lock(&thread->lock);
	thread->tid = gettid();
	pthread_cond_broadcast(&thread->said);
	while (!thread->go)
		pthread_cond_wait(&thread->said, &thread->lock);
	pthread_mutex_unlock(&thread->lock);
	return NULL;
}

static void a_thread_has_the_chain_of_its_process(void **state)
{
	(void)state;
	struct thread thread = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0 };
	pthread_t handle;
	assert_int_equal(pthread_create(&handle, NULL, run_thread, &thread), 0);
	pthread_mutex_lock(&thread.lock);
	while (thread.tid == 0)
		pthread_cond_wait(&thread.said, &thread.lock);
	pthread_mutex_unlock(&thread.lock);
	struct caller of_thread, of_process;
	load(&of_thread, thread.tid);
	load(&of_process, getpid());
	assert_int_not_equal(thread.tid, getpid());
	assert_int_equal(of_thread.tid, thread.tid);
	assert_int_equal(of_thread.chain.links[0].pid, getpid());
	assert_int_equal(chain_distance(&of_thread.chain, &of_process.chain), 0);
	pthread_mutex_lock(&thread.lock);
	thread.go = 1;
	pthread_cond_broadcast(&thread.said);
	pthread_mutex_unlock(&thread.lock);
	pthread_join(handle, NULL);
}

static void take_groups(void)
{
	const gid_t groups[] = { 7, 1000, 4000000000 };
	if (setgroups(3, groups) < 0)
		_exit(1);
}

static void take_too_many_groups(void)
{
	gid_t groups[1000];
	for (gid_t i = 0; i < 1000; i++)
		groups[i] = 4000000000 + i;
	if (setgroups(1000, groups) < 0)
		_exit(1);
}

static void groups_are_those_of_the_caller(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct family family = start_family(1, take_groups);
	struct caller caller;
	caller_load(&caller, 5, 6, family.pids[0]);
	assert_int_equal(caller.who.uid, 5);
	assert_int_equal(caller.who.gid, 6);
	assert_int_equal(caller.who.group_count, 3);
	assert_int_equal(caller.who.groups[0], 7);
	assert_int_equal(caller.who.groups[1], 1000);
	assert_int_equal(caller.who.groups[2], 4000000000);
	end_family(&family);
}

/* Fewer groups are fewer rights; a number that is cut off would be another group. */
static void of_very_many_groups_the_first_count(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct family family = start_family(1, take_too_many_groups);
	struct caller caller;
	load(&caller, family.pids[0]);
	assert_int_equal(caller.who.group_count, IDENTITY_GROUPS_MAX);
	for (gid_t i = 0; i < IDENTITY_GROUPS_MAX; i++)
		assert_int_equal(caller.who.groups[i], 4000000000 + i);
	assert_int_equal(caller.chain.links[1].pid, getpid());
	end_family(&family);
}

static void of_who_is_gone_or_elsewhere_the_ids_are_known(void **state)
{
	(void)state;
	struct family family = start_family(1, NULL);
	end_family(&family);
	const pid_t tids[] = { 0, family.pids[0] };
	for (size_t i = 0; i < 2; i++) {
		struct caller caller;
		caller_load(&caller, 5, 6, tids[i]);
		assert_int_equal(caller.who.uid, 5);
		assert_int_equal(caller.who.gid, 6);
		assert_int_equal(caller.who.group_count, 0);
		assert_int_equal(caller.chain.count, 0);
		assert_int_equal(caller.pid_ns, 0);
	}
}

static void who_uses_what_another_one_opened_has_the_rights_of_both(void **state)
{
	(void)state;
	const struct place here = place_here(), unknown = { .is_known = false };
	const struct place jail = { .is_known = true, .differs = 2, .key = 3 };
	const struct place other = { .is_known = true, .differs = 2, .key = 5 };
	struct caller caller = { .who = { .caps = 6, .place = here } };
	caller_confine(&caller, 3, &here);
	assert_int_equal(caller.who.caps, 2);
	assert_true(place_is_here(&caller.who.place));
	caller_confine(&caller, 3, &jail);
	assert_false(place_is_here(&caller.who.place));
	assert_true(caller.who.place.differs & PLACE_MIXED);
	caller.who.place = jail;
	caller_confine(&caller, 3, &jail);
	assert_true(place_equal(&caller.who.place, &jail));
	caller_confine(&caller, 3, &other);
	assert_true(caller.who.place.differs & PLACE_MIXED);
	assert_false(
		place_equal(&caller.who.place, &jail) || place_equal(&caller.who.place, &other));
	caller.who.place = unknown;
	caller_confine(&caller, 3, &here);
	assert_false(place_is_here(&caller.who.place));
	caller.who.place = here;
	caller_confine(&caller, 3, &unknown);
	assert_false(place_is_here(&caller.who.place));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_uses_what_another_one_opened_has_the_rights_of_both),
		cmocka_unit_test(a_chain_goes_up_to_the_eldest),
		cmocka_unit_test(a_chain_has_an_end),
		cmocka_unit_test(the_nearest_common_process_is_found),
		cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
		cmocka_unit_test(a_name_with_blanks_and_parentheses_is_no_field),
		cmocka_unit_test(a_name_is_no_line_of_status),
		cmocka_unit_test(a_thread_has_the_chain_of_its_process),
		cmocka_unit_test(groups_are_those_of_the_caller),
		cmocka_unit_test(of_very_many_groups_the_first_count),
		cmocka_unit_test(of_who_is_gone_or_elsewhere_the_ids_are_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
