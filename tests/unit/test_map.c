/* The map against a plain array, and what a hash table gets wrong most easily: removal. */
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

#include "core/base/map.h"

#define KEYS 257

static int values[KEYS]; /* a value is a pointer into this */

static void an_empty_map_holds_nothing(void **state)
{
	(void)state;
	struct map map = MAP_INIT;
	size_t at = 0;
	assert_null(map_get(&map, 0));
	assert_null(map_remove(&map, 0));
	assert_null(map_next(&map, &at));
	map_release(&map);
}

static void put_gives_the_former_value_and_counts_keys_once(void **state)
{
	(void)state;
	struct map map = MAP_INIT;
	assert_null(map_put(&map, 7, &values[0]));
	assert_ptr_equal(map_put(&map, 7, &values[1]), &values[0]);
	assert_int_equal(map.count, 1);
	assert_ptr_equal(map_get(&map, 7), &values[1]);
	assert_ptr_equal(map_remove(&map, 7), &values[1]);
	assert_null(map_get(&map, 7));
	assert_int_equal(map.count, 0);
	map_release(&map);
}

static void zero_and_the_largest_number_are_keys_like_others(void **state)
{
	(void)state;
	struct map map = MAP_INIT;
	map_put(&map, 0, &values[0]);
	map_put(&map, UINT64_MAX, &values[1]);
	assert_ptr_equal(map_get(&map, 0), &values[0]);
	assert_ptr_equal(map_get(&map, UINT64_MAX), &values[1]);
	map_release(&map);
}

/* What the map should hold: for each key its value, or NULL. */
static void check_against(const struct map *map, int *const wanted[], const uint64_t keys[])
{
	size_t count = 0;
	for (size_t i = 0; i < KEYS; i++) {
		assert_ptr_equal(map_get(map, keys[i]), wanted[i]);
		count += wanted[i] != NULL;
	}
	assert_int_equal(map->count, count);
	size_t at = 0, seen = 0;
	while (map_next(map, &at))
		seen++;
	assert_int_equal(seen, count);
}

/* Keys of every sort that the tree uses: counters, numbers with a class on top, hashes. */
static void fill_keys(uint64_t keys[KEYS], int sort)
{
	for (size_t i = 0; i < KEYS; i++)
		keys[i] = sort == 0   ? i
			  : sort == 1 ? UINT64_C(4) << 60 | i << 52
				      : map_hash(MAP_HASH_SEED, &i, sizeof(i));
}

static void any_order_of_changes_leaves_what_an_array_would(void **state)
{
	(void)state;
	srand(1);
	for (int sort = 0; sort < 3; sort++) {
		struct map map = MAP_INIT;
		uint64_t keys[KEYS];
		int *wanted[KEYS] = { NULL };
		fill_keys(keys, sort);
		for (int step = 0; step < 20000; step++) {
			size_t i = (size_t)rand() % KEYS;
			int *value = &values[rand() % KEYS];
			/* Now mostly filling, now mostly emptying. */
			if (rand() % 100 < (step / 2000 % 2 ? 20 : 80)) {
				assert_ptr_equal(map_put(&map, keys[i], value), wanted[i]);
				wanted[i] = value;
			} else {
				assert_ptr_equal(map_remove(&map, keys[i]), wanted[i]);
				wanted[i] = NULL;
			}
			if (step % 500 == 0)
				check_against(&map, wanted, keys);
		}
		check_against(&map, wanted, keys);
		map_release(&map);
	}
}

static void a_map_that_shrinks_and_fills_again_does_not_grow_for_ever(void **state)
{
	(void)state;
	struct map map = MAP_INIT;
	for (uint64_t key = 0; key < 100000; key++) {
		map_put(&map, key, &values[0]);
		if (key >= 8)
			assert_non_null(map_remove(&map, key - 8));
	}
	assert_int_equal(map.count, 8);
	assert_in_range(map.size, 1, 64);
	map_release(&map);
}

static void a_hash_goes_on_from_its_seed(void **state)
{
	(void)state;
	uint64_t whole = map_hash(MAP_HASH_SEED, "abcd", 4);
	assert_true(map_hash(map_hash(MAP_HASH_SEED, "ab", 2), "cd", 2) == whole);
	assert_true(map_hash(MAP_HASH_SEED, "", 0) == MAP_HASH_SEED);
	/* FNV-1a's own example. */
	assert_true(map_hash(MAP_HASH_SEED, "a", 1) == 0xaf63dc4c8601ec8cu);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_holds_nothing),
		cmocka_unit_test(put_gives_the_former_value_and_counts_keys_once),
		cmocka_unit_test(zero_and_the_largest_number_are_keys_like_others),
		cmocka_unit_test(any_order_of_changes_leaves_what_an_array_would),
		cmocka_unit_test(a_map_that_shrinks_and_fills_again_does_not_grow_for_ever),
		cmocka_unit_test(a_hash_goes_on_from_its_seed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
