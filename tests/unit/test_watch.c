#include <time.h>

#include "core/base/loop.h"
#include "core/tools/watch.h"
#include "tests/unit/mounts.h"

#define WAIT_MS 10000     /* a test that takes longer has failed */
#define NO_POLL_MS 100000 /* what is seen was not seen by polling */

/* ---- helpers */

struct world {
	struct scratch *scratch;
	struct loop *loop;
	struct registry *registry;
	struct watch *watch;
	struct loop_timer limit, tick;
	const char *wanted; /* what the tools are to be; NULL: nothing is waited for */
	const char *file;   /* the file that is waited for */
	struct buf files;   /* "TOOL:PATH ..." */
	size_t snapshots;   /* made so far */
	size_t faulty;      /* of them, with a fault */
	size_t fds;         /* at the start */
	bool (*done)(struct world *world);
};

static void describe(const struct world *world, struct buf *out)
{
	const struct snapshot *snapshot = registry_current(world->registry);
	for (size_t i = 0; i < snapshot->count; i++)
		buf_printf(out, "%s%s=%s", i ? " " : "", snapshot->tools[i]->name,
			snapshot->tools[i]->description);
	buf_putc(out, '|');
	for (size_t i = 0; i < snapshot->faults.count; i++)
		buf_printf(out, "%s%s", i ? " " : "", snapshot->faults.items[i].code);
}

static void stop_when_there(struct world *world)
{
	auto_buf struct buf out = BUF_INIT(1 << 20);
	if (world->wanted)
		describe(world, &out);
	bool is_there = world->wanted && strcmp(buf_str(&out), world->wanted) == 0;
	if (is_there || (world->file && strstr(buf_str(&world->files), world->file)))
		loop_stop(world->loop, 0);
}

static void on_snapshot(void *arg)
{
	struct world *world = arg;
	world->snapshots++;
	world->faulty += registry_current(world->registry)->faults.count > 0;
	stop_when_there(world);
}

static void on_file(void *arg, const struct tool *tool, const char *path)
{
	struct world *world = arg;
	const struct snapshot *snapshot = registry_current(world->registry);
	const struct tool *shown = snapshot_find(snapshot, tool->name);
	assert_true(shown == tool || strcmp(shown->dir, tool->dir) != 0);
	buf_printf(&world->files, " %s:%s ", tool->name, path);
	stop_when_there(world);
}

static const struct watch_events events = { .on_snapshot = on_snapshot, .on_file = on_file };

static void on_limit(void *arg)
{
	struct world *world = arg;
	loop_stop(world->loop, 1);
}

static void run(struct world *world)
{
	loop_arm_timer(world->loop, &world->limit, WAIT_MS, on_limit, world);
	if (loop_run(world->loop) != 0) {
		auto_buf struct buf out = BUF_INIT(1 << 20);
		describe(world, &out);
		fail_msg("waited for '%s%s', and there is '%s', files '%s'",
			world->wanted ? world->wanted : "", world->file ? world->file : "",
			buf_str(&out), buf_str(&world->files));
	}
	loop_cancel_timer(&world->limit);
}

/* Runs the loop until the tools are as wanted: "NAME=DESCRIPTION ...|code ...". */
static void wait_for(struct world *world, const char *wanted)
{
	auto_buf struct buf out = BUF_INIT(1 << 20);
	describe(world, &out);
	if (strcmp(buf_str(&out), wanted) == 0)
		return;
	world->wanted = wanted;
	run(world);
	world->wanted = NULL;
}

/* Until on_file has told of "TOOL:PATH". */
static void wait_for_file(struct world *world, const char *file)
{
	auto_free char *exact = xasprintf(" %s ", file);
	world->file = exact;
	if (!strstr(buf_str(&world->files), exact))
		run(world);
	world->file = NULL;
}

static void on_tick(void *arg)
{
	struct world *world = arg;
	if (world->done(world))
		loop_stop(world->loop, 0);
	else
		loop_arm_timer(world->loop, &world->tick, 1, on_tick, world);
}

static void wait_until(struct world *world, bool (*done)(struct world *world))
{
	world->done = done;
	loop_arm_timer(world->loop, &world->tick, 0, on_tick, world);
	run(world);
	loop_cancel_timer(&world->tick);
}

static bool sees_all(struct world *world)
{
	const struct snapshot *snapshot = registry_current(world->registry);
	for (size_t i = 0; i < snapshot->count; i++)
		if (!watch_sees(world->watch, snapshot->tools[i]))
			return false;
	return true;
}

