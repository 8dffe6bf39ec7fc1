#include <time.h>

#include "core/tools/registry.h"
#include "tests/unit/scratch.h"

/* ---- helpers */

static void write_tool(
	const struct scratch *scratch, const char *dir, const char *name, const char *description)
{
	auto_free char *manifest = xasprintf("%s/TOOL.md", dir);
	auto_free char *entry = xasprintf("%s/index.ts", dir);
	auto_free char *text =
		xasprintf("---\nname: %s\nlabel: %s\ndescription: %s\nversion: 1\n---\n# %s\n",
			name, description, description, description);
	scratch_write(scratch, manifest, text);
	scratch_write(scratch, entry, description);
}

/* dirs as in PI_TOOLS_DIRS, each below the scratch directory. */
static struct registry *registry_of(const struct scratch *scratch, const char *const *dirs)
{
	auto_buf struct buf list = BUF_INIT(10000);
	for (; *dirs; dirs++)
		buf_printf(&list, "%s%s/%s", list.len ? ":" : "", scratch->path, *dirs);
	return registry_new(buf_str(&list));
}

#define DIRS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* The tools as "NAME=DESCRIPTION ...|code ...". */
static void assert_holds(const struct registry *registry, const char *wanted)
{
	const struct snapshot *snapshot = registry_current(registry);
	auto_buf struct buf out = BUF_INIT(1 << 20);
	for (size_t i = 0; i < snapshot->count; i++)
		buf_printf(&out, "%s%s=%s", i ? " " : "", snapshot->tools[i]->name,
			snapshot->tools[i]->description);
	buf_putc(&out, '|');
	for (size_t i = 0; i < snapshot->faults.count; i++)
		buf_printf(&out, "%s%s", i ? " " : "", snapshot->faults.items[i].code);
	assert_string_equal(buf_str(&out), wanted);
}

static void assert_scanned(
	const struct scratch *scratch, const char *const *dirs, const char *wanted)
{
	struct registry *registry = registry_of(scratch, dirs);
	registry_scan(registry);
	assert_holds(registry, wanted);
	registry_free(registry);
}

/* ---- sources */

static void assert_sources(const char *dirs, const char *const *wanted)
{
	struct registry *registry = registry_new(dirs);
	size_t count = 0;
	for (; wanted[count]; count++)
		assert_string_equal(registry_source_path(registry, count), wanted[count]);
	assert_int_equal(registry_source_count(registry), count);
	registry_free(registry);
}

static void r72_sources_are_separated_by_colons(void **state)
{
	(void)state;
	assert_sources("/a:/b/c", DIRS("/a", "/b/c"));
	assert_sources("/a", DIRS("/a"));
	assert_sources("", DIRS(NULL));
	assert_sources(NULL, DIRS(NULL));
}

static void r96_empty_segments_and_repetitions_are_passed_over(void **state)
{
	(void)state;
	assert_sources(":/a::/b:", DIRS("/a", "/b"));
	assert_sources("/a:/b:/a/:/a", DIRS("/a", "/b"));
	assert_sources(":::", DIRS(NULL));
	assert_sources("/", DIRS("/"));
	assert_sources("///", DIRS("/"));
}

static void relative_sources_are_made_absolute(void **state)
{
	struct scratch *scratch = *state;
	auto_free char *here = getcwd(NULL, 0);
	assert_int_equal(fchdir(scratch->fd), 0);
	auto_free char *wanted = xasprintf("%s/tools", scratch->path);
	assert_sources("tools", DIRS(wanted));
	assert_int_equal(chdir(here), 0);
}

static void r11_only_the_named_directories_are_looked_at(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	write_tool(scratch, "two/b", "b", "two");
	assert_scanned(scratch, DIRS("one"), "a=one|");
}

static void r96_a_missing_source_does_no_harm(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	assert_scanned(scratch, DIRS("none", "one"), "a=one|missing-source");
}

/* ---- overlay */

