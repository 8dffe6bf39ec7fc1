/* What directories hold: offsets that mean the same when others come and go, nothing of others. */
#include "core/tools/root.h"
#include "fs/listing.h"
#include "fs/server.h"
#include "tests/unit/scratch.h"

struct world {
	void *scratch;
	struct scratch dir;
	struct server server;
	struct forest forest;
	struct root *root;
};

static struct tool *new_tool(struct world *world, const char *name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->label = xstrdup(name);
	tool->description = xstrdup("");
	tool->body = xstrdup("");
	tool->source = xstrdup(world->dir.path);
	tool->dir_name = xstrdup(name);
	tool->dir = xasprintf("%s/%s", world->dir.path, name);
	tool->root = root_ref(world->root);
	return tool;
}

/* The tree shows tools "tool-FROM" to "tool-TO", without the last. */
static void show_tools(struct world *world, int from, int to)
{
	struct tool *tools[200];
	struct faults faults;
	memset(&faults, 0, sizeof(faults));
	for (int i = from; i < to; i++) {
		auto_free char *name = xasprintf("tool-%03d", i);
		tools[i - from] = new_tool(world, name);
	}
	static uint64_t generation = 0;
	snapshot_unref(world->forest.only.snapshot);
	world->forest.only.snapshot =
		snapshot_new(tools, (size_t)(to - from), &faults, ++generation);
	for (int i = from; i < to; i++)
		tool_unref(tools[i - from]);
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	int result = scratch_setup(&world->scratch), code = 0;
	world->dir = *(struct scratch *)world->scratch;
	scratch_mkdir(&world->dir, "tool-000/bin");
	scratch_mkdir(&world->dir, "state");
	world->root = root_open(world->dir.path, NULL, &code);
	const struct calls_config config = { .dir_fd = openat(world->dir.fd, "state",
						     O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	world->server.state_fd = config.dir_fd;
	world->server.forest = &world->forest;
	world->server.calls = calls_new(NULL, NULL, &config);
	show_tools(world, 0, 1);
	*state = world;
	return result < 0 || !world->root ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	calls_free(world->server.calls);
	close(world->server.state_fd);
	snapshot_unref(world->forest.only.snapshot);
	files_release(&world->server.files);
	root_unref(world->root);
	int result = scratch_teardown(&world->scratch);
	free(world);
	return result;
}

static struct listing *list(struct world *world, enum node_kind kind, uid_t uid)
{
	struct node dir;
	const struct fuse_ctx ctx = { .uid = uid, .gid = uid };
	struct fail why = FAIL_INIT;
	node_set(&world->server, &dir, kind,
		kind == NODE_ROOT || kind == NODE_META ? NULL
						       : world->forest.only.snapshot->tools[0]);
	struct listing *listing = listing_new(&world->server, &dir, &ctx, &why);
	assert_string_equal(why.text, "");
	/* Whatever it is of: in order, each offset once, and none that a signed one cannot hold. */
	assert_string_equal(listing->items[0].name, ".");
	assert_string_equal(listing->items[1].name, "..");
	for (size_t i = 0; i < listing->count; i++) {
		uint64_t offset = listing->items[i].offset;
		assert_true(offset > 0 && offset <= INT64_MAX);
		assert_true(i == 0 || offset > listing->items[i - 1].offset);
		assert_int_equal(listing_after(listing, offset), i + 1);
		assert_int_equal(listing_after(listing, offset - 1), i);
	}
	assert_int_equal(listing_after(listing, 0), 0);
	return listing;
}

static const struct listing_entry *find(const struct listing *listing, const char *name)
{
	const struct listing_entry *found = NULL;
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->items[i].name, name) == 0) {
			assert_null(found); /* no name twice */
			found = &listing->items[i];
		}
	return found;
}

static void check_same_place(
	const struct listing *before, const struct listing *after, const char *name)
{
	const struct listing_entry *a = find(before, name), *b = find(after, name);
	assert_non_null(a);
	assert_non_null(b);
	assert_true(a->offset == b->offset && a->ino == b->ino && a->type == b->type);
}

