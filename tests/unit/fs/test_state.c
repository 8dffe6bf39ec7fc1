/* What survives the server: who is blamed for its end, and which layouts are taken over. */
#include <errno.h>
#include <unistd.h>

#include "fs/state.h"
#include "tests/unit/scratch.h"

static int make(void **slot)
{
	static int fd;
	static struct state *state;
	struct fail why = FAIL_INIT;
	fd = state_make(&state, &why);
	*slot = state;
	close(fd);
	return fd < 0;
}

static int unmake(void **slot)
{
	state_unmap(*slot);
	return 0;
}

static void nobody_is_blamed_for_nothing(void **slot)
{
	struct state *state = *slot;
	assert_false(state_blame(state));
	for (size_t i = 0; i < STATE_POISONS; i++)
		assert_int_equal(state->poisons[i].unique, 0);
}

static void the_request_at_hand_is_poison_after_two_crashes(void **slot)
{
	struct state *state = *slot;
	for (int crashes = 1; crashes <= 2; crashes++) {
		state->current = (struct state_current){ .unique = 42, .opcode = 15 };
		assert_true(state_blame(state));
		assert_int_equal(state->current.unique, 0);
		assert_int_equal(state_is_poison(state, 42), crashes == 2);
		assert_false(state_is_poison(state, 44));
	}
}

static void many_guilty_ones_do_not_crowd_out_one_that_is_poison(void **slot)
{
	struct state *state = *slot;
	for (int i = 0; i < 2; i++) {
		state->current = (struct state_current){ .unique = 42 };
		state_blame(state);
	}
	for (uint64_t unique = 100; unique < 100 + 3 * STATE_POISONS; unique++) {
		state->current = (struct state_current){ .unique = unique };
		state_blame(state);
	}
	assert_true(state_is_poison(state, 42));
}

static void a_host_is_blamed_where_no_request_is_at_hand(void **slot)
{
	struct state *state = *slot;
	state->current = (struct state_current){ .host = 8 };
	assert_true(state_blame(state));
	assert_int_equal(state->hosts[7].crashes, 1);
	state->current = (struct state_current){ .host = STATE_HOSTS + 1 };
	assert_false(state_blame(state));
}

static void another_layout_is_refused(void **slot)
{
	(void)slot;
	struct fail why = FAIL_INIT;
	struct state *state, *mapped;
	int fd = state_make(&state, &why);
	mapped = state_map(fd, &why);
	assert_non_null(mapped);
	state_unmap(mapped);
	state->layout++;
	assert_null(state_map(fd, &why));
	assert_int_equal(why.code, -EPROTO);
	state_unmap(state);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_is_blamed_for_nothing, make, unmake),
		cmocka_unit_test_setup_teardown(
			the_request_at_hand_is_poison_after_two_crashes, make, unmake),
		cmocka_unit_test_setup_teardown(
			many_guilty_ones_do_not_crowd_out_one_that_is_poison, make, unmake),
		cmocka_unit_test_setup_teardown(
			a_host_is_blamed_where_no_request_is_at_hand, make, unmake),
		cmocka_unit_test(another_layout_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