static void r12_user_tool_hides_the_global_one(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "global/x", "x", "global");
	write_tool(scratch, "global/y", "y", "global");
	write_tool(scratch, "user/x", "x", "user");
	struct registry *registry = registry_of(scratch, DIRS("global", "user"));
	registry_scan(registry);
	assert_holds(registry, "x=user y=global|");
	const struct tool *tool = snapshot_find(registry_current(registry), "x");
	assert_string_equal(tool->label, "user");
	assert_string_equal(tool->body, "# user\n");
	assert_non_null(strstr(tool->dir, "/user/x"));
	registry_free(registry);
}

static void r98_the_key_is_the_name_and_not_the_directory(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "x", "first");
	write_tool(scratch, "one/b", "x", "second");
	assert_scanned(scratch, DIRS("one"), "x=second|duplicate-name");
	write_tool(scratch, "two/0", "x", "third");
	assert_scanned(scratch, DIRS("one", "two"), "x=third|duplicate-name");
}

static void r99_the_order_of_the_sources_decides(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/x", "x", "one");
	write_tool(scratch, "two/x", "x", "two");
	assert_scanned(scratch, DIRS("one", "two"), "x=two|");
	assert_scanned(scratch, DIRS("two", "one"), "x=one|");
}

static void r12_an_invalid_tool_hides_nothing(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "global/x", "x", "global");
	scratch_write(
		scratch, "user/x/TOOL.md", "---\nname: x\ndescription: D.\nversion: 1\n---\n");
	assert_scanned(scratch, DIRS("global", "user"), "x=global|missing-entry");
	unlinkat(scratch->fd, "user/x/TOOL.md", 0);
	scratch_write(scratch, "user/x/index.ts", "");
	assert_scanned(scratch, DIRS("global", "user"), "x=global|missing-manifest");
	scratch_write(scratch, "user/x/TOOL.md", "---\nname: x\nversion: 1\n---\n");
	assert_scanned(scratch, DIRS("global", "user"), "x=global|missing-description");
}

static void r3_all_tools_are_there_in_byte_order(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/1", "b", "1");
	write_tool(scratch, "one/2", "a", "2");
	write_tool(scratch, "two/3", "B", "3");
	write_tool(scratch, "two/4", "a_b", "4");
	assert_scanned(scratch, DIRS("one", "two"), "B=3 a=2 a_b=4 b=1|");
}

/* ---- snapshots */

static void settle(void)
{
	usleep(40000);
}

static void before_the_first_scan_there_is_an_empty_snapshot(void **state)
{
	struct scratch *scratch = *state;
	struct registry *registry = registry_of(scratch, DIRS("none"));
	assert_int_equal(registry_current(registry)->generation, 0);
	assert_int_equal(registry_current(registry)->count, 0);
	registry_free(registry);
	registry_free(NULL);
	registry = registry_new(NULL);
	assert_true(registry_scan(registry));
	assert_int_equal(registry_current(registry)->generation, 1);
	assert_false(registry_scan(registry));
	registry_free(registry);
}

static void a_snapshot_is_replaced_where_something_changed_and_only_there(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	write_tool(scratch, "one/b", "b", "one");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("one", "two"));
	assert_true(registry_scan(registry));
	struct snapshot *first = snapshot_ref(registry_current(registry));
	assert_int_equal(first->generation, 1);
	assert_false(registry_scan(registry));
	assert_ptr_equal(registry_current(registry), first);
	write_tool(scratch, "one/b", "b", "changed");
	assert_true(registry_scan(registry));
	const struct snapshot *second = registry_current(registry);
	assert_int_equal(second->generation, 2);
	assert_ptr_equal(second->tools[0], first->tools[0]);
	assert_ptr_not_equal(second->tools[1], first->tools[1]);
	assert_string_equal(first->tools[1]->description, "one");
	assert_string_equal(second->tools[1]->description, "changed");
	assert_int_equal(second->tools[1]->id, first->tools[1]->id);
	snapshot_unref(first);
	registry_free(registry);
}

