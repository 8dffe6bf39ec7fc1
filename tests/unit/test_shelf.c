/* Shelves: the order of calls, which one is forgotten next, and who supersedes whom. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/running/shelf.h"

#define NOW 1000000
#define ENTRIES_MAX 64

struct world {
	struct shelves shelves;
	struct shelf *shelf;
	struct entry entries[ENTRIES_MAX];
	size_t count;
};

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	world->shelf = shelves_make(&world->shelves, "hello", 1000);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	shelves_release(&world->shelves);
	free(world);
	return 0;
}

/* A call of process pid that ended at NOW - age_ms; pid 0: of one that is not known. */
static struct entry *add_ended(struct world *world, uint64_t seq, pid_t pid, int64_t age_ms)
{
	struct entry *entry = &world->entries[world->count++];
	entry->call.seq = seq;
	entry->call.state = CALL_DONE;
	entry->call.changed_ms = NOW - age_ms;
	if (pid)
		entry->call.chain = (struct chain){ .links = { { pid, 1 } }, .count = 1 };
	shelf_insert(world->shelf, entry);
	world->shelf->finished_count++;
	shelf_supersede(entry);
	return entry;
}

static struct entry *add_running(struct world *world, uint64_t seq, pid_t pid)
{
	struct entry *entry = add_ended(world, seq, pid, 0);
	entry->call.state = CALL_RUNNING;
	world->shelf->finished_count--;
	return entry;
}

static void end(struct world *world, struct entry *entry)
{
	entry->call.state = CALL_DONE;
	entry->call.changed_ms = NOW;
	world->shelf->finished_count++;
	shelf_supersede(entry);
}

static void check_order(const struct shelf *shelf, const uint64_t *seqs, size_t count)
{
	const struct entry *entry = shelf->first, *before = NULL;
	for (size_t i = 0; i < count; i++, before = entry, entry = entry->next) {
		assert_non_null(entry);
		assert_int_equal(entry->call.seq, seqs[i]);
		assert_ptr_equal(entry->prev, before);
	}
	assert_null(entry);
	assert_ptr_equal(shelf->last, before);
}

static void a_shelf_is_of_one_tool_and_one_uid(void **state)
{
	struct world *world = *state;
	assert_ptr_equal(shelves_find(&world->shelves, "hello", 1000), world->shelf);
	assert_ptr_equal(shelves_make(&world->shelves, "hello", 1000), world->shelf);
	assert_null(shelves_find(&world->shelves, "hello", 1001));
	assert_null(shelves_find(&world->shelves, "hell", 1000));
	struct shelf *other = shelves_make(&world->shelves, "hello", 0);
	assert_ptr_not_equal(other, world->shelf);
	shelves_drop_empty(&world->shelves, other);
	assert_null(shelves_find(&world->shelves, "hello", 0));
}

static void a_shelf_in_use_is_not_dropped(void **state)
{
	struct world *world = *state;
	struct entry *entry = add_ended(world, 1, 1, 0);
	shelves_drop_empty(&world->shelves, world->shelf);
	assert_ptr_equal(shelves_find(&world->shelves, "hello", 1000), world->shelf);
	shelf_remove(entry);
	shelves_drop_empty(&world->shelves, world->shelf);
	assert_null(shelves_find(&world->shelves, "hello", 1000));
}

static void entries_stand_in_the_order_of_their_numbers(void **state)
{
	struct world *world = *state;
	const uint64_t seqs[] = { 5, 2, 9, 7, 1 };
	for (size_t i = 0; i < 5; i++)
		add_ended(world, seqs[i], 0, 0);
	check_order(world->shelf, (const uint64_t[]){ 1, 2, 5, 7, 9 }, 5);
	shelf_remove(&world->entries[3]);
	check_order(world->shelf, (const uint64_t[]){ 1, 2, 5, 9 }, 4);
	shelf_remove(&world->entries[4]);
	shelf_remove(&world->entries[2]);
	check_order(world->shelf, (const uint64_t[]){ 2, 5 }, 2);
	shelf_remove(&world->entries[0]);
	shelf_remove(&world->entries[1]);
	check_order(world->shelf, NULL, 0);
}

static void as_many_as_are_kept_stay_whatever_their_age(void **state)
{
	struct world *world = *state;
	for (uint64_t seq = 1; seq <= 4; seq++)
		add_ended(world, seq, 7, 1000 * SHELF_GRACE_MS);
	assert_null(shelf_surplus(world->shelf, 4, NOW));
}

static void what_the_same_process_has_superseded_goes_first(void **state)
{
	struct world *world = *state;
	add_ended(world, 1, 8, 5 * SHELF_GRACE_MS); /* older, but the last of its process */
	struct entry *first = add_ended(world, 2, 7, 0);
	add_ended(world, 3, 7, 0);
	assert_true(first->superseded);
	assert_ptr_equal(shelf_surplus(world->shelf, 2, NOW), first);
}