/* dirs below the scratch directory, separated by colons. */
static void start_with(struct world *world, const char *dirs, const struct watch_config *config)
{
	auto_buf struct buf list = BUF_INIT(10000);
	for (const char *at = dirs; *at;) {
		size_t len = strcspn(at, ":");
		buf_printf(&list, "%s%s/%.*s", list.len ? ":" : "", world->scratch->path, (int)len,
			at);
		at += len + (at[len] == ':');
	}
	world->registry = registry_new(buf_str(&list));
	registry_scan(world->registry);
	world->watch = watch_new(world->loop, world->registry, config, &events, world);
}

/* Begins to watch, and waits until everything is watched. */
static void start(struct world *world, const char *dirs)
{
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	start_with(world, dirs, &config);
	wait_until(world, sees_all);
	buf_reset(&world->files);
	world->snapshots = world->faulty = 0;
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct fail why = FAIL_INIT;
	void *scratch = NULL;
	world->fds = scratch_count_fds();
	if (scratch_setup(&scratch) < 0)
		return -1;
	world->scratch = scratch;
	world->loop = loop_new(&why);
	buf_init(&world->files, 1 << 20);
	*state = world;
	return world->loop ? 0 : -1;
}

static void stop(struct world *world)
{
	watch_free(world->watch);
	registry_free(world->registry);
	world->watch = NULL;
	world->registry = NULL;
}

static int teardown(void **state)
{
	struct world *world = *state;
	void *scratch = world->scratch;
	stop(world);
	loop_free(world->loop);
	buf_release(&world->files);
	int result = scratch_teardown(&scratch);
	size_t fds = world->fds;
	free(world);
	return result < 0 || scratch_count_fds() != fds ? -1 : 0;
}

static void write_manifest(
	const struct world *world, const char *dir, const char *name, const char *description)
{
	auto_free char *manifest = xasprintf("%s/TOOL.md", dir);
	auto_free char *text = xasprintf("---\nname: %s\ndescription: %s\nversion: 1\n---\n# %s\n",
		name, description, description);
	scratch_write(world->scratch, manifest, text);
}

static void write_tool(
	const struct world *world, const char *dir, const char *name, const char *description)
{
	auto_free char *entry = xasprintf("%s/index.ts", dir);
	write_manifest(world, dir, name, description);
	scratch_write(world->scratch, entry, description);
}

static void rename_in(const struct world *world, const char *from, const char *to)
{
	int fd = world->scratch->fd;
	assert_int_equal(renameat2(fd, from, fd, to, 0), 0);
}

static void swap(const struct world *world, const char *one, const char *other)
{
	int fd = world->scratch->fd;
	assert_int_equal(renameat2(fd, one, fd, other, RENAME_EXCHANGE), 0);
}

/* ---- tools */

static void r13_an_edited_tool_is_seen(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	write_manifest(world, "s/a", "a", "two");
	wait_for(world, "a=two|");
	/* As editors do it. */
	write_manifest(world, "s/new", "a", "three");
	rename_in(world, "s/new/TOOL.md", "s/a/TOOL.md");
	wait_for(world, "a=three|");
	write_manifest(world, "s/a", "b", "renamed");
	wait_for(world, "b=renamed|");
	assert_int_equal(world->faulty, 0);
}

static void r13_tools_come_and_go(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	write_tool(world, "s/b", "b", "new");
	wait_for(world, "a=one b=new|");
	rename_in(world, "s/b", "s/c");
	write_manifest(world, "s/c", "c", "moved");
	wait_for(world, "a=one c=moved|");
	assert_int_equal(io_remove_tree(world->scratch->fd, "s/a"), 0);
	wait_for(world, "c=moved|");
	unlinkat(world->scratch->fd, "s/c/index.ts", 0);
	wait_for(world, "|missing-entry");
	scratch_write(world->scratch, "s/c/index.js", "");
	wait_for(world, "c=moved|");
}

/* Found by tests/chaos: a server is replaced while an override goes. */
static void r13_what_goes_between_the_scan_and_the_first_watch_is_gone(void **state)
{
	struct world *world = *state;
	write_tool(world, "global/a", "a", "global");
	write_tool(world, "user/a", "a", "user");
	scratch_mkdir(world->scratch, "user/broken");
	scratch_write(world->scratch, "user/broken/TOOL.md", "");
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	start_with(world, "global:user", &config);
	rename_in(world, "user/a", "gone");
	assert_int_equal(io_remove_tree(world->scratch->fd, "user/broken"), 0);
	wait_for(world, "a=global|");
}

static void r12_the_global_tool_comes_back_when_its_override_goes(void **state)
{
	struct world *world = *state;
	write_tool(world, "global/x", "x", "global");
	write_tool(world, "user/x", "x", "user");
	start(world, "global:user");
	wait_for(world, "x=user|");
	assert_int_equal(io_remove_tree(world->scratch->fd, "user/x"), 0);
	wait_for(world, "x=global|");
	write_tool(world, "user/x", "x", "again");
	wait_for(world, "x=again|");
	rename_in(world, "user/x", "user/.x");
	wait_for(world, "x=global|");
}

