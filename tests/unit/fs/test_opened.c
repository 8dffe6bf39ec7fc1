/* What is open is noted for the next server, in a ring. */
#include <string.h>
#include <unistd.h>

#include "fs/opened.h"
#include "tests/unit/scratch.h"

static struct opened reopened(const struct scratch *scratch)
{
	struct opened opened = { .fd = 0 };
	opened_load(&opened, scratch->fd);
	return opened;
}

static struct stat stat_of(size_t size, time_t mtime)
{
	struct stat st = { .st_size = (off_t)size, .st_mtim = { .tv_sec = mtime } };
	return st;
}

static void note(struct opened *opened, uint64_t ino, const char *text, time_t mtime)
{
	const struct stat st = stat_of(strlen(text), mtime);
	opened_note(opened, ino, text, &st);
}

static void assert_noted(struct opened *opened, uint64_t ino, const char *text)
{
	struct bytes *bytes = opened_get(opened, ino);
	assert_non_null(bytes);
	assert_string_equal(bytes->data, text);
	assert_int_equal(bytes->len, strlen(text));
	bytes_unref(bytes);
}

static void what_one_server_notes_the_next_one_finds(void **state)
{
	struct opened first = reopened(*state);
	note(&first, 7, "seven", 1);
	note(&first, 8, "", 1);
	note(&first, 7, "seven, later", 2);
	opened_release(&first);
	struct opened next = reopened(*state);
	assert_noted(&next, 7, "seven, later");
	assert_noted(&next, 8, "");
	assert_null(opened_get(&next, 9));
	opened_release(&next);
}

static void a_note_is_of_one_size_and_time(void **state)
{
	struct opened opened = reopened(*state);
	note(&opened, 7, "seven", 1);
	const struct stat same = stat_of(5, 1), longer = stat_of(6, 1), later = stat_of(5, 2);
	assert_true(opened_has(&opened, 7, &same));
	assert_false(opened_has(&opened, 7, &longer));
	assert_false(opened_has(&opened, 7, &later));
	assert_false(opened_has(&opened, 8, &same));
	struct stat st = stat_of(0, 0);
	assert_true(opened_stat(&opened, 7, &st));
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mtim.tv_sec, 1);
	assert_false(opened_stat(&opened, 8, &st));
	opened_release(&opened);
}

static void the_oldest_make_room(void **state)
{
	struct opened opened = reopened(*state);
	struct stat file;
	static char large[OPENED_MAX + 1];
	memset(large, 'x', sizeof(large) - 1);
	const struct stat st = stat_of(OPENED_MAX - 1000, 1),
			  too_large = stat_of(OPENED_MAX + 1, 1);
	opened_note(&opened, 1, large, &too_large);
	assert_null(opened_get(&opened, 1));
	const uint64_t last = 3 * OPENED_SIZE / OPENED_MAX;
	for (uint64_t ino = 1; ino <= last; ino++)
		opened_note(&opened, ino, large, &st);
	note(&opened, last + 1, "last", 1);
	for (int i = 0; i < 2; i++) {
		assert_null(opened_get(&opened, 1));
		assert_noted(&opened, last + 1, "last");
		struct bytes *bytes = opened_get(&opened, last - OPENED_SIZE / OPENED_MAX / 2);
		assert_non_null(bytes);
		assert_memory_equal(bytes->data, large, OPENED_MAX - 1000);
		bytes_unref(bytes);
		opened_release(&opened);
		opened = reopened(*state);
	}
	assert_int_equal(fstat(opened.fd, &file), 0);
	assert_true(file.st_size <= (off_t)OPENED_SIZE + 4096);
	opened_release(&opened);
}

static void a_file_that_is_something_else_is_begun_anew(void **state)
{
	const struct scratch *scratch = *state;
	scratch_write(scratch, "opened", "12345678abcdefgh and what is no note at all");
	struct opened opened = reopened(scratch);
	assert_null(opened_get(&opened, 7));
	note(&opened, 7, "seven", 1);
	assert_noted(&opened, 7, "seven");
	opened_release(&opened);
}

#define scratch_test(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(what_one_server_notes_the_next_one_finds),
		scratch_test(a_note_is_of_one_size_and_time),
		scratch_test(the_oldest_make_room),
		scratch_test(a_file_that_is_something_else_is_begun_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
