/* Where processes live, and as whom they may call. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/running/anchor.h"
#include "core/running/identity.h"
#include "core/running/place.h"
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* A child that has done `how` (CLONE_NEW...) and waits to be killed; -1 where it may not. */
static pid_t start(int how)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (how && unshare(how) < 0)
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	char byte;
	ssize_t got = read(ready[0], &byte, 1);
	close(ready[0]);
	if (got == 1)
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_child_lives_here(void **state)
{
	(void)state;
	struct place place;
	pid_t pid = start(0);
	place_load(&place, pid, geteuid(), getegid());
	assert_true(place_is_here(&place));
	struct place here = place_here();
	assert_true(place_equal(&place, &here));
	stop(pid);
}

static void who_has_other_namespaces_lives_elsewhere(void **state)
{
	(void)state;
	pid_t first = start(CLONE_NEWNS), second = start(CLONE_NEWNS | CLONE_NEWNET);
	if (first < 0 || second < 0)
		skip();
	struct place one, other, again;
	place_load(&one, first, geteuid(), getegid());
	place_load(&again, first, geteuid(), getegid());
	place_load(&other, second, geteuid(), getegid());
	assert_true(one.is_known);
	assert_int_equal(one.differs, 1U << PLACE_MOUNT);
	assert_int_equal(other.differs, 1U << PLACE_MOUNT | 1U << PLACE_NET);
	assert_true(place_equal(&one, &again));
	assert_false(place_equal(&one, &other));
	char text[128];
	place_describe(&other, text, sizeof(text));
	assert_string_equal(text, "mount namespace, network namespace");
	stop(first);
	stop(second);
}

static void who_cannot_be_seen_is_not_known(void **state)
{
	(void)state;
	struct place place;
	memset(&place, 1, sizeof(place));
	place_load(&place, 0, 0, 0);
	assert_false(place.is_known);
	assert_false(place_is_here(&place));
	place_load(&place, 0x7ffffff0, 0, 0);
	assert_false(place_is_here(&place));
}

/* ---- places that are held */

static void a_place_is_held_as_it_was(void **state)
{
	(void)state;
	pid_t first = start(CLONE_NEWNS | CLONE_NEWNET), second = start(CLONE_NEWNS);
	if (first < 0 || second < 0)
		skip();
	struct fail why = FAIL_INIT;
	struct identity who = { .uid = 0 };
	place_load(&who.place, first, 0, 0);
	struct anchor *anchor = anchor_open(first, &who, &why);
	assert_non_null(anchor);
	assert_true(place_equal(&anchor->place, &who.place));
	assert_int_equal(anchor->user_fd, -1);
	assert_true(anchor->root_fd >= 0);
	for (int what = 0; what < (int)RLIM_NLIMITS; what++) {
		struct rlimit own; /* which a child inherits */
		assert_int_equal(getrlimit((__rlimit_resource_t)what, &own), 0);
		assert_true(anchor->limits[what].rlim_cur == own.rlim_cur);
		assert_true(anchor->limits[what].rlim_max == own.rlim_max);
	}
	anchor_unref(anchor_ref(anchor));
	anchor_unref(anchor);
	/* It was somewhere else when it called, or is another one. */
	assert_null(anchor_open(second, &who, &why));
	assert_int_equal(why.code, -EACCES);
	fail_clear(&why);
	stop(second);
	assert_null(anchor_open(second, &who, &why));
	fail_clear(&why);
	assert_null(anchor_open(0, &who, &why));
	stop(first);
}

static void a_key_is_of_the_secret(void **state)
{
	(void)state;
	pid_t pid = start(CLONE_NEWNS);
	if (pid < 0)
		skip();
	struct place before, after;
	place_load(&before, pid, 0, 0);
	place_use_secret((const uint8_t[SIPHASH_SECRET_SIZE]){ 1 });
	place_load(&after, pid, 0, 0);
	assert_false(place_equal(&before, &after));
	stop(pid);
}

static void who_nests_namespaces_stays_the_same_tenant(void **state)
{
	(void)state;
	pid_t pid = start(CLONE_NEWNS);
	if (pid < 0)
		skip();
	struct place place;
	place_load(&place, pid, 0, 0);
	assert_true(place.tenant == 0); /* in our pid namespace */
	stop(pid);
}