/* Found by tests/chaos: for some milliseconds its files were not found. */
static void r12_the_global_tool_is_there_as_soon_as_its_override_is_missed(void **state)
{
	struct world *world = *state;
	write_tool(world, "global/a", "a", "global");
	write_tool(world, "user/a", "a", "user");
	write_tool(world, "user/b", "b", "alone");
	start(world, "global:user");
	const struct snapshot *snapshot = registry_current(world->registry);
	assert_false(watch_hurry(world->watch, snapshot_find(snapshot, "a")));
	rename_in(world, "user/b", "b");
	/* It may be about to be replaced, and there is no other. */
	assert_false(watch_hurry(world->watch, snapshot_find(snapshot, "b")));
	rename_in(world, "user/a", "gone");
	assert_true(watch_hurry(world->watch, snapshot_find(snapshot, "a")));
	auto_buf struct buf out = BUF_INIT(1 << 20);
	describe(world, &out);
	assert_string_equal(buf_str(&out), "a=global b=alone|");
	assert_int_equal(world->snapshots, 1);
	wait_for(world, "a=global|");
}

static void a_flipped_link_is_followed_as_soon_as_a_file_is_missed(void **state)
{
	struct world *world = *state;
	write_tool(world, "one/a", "a", "one");
	write_tool(world, "two/a", "a", "two");
	write_tool(world, "two/b", "b", "two");
	assert_int_equal(symlinkat("one", world->scratch->fd, "s"), 0);
	start(world, "s");
	assert_int_equal(symlinkat("two", world->scratch->fd, "new"), 0);
	rename_in(world, "new", "s");
	const struct snapshot *snapshot = registry_current(world->registry);
	assert_true(watch_hurry(world->watch, snapshot_find(snapshot, "a")));
	auto_buf struct buf out = BUF_INIT(1 << 20);
	describe(world, &out);
	assert_string_equal(buf_str(&out), "a=two b=two|");
	write_manifest(world, "two/b", "b", "edited");
	wait_for(world, "a=two b=edited|");
}

/* Found by tests/chaos: what was scanned was removed before anybody looked. */
static void a_link_that_is_flipped_after_the_scan_is_caught_up_with(void **state)
{
	struct world *world = *state;
	write_tool(world, "one/a", "a", "one");
	write_tool(world, "two/a", "a", "two");
	assert_int_equal(symlinkat("one", world->scratch->fd, "s"), 0);
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	start_with(world, "s", &config);
	watch_catch_up(world->watch);
	assert_int_equal(world->snapshots, 0);
	assert_int_equal(symlinkat("two", world->scratch->fd, "new"), 0);
	rename_in(world, "new", "s");
	assert_int_equal(io_remove_tree(world->scratch->fd, "one"), 0);
	watch_catch_up(world->watch);
	auto_buf struct buf out = BUF_INIT(1 << 20);
	describe(world, &out);
	assert_string_equal(buf_str(&out), "a=two|");
	write_manifest(world, "two/a", "a", "edited");
	wait_for(world, "a=edited|");
}

static void a_tool_that_is_swapped_is_new_as_a_whole(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "old");
	write_tool(world, "other/a", "a", "new");
	start(world, "s");
	swap(world, "s/a", "other/a");
	wait_for_file(world, "a:");
	wait_for(world, "a=new|");
	assert_int_equal(world->faulty, 0);
	/* What was swapped in is watched, what was swapped out is not. */
	wait_until(world, sees_all);
	world->snapshots = 0;
	buf_reset(&world->files);
	write_manifest(world, "other/a", "a", "unseen");
	write_manifest(world, "s/a", "a", "seen");
	wait_for(world, "a=seen|");
	assert_int_equal(world->snapshots, 1);
}

/* Two renames, as mv does it: the name is missing in between. */
static void a_tool_that_is_replaced_is_never_missing(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "old");
	write_tool(world, "s/.new", "a", "new");
	start(world, "s");
	rename_in(world, "s/a", "s/.old");
	world->snapshots = 0;
	rename_in(world, "s/.new", "s/a");
	wait_for(world, "a=new|");
	assert_int_equal(world->snapshots, 1);
}

static void on_write_rest(void *arg)
{
	struct world *world = arg;
	scratch_write(world->scratch, "unused", "");
	auto_close int fd =
		openat(world->scratch->fd, "s/a/TOOL.md", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, ": two\nversion: 1\n---\n", 21), 0);
}