static void a_change_of_faults_alone_is_a_change(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("one"));
	registry_scan(registry);
	scratch_write(scratch, "one/b/index.ts", "");
	assert_true(registry_scan(registry));
	assert_holds(registry, "a=one|missing-manifest");
	registry_free(registry);
}

static void r13_one_source_can_be_scanned_alone(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	scratch_mkdir(scratch, "two");
	struct registry *registry = registry_of(scratch, DIRS("one", "two"));
	registry_scan(registry);
	write_tool(scratch, "one/c", "c", "unseen");
	write_tool(scratch, "two/b", "b", "two");
	assert_true(registry_scan_source(registry, 1));
	assert_holds(registry, "a=one b=two|");
	assert_true(registry_scan_source(registry, 0));
	assert_holds(registry, "a=one b=two c=unseen|");
	registry_free(registry);
}

static void an_overridden_tool_comes_back_when_the_other_goes(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "global/x", "x", "global");
	write_tool(scratch, "user/x", "x", "user");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("global", "user"));
	registry_scan(registry);
	uint32_t id = registry_current(registry)->tools[0]->id;
	assert_int_equal(io_remove_tree(scratch->fd, "user/x"), 0);
	assert_true(registry_scan(registry));
	assert_holds(registry, "x=global|");
	assert_int_equal(registry_current(registry)->tools[0]->id, id);
	registry_free(registry);
}

static void a_source_that_comes_later_is_found(void **state)
{
	struct scratch *scratch = *state;
	struct registry *registry = registry_of(scratch, DIRS("late"));
	registry_scan(registry);
	assert_holds(registry, "|missing-source");
	write_tool(scratch, "late/a", "a", "late");
	assert_true(registry_scan(registry));
	assert_holds(registry, "a=late|");
	assert_int_equal(io_remove_tree(scratch->fd, "late"), 0);
	assert_true(registry_scan(registry));
	assert_holds(registry, "|missing-source");
	registry_free(registry);
}

static void many_tools_are_no_trouble(void **state)
{
	struct scratch *scratch = *state;
	for (int i = 0; i < 1500; i++) {
		char dir[64], name[64];
		snprintf(dir, sizeof(dir), "one/%d", i * 7919 % 1500);
		snprintf(name, sizeof(name), "tool_%d", i % 1000);
		write_tool(scratch, dir, name, "d");
	}
	struct registry *registry = registry_of(scratch, DIRS("one"));
	assert_true(registry_scan(registry));
	const struct snapshot *snapshot = registry_current(registry);
	assert_int_equal(snapshot->count, 1000);
	assert_int_equal(snapshot->faults.count, 500);
	for (size_t i = 0; i < snapshot->count; i++) {
		struct tool *tool = snapshot->tools[i];
		assert_ptr_equal(snapshot_find(snapshot, tool->name), tool);
		assert_ptr_equal(snapshot_find_id(snapshot, tool->id), tool);
	}
	registry_free(registry);
}

/* ---- one directory at a time */

static void r13_one_directory_can_be_scanned_alone(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	write_tool(scratch, "one/b", "b", "one");
	write_tool(scratch, "two/a", "a", "two");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("one", "two"));
	registry_scan(registry);
	struct snapshot *first = snapshot_ref(registry_current(registry));
	assert_false(registry_scan_dir(registry, 0, "a"));
	assert_false(registry_scan_dir(registry, 0, "none"));
	assert_false(registry_scan_dir(registry, 0, ".hidden"));
	write_tool(scratch, "one/b", "b", "changed");
	write_tool(scratch, "one/c", "c", "unseen");
	assert_true(registry_scan_dir(registry, 0, "b"));
	assert_holds(registry, "a=two b=changed|");
	assert_ptr_equal(registry_current(registry)->tools[0], first->tools[0]);
	assert_int_equal(registry_current(registry)->tools[1]->id, first->tools[1]->id);
	assert_string_equal(first->tools[1]->description, "one");
	assert_int_equal(io_remove_tree(scratch->fd, "two/a"), 0);
	assert_true(registry_scan_dir(registry, 1, "a"));
	assert_holds(registry, "a=one b=changed|");
	assert_string_equal(registry_tool_in(registry, 0, "a")->description, "one");
	assert_null(registry_tool_in(registry, 1, "a"));
	snapshot_unref(first);
	registry_free(registry);
}

