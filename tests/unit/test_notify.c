#include "core/tools/notify.h"
#include "tests/unit/scratch.h"

struct world {
	struct scratch *scratch;
	struct loop *loop;
	struct notify *notify;
	struct loop_timer limit;
	struct notify_place places[4];
	struct buf log; /* "PLACE:NAME ...", '!' where a place is not watched any more */
	size_t wakes;
};

static void on_wake(void *arg)
{
	struct world *world = arg;
	world->wakes++;
	notify_drain(world->notify);
	loop_stop(world->loop, 0);
}

static void on_event(void *arg, struct notify_place *place, uint32_t mask, const char *name)
{
	struct world *world = arg;
	buf_printf(&world->log, "%td:%s%s ", place - world->places, name,
		mask & IN_IGNORED ? "!" : "");
}

static const struct notify_events events = { on_wake, on_event };

static void on_limit(void *arg)
{
	struct world *world = arg;
	loop_stop(world->loop, 1);
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct fail why = FAIL_INIT;
	void *scratch = NULL;
	if (scratch_setup(&scratch) < 0)
		return -1;
	world->scratch = scratch;
	world->loop = loop_new(&why);
	world->notify = notify_new(world->loop, 3, &events, world, &why);
	buf_init(&world->log, 1 << 20);
	*state = world;
	return world->notify ? 0 : -1;
}

static int teardown(void **state)
{
	struct world *world = *state;
	void *scratch = world->scratch;
	notify_free(world->notify);
	for (size_t i = 0; i < 4; i++)
		assert_null(world->places[i].inode);
	loop_free(world->loop);
	buf_release(&world->log);
	free(world);
	return scratch_teardown(&scratch);
}

static int add(struct world *world, const char *dir, uint32_t mask, size_t place)
{
	scratch_mkdir(world->scratch, dir);
	auto_close int fd = openat(world->scratch->fd, dir, O_PATH | O_CLOEXEC);
	return notify_add(world->notify, fd, mask, &world->places[place]);
}

/* What came of it, after one wake. */
static void assert_heard(struct world *world, const char *wanted)
{
	loop_arm_timer(world->loop, &world->limit, 5000, on_limit, world);
	assert_int_equal(loop_run(world->loop), 0);
	loop_cancel_timer(&world->limit);
	assert_string_equal(buf_str(&world->log), wanted);
	buf_reset(&world->log);
	notify_resume(world->notify);
}

static void places_with_one_inode_share_a_watch(void **state)
{
	struct world *world = *state;
	assert_int_equal(add(world, "a", IN_CREATE, 0), 0);
	assert_int_equal(add(world, "a", IN_CREATE | IN_DELETE, 1), 0);
	assert_int_equal(add(world, "b", IN_CREATE, 2), 0);
	assert_int_equal(notify_count(world->notify), 2);
	scratch_mkdir(world->scratch, "a/x");
	assert_heard(world, "1:x 0:x ");
	unlinkat(world->scratch->fd, "a/x", AT_REMOVEDIR);
	assert_heard(world, "1:x ");
	notify_remove(world->notify, &world->places[1]);
	notify_remove(world->notify, &world->places[1]);
	assert_int_equal(notify_count(world->notify), 2);
	scratch_mkdir(world->scratch, "a/y");
	assert_heard(world, "0:y ");
	notify_remove(world->notify, &world->places[0]);
	assert_int_equal(notify_count(world->notify), 1);
	scratch_mkdir(world->scratch, "a/z");
	scratch_mkdir(world->scratch, "b/z");
	assert_heard(world, "2:z ");
}

static void a_directory_that_goes_takes_its_places_along(void **state)
{
	struct world *world = *state;
	assert_int_equal(add(world, "a", IN_DELETE_SELF, 0), 0);
	unlinkat(world->scratch->fd, "a", AT_REMOVEDIR);
	assert_heard(world, "0: 0:! ");
	assert_null(world->places[0].inode);
	assert_int_equal(notify_count(world->notify), 0);
	notify_remove(world->notify, &world->places[0]);
}

static void the_limit_is_an_error(void **state)
{
	struct world *world = *state;
	assert_int_equal(add(world, "a", IN_CREATE, 0), 0);
	assert_int_equal(add(world, "b", IN_CREATE, 1), 0);
	assert_int_equal(add(world, "c", IN_CREATE, 2), 0);
	assert_int_equal(add(world, "d", IN_CREATE, 3), -ENOSPC);
	assert_null(world->places[3].inode);
	notify_remove(world->notify, &world->places[0]);
	assert_int_equal(add(world, "d", IN_CREATE, 3), 0);
}

/* Many equal events in a row are one to the kernel, and one wake. */
static void a_paused_queue_is_merged(void **state)
{
	struct world *world = *state;
	assert_int_equal(add(world, "a", IN_MODIFY, 0), 0);
	scratch_write(world->scratch, "a/f", "");
	auto_close int fd = openat(world->scratch->fd, "a/f", O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(io_write_all(fd, "x", 1), 0);
	assert_heard(world, "0:f ");
	assert_int_equal(world->wakes, 1);
}

#define world_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(places_with_one_inode_share_a_watch),
		world_test(a_directory_that_goes_takes_its_places_along),
		world_test(the_limit_is_an_error),
		world_test(a_paused_queue_is_merged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