static void a_file_is_read_when_it_was_written_to_the_end(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	auto_close int fd =
		openat(world->scratch->fd, "s/a/TOOL.md", O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(io_write_all(fd, "---\nname: a\ndescription", 23), 0);
	struct loop_timer timer = { .slot = 0 };
	loop_arm_timer(world->loop, &timer, 15, on_write_rest, world);
	wait_for(world, "a=two|");
	assert_int_equal(world->snapshots, 1);
}

static void a_file_that_is_never_closed_is_seen_all_the_same(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	auto_close int fd = openat(world->scratch->fd, "s/a/TOOL.md", O_WRONLY | O_CLOEXEC);
	static const char text[] = "---\nname: a\ndescription: two\nversion: 1\n---\n# Two\n";
	assert_int_equal(io_write_all(fd, text, sizeof(text) - 1), 0);
	wait_for(world, "a=two|");
}

/* ---- files */

static void changes_deep_in_a_tool_are_told(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	scratch_write(world->scratch, "s/a/bin/x", "1");
	scratch_write(world->scratch, "s/a/bin/deep/er/y", "1");
	start(world, "s");
	scratch_write(world->scratch, "s/a/bin/x", "2");
	wait_for_file(world, "a:bin/x");
	scratch_write(world->scratch, "s/a/bin/deep/er/y", "2");
	wait_for_file(world, "a:bin/deep/er/y");
	scratch_write(world->scratch, "s/a/new", "2");
	wait_for_file(world, "a:new");
	unlinkat(world->scratch->fd, "s/a/bin/x", 0);
	buf_reset(&world->files);
	wait_for_file(world, "a:bin/x");
	assert_int_equal(fchmodat(world->scratch->fd, "s/a/index.ts", 0755, 0), 0);
	wait_for_file(world, "a:index.ts");
	assert_int_equal(world->faulty, 0);
}

static void directories_that_come_later_are_watched(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	scratch_write(world->scratch, "elsewhere/sub/z", "1");
	start(world, "s");
	scratch_mkdir(world->scratch, "s/a/lib/inner");
	wait_for_file(world, "a:lib/inner");
	wait_until(world, sees_all);
	scratch_write(world->scratch, "s/a/lib/inner/f", "1");
	wait_for_file(world, "a:lib/inner/f");
	rename_in(world, "elsewhere", "s/a/moved");
	wait_for_file(world, "a:moved/sub");
	wait_until(world, sees_all);
	scratch_write(world->scratch, "s/a/moved/sub/z", "2");
	wait_for_file(world, "a:moved/sub/z");
	buf_reset(&world->files);
	rename_in(world, "s/a/moved", "gone");
	wait_for_file(world, "a:moved");
	wait_until(world, sees_all);
	buf_reset(&world->files);
	scratch_write(world->scratch, "gone/sub/z", "3");
	scratch_write(world->scratch, "s/a/lib/inner/f", "3");
	wait_for_file(world, "a:lib/inner/f");
	assert_null(strstr(buf_str(&world->files), "sub/z"));
}

static void a_file_that_changes_with_its_manifest_is_told_after_the_snapshot(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	scratch_write(world->scratch, "s/a/x", "2");
	write_manifest(world, "s/a", "a", "two");
	wait_for_file(world, "a:x");
	wait_for(world, "a=two|");
	assert_int_equal(world->snapshots, 1);
}

static void many_changes_in_one_tool_are_told_as_one(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	start(world, "s");
	for (int i = 0; i < 1000; i++) {
		auto_free char *path = xasprintf("s/a/file%d", i);
		scratch_write(world->scratch, path, "1");
	}
	wait_for_file(world, "a:");
}

static void a_tool_with_too_many_directories_is_not_seen_as_a_whole(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	write_tool(world, "s/b", "b", "one");
	for (int i = 0; i < 200; i++) {
		auto_free char *path = xasprintf("s/a/node_modules/m%d", i);
		scratch_mkdir(world->scratch, path);
	}
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	start_with(world, "s", &config);
	write_manifest(world, "s/b", "b", "two");
	wait_for(world, "a=one b=two|");
	write_manifest(world, "s/a", "a", "two");
	wait_for(world, "a=two b=two|");
	const struct snapshot *snapshot = registry_current(world->registry);
	assert_false(watch_sees(world->watch, snapshot->tools[0]));
	assert_true(watch_sees(world->watch, snapshot->tools[1]));
}

/* ---- sources */

static void r96_a_source_that_comes_late_is_seen(void **state)
{
	struct world *world = *state;
	start(world, "far/away/s");
	assert_int_equal(registry_current(world->registry)->faults.count, 1);
	write_tool(world, "far/away/s/a", "a", "late");
	wait_for(world, "a=late|");
	assert_int_equal(io_remove_tree(world->scratch->fd, "far"), 0);
	wait_for(world, "|missing-source");
	write_tool(world, "far/away/s/b", "b", "later");
	wait_for(world, "b=later|");
}

static void a_source_that_is_swapped_is_new_as_a_whole(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "old");
	write_tool(world, "t/a", "a", "new");
	write_tool(world, "t/b", "b", "new");
	start(world, "s");
	swap(world, "s", "t");
	wait_for(world, "a=new b=new|");
	assert_int_equal(world->snapshots, 1);
	wait_until(world, sees_all);
	write_manifest(world, "s/b", "b", "edited");
	wait_for(world, "a=new b=edited|");
	/* The one above it. */
	write_tool(world, "v/s/c", "c", "above");
	write_tool(world, "u/s/c", "c", "below");
	stop(world);
	start(world, "u/s");
	swap(world, "u", "v");
	wait_for(world, "c=above|");
}