static void many_changes_can_make_one_snapshot(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("one"));
	registry_scan(registry);
	write_tool(scratch, "one/b", "a", "double");
	write_tool(scratch, "one/c", "c", "new");
	registry_load_dir(registry, 0, "b");
	registry_load_dir(registry, 0, "c");
	assert_holds(registry, "a=one|");
	assert_true(registry_renew(registry));
	assert_int_equal(registry_current(registry)->generation, 2);
	assert_holds(registry, "a=double c=new|duplicate-name");
	assert_false(registry_renew(registry));
	struct faults told = FAULTS_INIT;
	faults_add(&told, FAULT_WARNING, "told", 0, 0, "x");
	registry_tell(registry, 0, &told);
	assert_true(registry_renew(registry));
	assert_holds(registry, "a=double c=new|duplicate-name told");
	registry_tell(registry, 0, &told);
	assert_true(registry_renew(registry));
	write_tool(scratch, "one/b", "b", "single");
	assert_true(registry_scan_dir(registry, 0, "b"));
	assert_holds(registry, "a=one b=single c=new|");
	registry_free(registry);
}

static void a_source_that_is_entered_is_empty_until_it_is_loaded(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "one/a", "a", "one");
	write_tool(scratch, "other/a", "a", "other");
	settle();
	struct registry *registry = registry_of(scratch, DIRS("one"));
	registry_scan(registry);
	assert_false(registry_enter_source(registry, 0));
	assert_false(registry_renew(registry));
	assert_int_equal(renameat2(scratch->fd, "one", scratch->fd, "other", RENAME_EXCHANGE), 0);
	assert_true(registry_enter_source(registry, 0));
	assert_holds(registry, "a=one|");
	registry_load_dir(registry, 0, "a");
	assert_true(registry_renew(registry));
	assert_holds(registry, "a=other|");
	registry_free(registry);
}

/* Whatever happens, what was scanned piece by piece is what one scan finds. */
#define RANDOM_STEPS 600

static void change_something(const struct scratch *scratch, unsigned number, char dir[16])
{
	static const char *const names[] = { "a", "b", "c", "call me", "x-1", "README.md" };
	snprintf(dir, 16, "%c%u", number % 2 ? 's' : 't', number / 2 % 9);
	auto_free char *path = xasprintf("%u/%s", number / 18 % 2, dir);
	auto_free char *description = xasprintf("d%u", number % 1000);
	if (number % 5 == 0) {
		io_remove_tree(scratch->fd, path);
	} else if (number % 7 == 0) {
		auto_free char *entry = xasprintf("%s/index.ts", path);
		unlinkat(scratch->fd, entry, 0);
	} else {
		write_tool(scratch, path, names[number / 36 % 6], description);
	}
}

static void pieces_make_the_same_as_a_whole(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "0");
	scratch_mkdir(scratch, "1");
	struct registry *registry = registry_of(scratch, DIRS("0", "1"));
	registry_scan(registry);
	unsigned seed = 1;
	for (int i = 0; i < RANDOM_STEPS; i++) {
		char dir[16];
		seed = seed * 1103515245 + 12345;
		unsigned number = seed >> 8;
		change_something(scratch, number, dir);
		registry_scan_dir(registry, number / 18 % 2, dir);
		if (i % 10 != 0)
			continue;
		struct registry *whole = registry_of(scratch, DIRS("0", "1"));
		registry_scan(whole);
		const struct snapshot *a = registry_current(registry), *b = registry_current(whole);
		assert_int_equal(a->count, b->count);
		for (size_t t = 0; t < a->count; t++) {
			assert_string_equal(a->tools[t]->dir, b->tools[t]->dir);
			assert_string_equal(a->tools[t]->description, b->tools[t]->description);
			assert_int_equal(a->tools[t]->id, b->tools[t]->id);
			assert_ptr_equal(snapshot_find_id(a, a->tools[t]->id), a->tools[t]);
		}
		assert_true(faults_equal(&a->faults, &b->faults));
		registry_free(whole);
	}
	registry_free(registry);
}

