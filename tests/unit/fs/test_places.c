/* Numbers of users' trees and tools: each is given once, also by the servers that follow. */
#include "fs/places.h"
#include "tests/unit/scratch.h"

static bool is_kept(void *arg, const char *key)
{
	return strstr(key, arg) != NULL;
}

static void begin(const struct scratch *scratch, struct places *places)
{
	memset(places, 0, sizeof(*places));
	places_load(places, scratch->fd);
}

static void a_key_has_one_number_and_a_number_one_key(void **state)
{
	struct places places;
	begin(*state, &places);
	uint32_t a = places_number(&places, "ada@x/hello"),
		 b = places_number(&places, "bob@x/hello");
	assert_true(a != 0 && b != 0 && a != b);
	assert_int_equal(places_number(&places, "ada@x/hello"), a);
	assert_string_equal(places_key(&places, a), "ada@x/hello");
	assert_string_equal(places_key(&places, b), "bob@x/hello");
	assert_null(places_key(&places, 0));
	assert_null(places_key(&places, b + 1));
	places_release(&places);
}

static void the_next_server_knows_them(void **state)
{
	struct places places;
	uint32_t numbers[100];
	begin(*state, &places);
	for (int i = 0; i < 100; i++) {
		auto_free char *key = xasprintf("user%d@x/", i);
		numbers[i] = places_number(&places, key);
	}
	places_release(&places);
	begin(*state, &places);
	for (int i = 99; i >= 0; i--) {
		auto_free char *key = xasprintf("user%d@x/", i);
		assert_int_equal(places_number(&places, key), numbers[i]);
		assert_string_equal(places_key(&places, numbers[i]), key);
	}
	assert_true(places_number(&places, "new@x/") > numbers[99]);
	places_release(&places);
}

static void half_an_entry_counts_for_nothing(void **state)
{
	struct scratch *scratch = *state;
	struct places places;
	begin(scratch, &places);
	uint32_t first = places_number(&places, "ada@x/");
	places_release(&places);
	static const char *const rests[] = { "bob@x/", "bob@x/\0",
		"bob@x/\0"
		"2",
		"\0", "" };
	static const size_t lens[] = { 6, 7, 8, 1, 0 };
	for (size_t i = 0; i < sizeof(rests) / sizeof(*rests); i++) {
		auto_close int fd = openat(scratch->fd, "places", O_WRONLY | O_APPEND);
		assert_int_equal(io_write_all(fd, rests[i], lens[i]), 0);
		begin(scratch, &places);
		assert_int_equal(places.by_number.count, 1);
		assert_int_equal(places_number(&places, "ada@x/"), first);
		places_release(&places);
	}
	/* And what comes then stands where it was. */
	begin(scratch, &places);
	uint32_t next = places_number(&places, "bob@x/");
	places_release(&places);
	begin(scratch, &places);
	assert_int_equal(places_number(&places, "bob@x/"), next);
	places_release(&places);
}

static void what_is_gone_makes_room_and_its_number_does_not_come_again(void **state)
{
	struct places places;
	begin(*state, &places);
	uint32_t kept = places_number(&places, "kept@x/hello"), last = 0;
	places.is_there = is_kept;
	places.arg = (char[]){ "kept" };
	places.sweep_at = 10;
	for (int i = 0; i < 9; i++) {
		auto_free char *key = xasprintf("gone@x/tool-%d", i);
		last = places_number(&places, key);
	}
	assert_int_equal(places.by_number.count, 10);
	uint32_t next = places_number(&places, "kept@x/other");
	assert_true(next > last);
	assert_int_equal(places.by_number.count, 2);
	assert_null(places_key(&places, last));
	assert_int_equal(places_number(&places, "kept@x/hello"), kept);
	places_release(&places);
	begin(*state, &places);
	assert_int_equal(places.by_number.count, 2);
	assert_string_equal(places_key(&places, kept), "kept@x/hello");
	assert_true(places_number(&places, "another@x/") > next);
	places_release(&places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_key_has_one_number_and_a_number_one_key),
		scratch_test(the_next_server_knows_them),
		scratch_test(half_an_entry_counts_for_nothing),
		scratch_test(what_is_gone_makes_room_and_its_number_does_not_come_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