static void a_link_to_a_source_is_followed_when_it_is_flipped(void **state)
{
	struct world *world = *state;
	write_tool(world, "r1/tools/a", "a", "one");
	write_tool(world, "r2/tools/a", "a", "two");
	scratch_link(world->scratch, "r1", "current");
	auto_free char *absolute = xasprintf("%s/current/tools", world->scratch->path);
	scratch_link(world->scratch, absolute, "s");
	start(world, "s");
	wait_for(world, "a=one|");
	scratch_link(world->scratch, "r2", "next");
	rename_in(world, "next", "current");
	wait_for(world, "a=two|");
	assert_int_equal(world->snapshots, 1);
	wait_until(world, sees_all);
	write_manifest(world, "r2/tools/a", "a", "edited");
	wait_for(world, "a=edited|");
	/* Removed and made anew, as `ln -sfn` does it. */
	unlinkat(world->scratch->fd, "current", 0);
	scratch_link(world->scratch, "r1", "current");
	wait_for(world, "a=one|");
	assert_int_equal(world->faulty, 0);
}

static void two_sources_in_one_place_are_both_seen(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "outer");
	write_tool(world, "s/inner/b", "b", "inner");
	scratch_link(world->scratch, "s", "same");
	start(world, "s:s/inner:same");
	wait_for(world, "a=outer b=inner|");
	write_manifest(world, "s/inner/b", "b", "two");
	wait_for(world, "a=outer b=two|");
	write_manifest(world, "s/a", "a", "two");
	wait_for(world, "a=two b=two|");
	const struct snapshot *snapshot = registry_current(world->registry);
	assert_non_null(strstr(snapshot->tools[0]->dir, "/same/a"));
}

static void a_mount_over_a_source_is_seen(void **state)
{
	need_mounts();
	struct world *world = *state;
	write_tool(world, "s/a", "a", "below");
	write_tool(world, "t/a", "a", "mounted");
	auto_free char *s = xasprintf("%s/s", world->scratch->path);
	auto_free char *t = xasprintf("%s/t", world->scratch->path);
	start(world, "s");
	assert_int_equal(mount(t, s, NULL, MS_BIND, NULL), 0);
	wait_for(world, "a=mounted|");
	wait_until(world, sees_all);
	write_manifest(world, "t/a", "a", "edited");
	wait_for(world, "a=edited|");
	assert_int_equal(umount2(s, MNT_DETACH), 0);
	wait_for(world, "a=below|");
	/* Over one tool. */
	auto_free char *sa = xasprintf("%s/s/a", world->scratch->path);
	auto_free char *ta = xasprintf("%s/t/a", world->scratch->path);
	assert_int_equal(mount(ta, sa, NULL, MS_BIND, NULL), 0);
	wait_for(world, "a=edited|");
	assert_int_equal(umount2(sa, MNT_DETACH), 0);
	wait_for(world, "a=below|");
}