/* ---- sets that share sources */

static struct toolset *add_set(
	struct registry *registry, const struct scratch *scratch, const char *name)
{
	struct owner *owner = owner_new(name);
	auto_free char *path = xasprintf("%s/%s/tools", scratch->path, name);
	struct toolset *set =
		registry_add_set(registry, owner, path, strlen(name) + strlen("//tools"));
	owner_unref(owner);
	registry_load_source(registry, set->own);
	return set;
}

/* The set's tools as "NAME=DESCRIPTION ...". */
static void assert_shows(struct registry *registry, struct toolset *set, const char *wanted)
{
	const struct snapshot *snapshot = registry_use(registry, set);
	auto_buf struct buf out = BUF_INIT(1 << 20);
	for (size_t i = 0; i < snapshot->count; i++)
		buf_printf(&out, "%s%s=%s", i ? " " : "", snapshot->tools[i]->name,
			snapshot->tools[i]->description);
	assert_string_equal(buf_str(&out), wanted);
}

static void r12_each_set_has_its_own_tools_over_the_shared_ones(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "tools/hello", "hello", "global");
	write_tool(scratch, "tools/other", "other", "global");
	write_tool(scratch, "ada@x/tools/hello", "hello", "of-ada");
	write_tool(scratch, "bob@x/tools/own", "own", "of-bob");
	struct registry *registry = registry_of(scratch, DIRS("tools"));
	registry_scan(registry);
	struct toolset *ada = add_set(registry, scratch, "ada@x");
	struct toolset *bob = add_set(registry, scratch, "bob@x");
	struct toolset *eve = add_set(registry, scratch, "eve@x");
	assert_shows(registry, ada, "hello=of-ada other=global");
	assert_shows(registry, bob, "hello=global other=global own=of-bob");
	assert_shows(registry, eve, "hello=global other=global");
	assert_int_equal(registry_use(registry, eve)->faults.count, 0);
	assert_holds(registry, "hello=global other=global|");

	/* What is shared is one object, whatever shows it. */
	struct tool *a = snapshot_find(ada->current, "other");
	struct tool *b = snapshot_find(bob->current, "other");
	assert_ptr_not_equal(a, b);
	assert_ptr_equal(a->base, b->base);
	assert_ptr_equal(tool_base(a), snapshot_find(registry_current(registry), "other"));
	assert_ptr_equal(a->body, b->body);
	assert_string_equal(tool_key(a), "ada@x/other");
	assert_string_equal(tool_key(b), "bob@x/other");
	assert_string_equal(tool_key(a->base), "other");

	/* Gone for one, the global one is back for him alone; what did not change is the same. */
	assert_int_equal(io_remove_tree(scratch->fd, "ada@x/tools/hello"), 0);
	assert_true(registry_scan_dir(registry, ada->own, "hello"));
	assert_shows(registry, ada, "hello=global other=global");
	assert_ptr_equal(snapshot_find(ada->current, "other"), a);
	assert_ptr_equal(snapshot_find(bob->current, "other"), b);

	/* A global one that changes does so for all, once. */
	write_tool(scratch, "tools/other", "other", "changed-for-all");
	assert_true(registry_scan_dir(registry, 0, "other"));
	assert_shows(registry, ada, "hello=global other=changed-for-all");
	assert_shows(registry, bob, "hello=global other=changed-for-all own=of-bob");
	assert_false(registry_renew(registry));
	registry_free(registry);
}