static void tools_keep_their_places_when_others_come_and_go(void **state)
{
	struct world *world = *state;
	show_tools(world, 0, 100);
	struct listing *before = list(world, NODE_ROOT, 0);
	show_tools(world, 50, 200);
	struct listing *after = list(world, NODE_ROOT, 0);
	for (int i = 50; i < 100; i++) {
		auto_free char *name = xasprintf("tool-%03d", i);
		check_same_place(before, after, name);
	}
	assert_null(find(after, "tool-000"));
	/* Who had come to a tool that is gone now goes on behind it, and misses none. */
	size_t next = listing_after(after, find(before, "tool-000")->offset);
	for (size_t i = 0; i < after->count; i++)
		if (after->items[i].offset > find(before, "tool-000")->offset)
			assert_true(i >= next);
	const char *const made[] = { "README.md", "prompt.md", "tools.json", ".pegfs" };
	for (size_t i = 0; i < 4; i++)
		assert_non_null(find(after, made[i]));
	listing_free(before);
	listing_free(after);
}

static void files_keep_their_places_when_others_come_and_go(void **state)
{
	struct world *world = *state;
	for (int i = 0; i < 300; i++) {
		auto_free char *path = xasprintf("tool-000/file-%d", i);
		scratch_write(&world->dir, path, "");
	}
	struct listing *before = list(world, NODE_TOOL, 0);
	for (int i = 0; i < 300; i += 2) {
		auto_free char *path = xasprintf("tool-000/file-%d", i);
		auto_free char *other = xasprintf("tool-000/other-%d", i);
		assert_int_equal(unlinkat(world->dir.fd, path, 0), 0);
		scratch_write(&world->dir, other, "");
	}
	struct listing *after = list(world, NODE_TOOL, 0);
	for (int i = 1; i < 300; i += 2) {
		auto_free char *name = xasprintf("file-%d", i);
		check_same_place(before, after, name);
	}
	assert_int_equal(before->count, after->count);
	listing_free(before);
	listing_free(after);
}

static void a_tool_s_own_files_are_shown_but_for_names_that_the_tree_makes(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "tool-000/TOOL.md", "");
	scratch_write(&world->dir, "tool-000/call", "its own");
	scratch_mkdir(&world->dir, "tool-000/schema.json");
	scratch_link(&world->dir, "TOOL.md", "tool-000/link");
	assert_int_equal(mkfifoat(world->dir.fd, "tool-000/pipe", 0666), 0);
	struct listing *listing = list(world, NODE_TOOL, 0);
	assert_int_equal(find(listing, "TOOL.md")->type, S_IFREG);
	assert_int_equal(find(listing, "bin")->type, S_IFDIR);
	assert_int_equal(find(listing, "link")->type, S_IFLNK);
	assert_int_equal(find(listing, "schema.json")->type, S_IFREG);
	assert_int_equal(ino_class(find(listing, "call")->ino), INO_STATIC);
	assert_null(find(listing, "pipe"));
	listing_free(listing);
}

static void calls_are_those_of_who_looks(void **state)
{
	struct world *world = *state;
	struct fail why = FAIL_INIT;
	for (int i = 0; i < 40; i++) {
		struct caller caller;
		memset(&caller, 0, sizeof(caller));
		caller.who.uid = (uid_t)(1000 + i % 2);
		auto_free char *id = xasprintf("job-%d", i);
		assert_true(calls_reserve(world->server.calls,
				    world->forest.only.snapshot->tools[0], &caller, id, &why) > 0);
	}
	struct listing *one = list(world, NODE_CALLS, 1000), *other = list(world, NODE_CALLS, 1002);
	assert_int_equal(one->count, 2 + 20);
	assert_non_null(find(one, "job-0"));
	assert_null(find(one, "job-1"));
	assert_int_equal(other->count, 2);
	listing_free(one);
	listing_free(other);
}

static void a_directory_that_is_gone_is_an_error(void **state)
{
	struct world *world = *state;
	assert_int_equal(io_remove_tree(world->dir.fd, "tool-000"), 0);
	struct node dir;
	const struct fuse_ctx ctx = { .uid = 0 };
	struct fail why = FAIL_INIT;
	node_set(&world->server, &dir, NODE_TOOL, world->forest.only.snapshot->tools[0]);
	assert_null(listing_new(&world->server, &dir, &ctx, &why));
	assert_int_equal(why.code, -ENOENT);
}

#define listing_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		listing_test(tools_keep_their_places_when_others_come_and_go),
		listing_test(files_keep_their_places_when_others_come_and_go),
		listing_test(a_tool_s_own_files_are_shown_but_for_names_that_the_tree_makes),
		listing_test(calls_are_those_of_who_looks),
		listing_test(a_directory_that_is_gone_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