static void another_container_has_another_number(void **state)
{
	(void)state;
	struct stat st;
	pid_t one = start(CLONE_NEWNS), other = start(CLONE_NEWNS), here = start(0);
	if (one < 0 || other < 0)
		skip();
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_true(place_mix_mount(st.st_ino, one) == st.st_ino); /* this process's own */
	struct statx root;
	if (statx(AT_FDCWD, "/", 0, 0x4000, &root) < 0 || !(root.stx_mask & 0x4000))
		skip(); /* before Linux 6.8 */
	assert_true(place_mix_mount(1, one) == place_mix_mount(1, one));
	assert_true(place_mix_mount(1, one) != place_mix_mount(1, other));
	assert_true(place_mix_mount(1, one) != place_mix_mount(1, here));
	stop(one);
	stop(other);
	stop(here);
}

/* ---- as whom they may call */

static int resolve(uid_t uid, struct place place, struct identity_rules rules, struct identity *who)
{
	struct fail why = FAIL_INIT;
	const struct identity caller = {
		.uid = uid, .gid = uid, .groups = { 7 }, .group_count = 1, .caps = 5, .place = place
	};
	return identity_resolve(&caller, &rules, who, &why);
}

static void a_call_runs_as_its_caller_or_not_at_all(void **state)
{
	(void)state;
	const struct place here = place_here(), unknown = { .is_known = false };
	const struct place elsewhere = { .is_known = true, .differs = 1, .key = 9 };
	const struct identity_rules none = { .takes_all = false }, all = { .takes_all = true };
	const struct identity_rules one = { .has_one = true, .call_uid = 33, .call_gid = 44 };
	struct identity who;
	assert_int_equal(resolve(0, here, none, &who), 0);
	assert_int_equal(who.caps, 5);
	assert_int_equal(who.group_count, 1);
	assert_int_equal(resolve(0, elsewhere, none, &who), -EACCES);
	assert_int_equal(resolve(1000, elsewhere, none, &who), -EACCES);
	assert_int_equal(resolve(1000, unknown, none, &who), -EACCES);
	assert_int_equal(resolve(1000, unknown, all, &who), -EACCES);
	assert_int_equal(resolve(0, elsewhere, all, &who), -EACCES);
	assert_int_equal(resolve(1000, elsewhere, all, &who), 0);
	assert_int_equal(who.caps, 0);
	const struct identity_rules there = { .takes_all = true, .runs_there = true };
	assert_int_equal(resolve(0, elsewhere, there, &who), 0);
	assert_int_equal(who.uid, 0);
	assert_int_equal(who.caps, 5);
	assert_true(place_equal(&who.place, &elsewhere));
	assert_int_equal(resolve(1000, unknown, there, &who), -EACCES);
	const struct place mixed = place_mix(&here, &elsewhere);
	assert_int_equal(resolve(1000, mixed, there, &who), -EACCES);
	assert_int_equal(resolve(1000, mixed, none, &who), -EACCES);
	assert_int_equal(resolve(1000, mixed, all, &who), 0);
	assert_int_equal(resolve(0, mixed, all, &who), -EACCES);
	const struct place places[] = { here, unknown, elsewhere };
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(resolve(0, places[i], one, &who), 0);
		assert_int_equal(who.uid, 33);
		assert_int_equal(who.gid, 44);
		assert_int_equal(who.caps, 0);
		assert_int_equal(who.group_count, 0);
	}
	const struct identity nobody = { .uid = 0 }; /* zeroed memory is never somebody from here */
	struct fail why = FAIL_INIT;
	assert_int_equal(identity_resolve(&nobody, &none, &who, &why), -EACCES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_lives_here),
		cmocka_unit_test(who_has_other_namespaces_lives_elsewhere),
		cmocka_unit_test(who_cannot_be_seen_is_not_known),
		cmocka_unit_test(a_place_is_held_as_it_was),
		cmocka_unit_test(a_key_is_of_the_secret),
		cmocka_unit_test(another_container_has_another_number),
		cmocka_unit_test(who_nests_namespaces_stays_the_same_tenant),
		cmocka_unit_test(a_call_runs_as_its_caller_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