static void nobody_supersedes_what_is_not_known_or_of_another_process(void **state)
{
	struct world *world = *state;
	struct entry *unknown = add_ended(world, 1, 0, 0);
	struct entry *other = add_ended(world, 2, 8, 0);
	struct entry *again = add_ended(world, 3, 8, 0);
	again->call.chain.links[0].start = 2; /* its pid, used again */
	add_ended(world, 4, 0, 0);
	add_ended(world, 5, 8, 0);
	assert_false(unknown->superseded);
	assert_true(other->superseded);
	assert_false(again->superseded);
}

static void a_call_that_runs_neither_goes_nor_is_superseded(void **state)
{
	struct world *world = *state;
	struct entry *running = add_running(world, 1, 7);
	struct entry *ended = add_ended(world, 2, 7, 0);
	add_ended(world, 3, 7, 0);
	assert_false(running->superseded);
	assert_true(ended->superseded);
	assert_ptr_equal(shelf_surplus(world->shelf, 1, NOW), ended);
	end(world, running);
	assert_false(running->superseded);
	add_ended(world, 4, 7, 0);
	assert_true(world->entries[2].superseded);
}

/* Who reserves ids reads by them: the last of many parallel calls does not push out the others. */
static void a_call_with_a_reserved_id_is_not_superseded(void **state)
{
	struct world *world = *state;
	world->entries[0].named = true;
	struct entry *named = add_ended(world, 1, 7, 0);
	add_ended(world, 2, 7, 0);
	assert_false(named->superseded);
	assert_null(shelf_surplus(world->shelf, 1, NOW));
}

static void what_has_just_ended_has_some_time_to_be_read(void **state)
{
	struct world *world = *state;
	struct entry *oldest = add_ended(world, 1, 1, SHELF_GRACE_MS + 1);
	add_ended(world, 2, 2, SHELF_GRACE_MS);
	add_ended(world, 3, 3, 0);
	assert_ptr_equal(shelf_surplus(world->shelf, 1, NOW), oldest);
	shelf_remove(oldest);
	world->shelf->finished_count--;
	assert_null(shelf_surplus(world->shelf, 1, NOW));
	assert_ptr_equal(shelf_surplus(world->shelf, 1, NOW + 1), &world->entries[1]);
}

/* The call that was begun first may be the one that took longest. */
static void age_counts_from_the_end_of_a_call(void **state)
{
	struct world *world = *state;
	add_ended(world, 1, 1, 0);
	struct entry *oldest = add_ended(world, 2, 2, SHELF_GRACE_MS + 1);
	assert_ptr_equal(shelf_first_ended(world->shelf), oldest);
	assert_ptr_equal(shelf_surplus(world->shelf, 1, NOW), oldest);
}

static void beyond_the_hard_factor_even_what_has_just_ended_goes(void **state)
{
	struct world *world = *state;
	for (uint64_t seq = 1; seq <= SHELF_HARD_FACTOR; seq++)
		add_ended(world, seq, (pid_t)seq, 5);
	assert_null(shelf_surplus(world->shelf, 1, NOW));
	add_ended(world, SHELF_HARD_FACTOR + 1, 9999, 6);
	assert_ptr_equal(shelf_surplus(world->shelf, 1, NOW), &world->entries[SHELF_HARD_FACTOR]);
}

static void the_heaviest_shelf_is_one_that_can_give_something(void **state)
{
	struct world *world = *state;
	struct shelf *other = shelves_make(&world->shelves, "hello", 0);
	assert_null(shelves_heaviest(&world->shelves));
	other->bytes = 1000;
	other->finished_count = 1;
	assert_null(shelves_heaviest(&world->shelves));
	world->shelf->bytes = 100;
	world->shelf->finished_count = 2;
	assert_ptr_equal(shelves_heaviest(&world->shelves), world->shelf);
	other->finished_count = 2;
	assert_ptr_equal(shelves_heaviest(&world->shelves), other);
}

#define shelf_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		shelf_test(a_shelf_is_of_one_tool_and_one_uid),
		shelf_test(a_shelf_in_use_is_not_dropped),
		shelf_test(entries_stand_in_the_order_of_their_numbers),
		shelf_test(as_many_as_are_kept_stay_whatever_their_age),
		shelf_test(what_the_same_process_has_superseded_goes_first),
		shelf_test(nobody_supersedes_what_is_not_known_or_of_another_process),
		shelf_test(a_call_that_runs_neither_goes_nor_is_superseded),
		shelf_test(a_call_with_a_reserved_id_is_not_superseded),
		shelf_test(what_has_just_ended_has_some_time_to_be_read),
		shelf_test(age_counts_from_the_end_of_a_call),
		shelf_test(beyond_the_hard_factor_even_what_has_just_ended_goes),
		shelf_test(the_heaviest_shelf_is_one_that_can_give_something),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
