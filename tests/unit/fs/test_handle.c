/* Open files: their numbers, and how many a uid may have. */
#include <sys/resource.h>

#include "fs/handle.h"
#include "fs/listing.h"
#include "tests/unit/fs/pages.h"
#include "tests/unit/scratch.h"

#define FILES 100 /* descriptors of this process: half of them for a uid */

struct world {
	struct handles handles;
	struct state *state;
};

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	const struct rlimit limit = { FILES, FILES };
	world->state = pages_calloc(sizeof(*world->state));
	world->state->next_fh = 1;
	*state = world;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	handles_init(&world->handles, world->state);
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	handles_release(&world->handles);
	free(world->state);
	free(world);
	return 0;
}

static uint64_t add(struct world *world, uid_t uid)
{
	return handles_add(&world->handles, handle_new(HANDLE_BYTES), uid);
}

static void each_handle_has_a_number_of_its_own(void **state)
{
	struct world *world = *state;
	uint64_t first = add(world, 1), second = add(world, 1);
	assert_true(first > 0 && second > first);
	assert_non_null(handles_get(&world->handles, first));
	handles_drop(&world->handles, first);
	assert_null(handles_get(&world->handles, first));
	assert_non_null(handles_get(&world->handles, second));
	handles_drop(&world->handles, first);
	handles_drop(&world->handles, 12345);
	assert_true(add(world, 1) > second);
}

static void a_uid_takes_half_and_leaves_the_rest_to_others(void **state)
{
	struct world *world = *state;
	uint64_t last = 0;
	for (int i = 0; i < FILES / 2; i++)
		assert_true((last = add(world, 1)) > 0);
	assert_int_equal(add(world, 1), 0);
	assert_true(add(world, 2) > 0);
	handles_drop(&world->handles, last);
	assert_true(add(world, 1) > 0);
	assert_int_equal(add(world, 1), 0);
}

static void what_a_directory_holds_counts(void **state)
{
	struct world *world = *state;
	struct handle *handle = handle_new(HANDLE_DIR);
	handle->listing = xcalloc(1, sizeof(*handle->listing));
	handle->listing->items = xcalloc(2000, sizeof(*handle->listing->items));
	handle->listing->count = 2000;
	assert_int_equal(handles_add(&world->handles, handle, 1), 0);
	handle = handle_new(HANDLE_DIR);
	handle->listing = xcalloc(1, sizeof(*handle->listing));
	handle->listing->items = xcalloc(500, sizeof(*handle->listing->items));
	handle->listing->count = 500;
	uint64_t fh = handles_add(&world->handles, handle, 1);
	assert_true(fh > 0);
	for (int i = 0; i < FILES / 2 - 1 - 500 / 16; i++)
		assert_true(add(world, 1) > 0);
	assert_int_equal(add(world, 1), 0);
	handles_drop(&world->handles, fh);
	assert_true(add(world, 1) > 0);
}

static struct handle *new_text(struct bytes *bytes)
{
	struct handle *handle = handle_new(HANDLE_BYTES);
	handle->bytes = bytes;
	return handle;
}

static void texts_in_memory_count_but_for_shared_ones(void **state)
{
	struct world *world = *state;
	auto_free char *text = xcalloc(500000, 1);
	assert_true(handles_add(&world->handles, new_text(bytes_copy(text, 500000)), 1) > 0);
	assert_int_equal(handles_add(&world->handles, new_text(bytes_copy(text, 500000)), 1), 0);
	struct bytes *shared = bytes_copy(text, 500000);
	for (int i = 0; i < FILES / 2; i++)
		assert_true(handles_add(&world->handles, new_text(bytes_ref(shared)), 2) > 0);
	bytes_unref(shared);
}

static void an_open_that_comes_again_gets_the_number_that_it_got(void **state)
{
	struct world *world = *state;
	assert_non_null(handles_keep(&world->handles, 5, 77));
	assert_int_equal(
		handles_opened_by(&world->handles, 77), 0); /* it never came to an answer */
	assert_non_null(handles_keep(&world->handles, 5, 78));
	uint64_t fh = handles_add(&world->handles, handle_new(HANDLE_CANCEL), 1);
	assert_int_equal(handles_opened_by(&world->handles, 78), fh);
	assert_int_equal(handles_opened_by(&world->handles, 77), 0);
	handles_drop(&world->handles, fh);
	assert_int_equal(handles_opened_by(&world->handles, 78), 0);
}

#define handle_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		handle_test(each_handle_has_a_number_of_its_own),
		handle_test(a_uid_takes_half_and_leaves_the_rest_to_others),
		handle_test(what_a_directory_holds_counts),
		handle_test(an_open_that_comes_again_gets_the_number_that_it_got),
		handle_test(texts_in_memory_count_but_for_shared_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