static void a_set_comes_and_goes_alone(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "tools/hello", "hello", "global");
	write_tool(scratch, "ada@x/tools/own", "own", "of-ada");
	write_tool(scratch, "bob@x/tools/own", "own", "of-bob");
	struct registry *registry = registry_of(scratch, DIRS("tools"));
	registry_scan(registry);
	struct toolset *ada = add_set(registry, scratch, "ada@x");
	struct toolset *bob = add_set(registry, scratch, "bob@x");
	assert_shows(registry, ada, "hello=global own=of-ada");
	struct tool *kept = tool_ref(snapshot_find(ada->current, "own"));
	size_t own = ada->own;
	registry_remove_set(registry, ada);
	assert_null(registry_source_path(registry, own));
	assert_shows(registry, bob, "hello=global own=of-bob");
	assert_string_equal(kept->description, "of-ada"); /* a call may still run */
	assert_string_equal(kept->owner->name, "ada@x");
	tool_unref(kept);
	struct toolset *eve = add_set(registry, scratch, "eve@x");
	assert_int_equal(eve->own, own); /* places are used again */
	assert_shows(registry, eve, "hello=global");
	registry_free(registry);
}

static void what_nobody_asks_for_is_not_made(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "tools/hello", "hello", "global");
	struct registry *registry = registry_of(scratch, DIRS("tools"));
	registry_scan(registry);
	struct toolset *ada = add_set(registry, scratch, "ada@x");
	registry_renew(registry);
	assert_int_equal(ada->current->generation, 0);
	assert_int_equal(ada->overlay.count, 0);
	write_tool(scratch, "tools/late", "late", "late");
	registry_scan_dir(registry, 0, "late");
	assert_shows(registry, ada, "hello=global late=late");
	registry_free(registry);
}

static void links_out_of_a_users_directory_are_not_followed(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "ada@x/tools/own", "own", "of-ada");
	scratch_mkdir(scratch, "eve@x");
	scratch_link(scratch, "../ada@x/tools", "eve@x/tools");
	struct registry *registry = registry_of(scratch, DIRS(NULL));
	struct toolset *eve = add_set(registry, scratch, "eve@x");
	assert_shows(registry, eve, "");
	assert_int_equal(eve->current->faults.count, 1);
	assert_string_equal(eve->current->faults.items[0].code, "missing-source");
	registry_free(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(r72_sources_are_separated_by_colons),
		scratch_test(r96_empty_segments_and_repetitions_are_passed_over),
		scratch_test(relative_sources_are_made_absolute),
		scratch_test(r11_only_the_named_directories_are_looked_at),
		scratch_test(r96_a_missing_source_does_no_harm),
		scratch_test(r12_user_tool_hides_the_global_one),
		scratch_test(r98_the_key_is_the_name_and_not_the_directory),
		scratch_test(r99_the_order_of_the_sources_decides),
		scratch_test(r12_an_invalid_tool_hides_nothing),
		scratch_test(r3_all_tools_are_there_in_byte_order),
		scratch_test(before_the_first_scan_there_is_an_empty_snapshot),
		scratch_test(a_snapshot_is_replaced_where_something_changed_and_only_there),
		scratch_test(a_change_of_faults_alone_is_a_change),
		scratch_test(r13_one_source_can_be_scanned_alone),
		scratch_test(an_overridden_tool_comes_back_when_the_other_goes),
		scratch_test(a_source_that_comes_later_is_found),
		scratch_test(many_tools_are_no_trouble),
		scratch_test(r13_one_directory_can_be_scanned_alone),
		scratch_test(many_changes_can_make_one_snapshot),
		scratch_test(a_source_that_is_entered_is_empty_until_it_is_loaded),
		scratch_test(pieces_make_the_same_as_a_whole),
		scratch_test(r12_each_set_has_its_own_tools_over_the_shared_ones),
		scratch_test(a_set_comes_and_goes_alone),
		scratch_test(what_nobody_asks_for_is_not_made),
		scratch_test(links_out_of_a_users_directory_are_not_followed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