static void t17_what_our_own_mount_covers_is_seen(void **state)
{
	need_mounts();
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	auto_free char *path = xasprintf("%s/s", world->scratch->path);
	start(world, "s");
	auto_close int below = openat(world->scratch->fd, "s", O_PATH | O_CLOEXEC);
	auto_close int fuse = mount_unserved(path);
	struct world under = { .scratch = &(struct scratch){ .fd = below } };
	write_manifest(&under, "a", "a", "two");
	wait_for(world, "a=two|");
	write_tool(&under, "b", "b", "new");
	wait_for(world, "a=two b=new|");
	/* One that starts when it is mounted is told what is below. */
	stop(world);
	world->registry = registry_new(path);
	registry_set_covered(world->registry, path, below);
	registry_scan(world->registry);
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	world->watch = watch_new(world->loop, world->registry, &config, &events, world);
	wait_for(world, "a=two b=new|");
	wait_until(world, sees_all);
	write_manifest(&under, "b", "b", "edited");
	wait_for(world, "a=two b=edited|");
	stop(world);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

/* ---- limits */

static bool has_refused(struct world *world)
{
	return watch_stats(world->watch).refused > 0;
}

static bool has_none_refused(struct world *world)
{
	return !has_refused(world);
}

/* Watches for what leads to the scratch directory, the source, and so many more. */
static size_t watches_for(size_t more)
{
	return 2 + 1 + 1 + more; /* "/", "/tmp", the scratch directory, the source */
}

static void where_watches_run_out_the_rest_is_polled(void **state)
{
	struct world *world = *state;
	static const char *const names[] = { "a", "b", "c", "d" };
	for (size_t i = 0; i < 4; i++) {
		auto_free char *dir = xasprintf("s/%s", names[i]);
		write_tool(world, dir, names[i], "one");
	}
	const struct watch_config config = { .max = watches_for(2), .poll_ms = 50 };
	start_with(world, "s", &config);
	wait_for(world, "a=one b=one c=one d=one|not-watched");
	wait_until(world, has_refused);
	assert_int_equal(watch_stats(world->watch).refused, 2);
	assert_int_equal(watch_stats(world->watch).polled, 0);
	for (size_t i = 0; i < 4; i++) {
		auto_free char *dir = xasprintf("s/%s", names[i]);
		write_manifest(world, dir, names[i], "two");
	}
	wait_for(world, "a=two b=two c=two d=two|not-watched");
	/* When there are watches again, they are used, and the fault goes. */
	assert_int_equal(io_remove_tree(world->scratch->fd, "s/a"), 0);
	assert_int_equal(io_remove_tree(world->scratch->fd, "s/b"), 0);
	wait_until(world, has_none_refused);
	wait_for(world, "c=two d=two|");
	wait_until(world, sees_all);
}

static void without_watches_all_is_polled(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	scratch_link(world->scratch, "s", "link");
	const struct watch_config config = { .max = 1, .poll_ms = 40 };
	start_with(world, "link", &config);
	wait_for(world, "a=one|not-watched");
	assert_int_equal(watch_stats(world->watch).polled, 1);
	assert_false(watch_sees(world->watch, registry_current(world->registry)->tools[0]));
	write_manifest(world, "s/a", "a", "two");
	wait_for(world, "a=two|not-watched");
	write_tool(world, "s/b", "b", "new");
	wait_for(world, "a=two b=new|not-watched");
	assert_int_equal(io_remove_tree(world->scratch->fd, "s/a"), 0);
	wait_for(world, "b=new|not-watched");
	write_tool(world, "t/c", "c", "flipped");
	scratch_link(world->scratch, "t", "next");
	rename_in(world, "next", "link");
	wait_for(world, "c=flipped|not-watched");
}

/* ---- storms */

#define STORM 1500

static void a_storm_costs_a_bounded_number_of_snapshots(void **state)
{
	struct world *world = *state;
	scratch_mkdir(world->scratch, "s");
	start(world, "s");
	struct timespec begin, end;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	auto_buf struct buf wanted = BUF_INIT(1 << 20);
	for (int i = 0; i < STORM; i++) {
		char dir[32], name[32];
		snprintf(dir, sizeof(dir), "s/t%04d", i);
		snprintf(name, sizeof(name), "t%04d", i);
		write_tool(world, dir, name, "d");
		buf_printf(&wanted, "%s%s=d", i ? " " : "", name);
	}
	buf_putc(&wanted, '|');
	wait_for(world, buf_str(&wanted));
	clock_gettime(CLOCK_MONOTONIC, &end);
	uint64_t took_ms = (uint64_t)((end.tv_sec - begin.tv_sec) * 1000 +
				      (end.tv_nsec - begin.tv_nsec) / 1000000);
	assert_true(world->snapshots <= took_ms / 15 + 2);
	assert_int_equal(watch_stats(world->watch).scans, 0);
	wait_until(world, sees_all);
	world->snapshots = 0;
	assert_int_equal(io_remove_tree(world->scratch->fd, "s"), 0);
	wait_for(world, "|missing-source");
	assert_true(world->snapshots < 100);
}

/* More than the kernel keeps for one that does not listen. */
static void what_the_kernel_lost_is_looked_for(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	write_tool(world, "s/b", "b", "one");
	start(world, "s");
	unsigned limit = 16384;
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	assert_true(!file || fscanf(file, "%u", &limit) == 1);
	if (file)
		fclose(file);
	if (limit > 50000)
		skip();
	for (unsigned i = 0; i < limit + 10; i++)
		assert_int_equal(fchmodat(world->scratch->fd,
					 i % 2 ? "s/a/TOOL.md" : "s/a/index.ts", 0644, 0),
			0);
	write_manifest(world, "s/b", "b", "two");
	write_tool(world, "s/c", "c", "new");
	wait_for(world, "a=one b=two c=new|");
	wait_for_file(world, "b:");
	assert_int_equal(watch_stats(world->watch).lost, 1);
	wait_until(world, sees_all);
	write_manifest(world, "s/c", "c", "edited");
	wait_for(world, "a=one b=two c=edited|");
}

/* ---- life */

static void it_can_be_ended_at_any_time(void **state)
{
	struct world *world = *state;
	write_tool(world, "s/a", "a", "one");
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	start_with(world, "s:none", &config);
	stop(world);
	start(world, "s:none");
	write_manifest(world, "s/a", "a", "two");
	wait_for(world, "a=two|missing-source");
	write_manifest(world, "s/a", "a", "three");
	stop(world);
	watch_free(NULL);
}

/* The scan is made before the loop runs: what happens in between is missed by no watch. */
static void r13_what_changes_between_the_scan_and_the_watch_is_seen(void **state)
{
	struct world *world = *state;
	const struct watch_config config = { .poll_ms = NO_POLL_MS };
	write_tool(world, "s/a", "a", "one");
	write_tool(world, "s/b", "b", "one");
	write_tool(world, "s/d", "d", "one");
	start_with(world, "s", &config);
	assert_int_equal(io_remove_tree(world->scratch->fd, "s/a"), 0);
	write_manifest(world, "s/b", "b", "two");
	write_tool(world, "s/c", "c", "new");
	rename_in(world, "s/d", "s/e");
	wait_for(world, "b=two c=new d=one|");
	assert_non_null(strstr(registry_current(world->registry)->tools[2]->dir, "s/e"));
}

static void without_sources_there_is_nothing_to_do(void **state)
{
	struct world *world = *state;
	start(world, "");
	assert_int_equal(watch_stats(world->watch).watches, 0);
}

#define world_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* ---- users of a data directory */

#define USERS_SHOWN 8

/* What shows users' sets, as the FUSE face does. */
struct crowd {
	struct world *world;
	struct owner *owners[USERS_SHOWN];
	struct toolset *sets[USERS_SHOWN];
	const char *wanted;
};

static struct crowd crowd;

static void describe_users(struct buf *out)
{
	for (size_t i = 0; i < USERS_SHOWN; i++) {
		if (!crowd.owners[i])
			continue;
		const struct snapshot *snapshot =
			registry_use(crowd.world->registry, crowd.sets[i]);
		buf_printf(out, "%s:", crowd.owners[i]->name);
		for (size_t t = 0; t < snapshot->count; t++)
			buf_printf(out, "%s=%s,", snapshot->tools[t]->name,
				snapshot->tools[t]->description);
		buf_putc(out, ' ');
	}
}

static bool has_wanted_users(struct world *world)
{
	(void)world;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	describe_users(&out);
	return strcmp(buf_str(&out), crowd.wanted) == 0;
}

static void wait_for_users(struct world *world, const char *wanted)
{
	crowd.wanted = wanted;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	wait_until(world, has_wanted_users);
	describe_users(&out);
	assert_string_equal(buf_str(&out), wanted);
}

static void drop_user(size_t at)
{
	watch_remove_source(crowd.world->watch, crowd.sets[at]->own);
	registry_remove_set(crowd.world->registry, crowd.sets[at]);
	owner_unref(crowd.owners[at]);
	crowd.owners[at] = NULL;
}

static void add_user(const char *name)
{
	size_t at = 0;
	while (crowd.owners[at])
		at++;
	crowd.owners[at] = owner_new(name);
	auto_free char *path = xasprintf("%s/data/%s/tools", crowd.world->scratch->path, name);
	crowd.sets[at] = registry_add_set(
		crowd.world->registry, crowd.owners[at], path, strlen(name) + strlen("//tools"));
	watch_add_source(crowd.world->watch, crowd.sets[at]->own);
}

static bool is_among(const char *name, char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void on_users(void *arg, const struct users *users)
{
	(void)arg;
	char *shown[USERS_SHOWN];
	size_t count = 0;
	for (size_t i = 0; i < USERS_SHOWN; i++)
		if (crowd.owners[i] && !is_among(crowd.owners[i]->name, users->items, users->count))
			drop_user(i);
		else if (crowd.owners[i])
			shown[count++] = crowd.owners[i]->name;
	for (size_t i = 0; i < users->count; i++)
		if (!is_among(users->items[i], shown, count))
			add_user(users->items[i]);
}

static void on_any_snapshot(void *arg)
{
	struct world *world = arg;
	world->snapshots++;
}

static const struct watch_events crowd_events = { .on_snapshot = on_any_snapshot,
	.on_users = on_users };

/* Nothing has been looked at for some turns. */
static bool all_is_quiet(struct world *world)
{
	static size_t looks, turns;
	const struct watch_stats stats = watch_stats(world->watch);
	turns = looks == stats.looks + stats.watches ? turns + 1 : 0;
	looks = stats.looks + stats.watches;
	return turns > 100;
}

static void r10_users_come_and_go_with_their_tools(void **state)
{
	struct world *world = *state;
	write_manifest(world, "data/tools/hello", "hello", "global");
	scratch_write(world->scratch, "data/tools/hello/index.ts", "");
	scratch_mkdir(world->scratch, "data/ada@x/tools");
	auto_free char *data = xasprintf("%s/data", world->scratch->path);
	auto_free char *tools = xasprintf("%s/tools", data);
	crowd = (struct crowd){ .world = world };
	world->registry = registry_new(tools);
	registry_scan(world->registry);
	const struct watch_config config = { .poll_ms = NO_POLL_MS, .users = data };
	world->watch = watch_new(world->loop, world->registry, &config, &crowd_events, world);
	wait_for_users(world, "ada@x:hello=global, ");
	wait_until(world, all_is_quiet);
	size_t watches = watch_stats(world->watch).watches;

	/* One that comes has the global tools, and its own as they come; others have not. */
	scratch_mkdir(world->scratch, "data/bob@x");
	wait_for_users(world, "ada@x:hello=global, bob@x:hello=global, ");
	write_manifest(world, "data/bob@x/tools/hello", "hello", "of-bob");
	scratch_write(world->scratch, "data/bob@x/tools/hello/index.ts", "");
	wait_for_users(world, "ada@x:hello=global, bob@x:hello=of-bob, ");
	assert_int_equal(io_remove_tree(world->scratch->fd, "data/bob@x/tools/hello"), 0);
	wait_for_users(world, "ada@x:hello=global, bob@x:hello=global, ");

	/* What is no user shows nothing; a rename is one who goes and one who comes. */
	scratch_mkdir(world->scratch, "data/backup");
	rename_in(world, "data/bob@x", "data/eve@x");
	wait_for_users(world, "ada@x:hello=global, eve@x:hello=global, ");
	assert_int_equal(io_remove_tree(world->scratch->fd, "data/eve@x"), 0);
	wait_for_users(world, "ada@x:hello=global, ");
	wait_until(world, all_is_quiet);
	/* And with them all that was watched for their sake: the global tools are watched once. */
	assert_int_equal(watch_stats(world->watch).watches, watches);

	/* The whole directory is another one, or gone. */
	rename_in(world, "data", "old");
	wait_for_users(world, "");
	rename_in(world, "old", "data");
	wait_for_users(world, "ada@x:hello=global, ");
	drop_user(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		world_test(r13_an_edited_tool_is_seen),
		world_test(r13_tools_come_and_go),
		world_test(r13_what_goes_between_the_scan_and_the_first_watch_is_gone),
		world_test(r12_the_global_tool_comes_back_when_its_override_goes),
		world_test(r12_the_global_tool_is_there_as_soon_as_its_override_is_missed),
		world_test(a_flipped_link_is_followed_as_soon_as_a_file_is_missed),
		world_test(a_link_that_is_flipped_after_the_scan_is_caught_up_with),
		world_test(a_tool_that_is_swapped_is_new_as_a_whole),
		world_test(a_tool_that_is_replaced_is_never_missing),
		world_test(a_file_is_read_when_it_was_written_to_the_end),
		world_test(a_file_that_is_never_closed_is_seen_all_the_same),
		world_test(changes_deep_in_a_tool_are_told),
		world_test(directories_that_come_later_are_watched),
		world_test(a_file_that_changes_with_its_manifest_is_told_after_the_snapshot),
		world_test(many_changes_in_one_tool_are_told_as_one),
		world_test(a_tool_with_too_many_directories_is_not_seen_as_a_whole),
		world_test(r96_a_source_that_comes_late_is_seen),
		world_test(a_source_that_is_swapped_is_new_as_a_whole),
		world_test(a_link_to_a_source_is_followed_when_it_is_flipped),
		world_test(two_sources_in_one_place_are_both_seen),
		world_test(a_mount_over_a_source_is_seen),
		world_test(t17_what_our_own_mount_covers_is_seen),
		world_test(where_watches_run_out_the_rest_is_polled),
		world_test(without_watches_all_is_polled),
		world_test(a_storm_costs_a_bounded_number_of_snapshots),
		world_test(what_the_kernel_lost_is_looked_for),
		world_test(it_can_be_ended_at_any_time),
		world_test(r13_what_changes_between_the_scan_and_the_watch_is_seen),
		world_test(without_sources_there_is_nothing_to_do),
		world_test(r10_users_come_and_go_with_their_tools),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
