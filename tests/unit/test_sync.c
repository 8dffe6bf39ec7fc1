/*
 * Seeding by version. The system calls that change a directory are replaced here by ones that can
 * end the process, or fail, at the n-th of them: so every point at which a crash or a full disk can
 * come is tried, one by one.
 */
#include <dirent.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/tools/swapdir.h"
#include "core/tools/sync.h"
#include "tests/unit/scratch.h"

#define TREE_SIZE_MAX (1 << 20)

/* ---- system calls that fail when told to */

static struct {
	long calls;       /* so far */
	long crash_at;    /* the process ends before this one; 0: never */
	long fail_at;     /* this one, and the later ones, find no space; 0: never */
	bool no_exchange; /* as a file system without RENAME_EXCHANGE and RENAME_NOREPLACE */
} faulty;

enum { CRASHED = 99 };

/* Whether the call must find no space. */
static bool count_call(void)
{
	faulty.calls++;
	if (faulty.calls == faulty.crash_at)
		_exit(CRASHED);
	if (!faulty.fail_at || faulty.calls < faulty.fail_at)
		return false;
	errno = ENOSPC;
	return true;
}

int mkdirat(int fd, const char *path, mode_t mode)
{
	return count_call() ? -1 : (int)syscall(SYS_mkdirat, fd, path, mode);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	return fd > 2 && count_call() ? -1 : syscall(SYS_write, fd, bytes, len);
}

int symlinkat(const char *target, int fd, const char *path)
{
	return count_call() ? -1 : (int)syscall(SYS_symlinkat, target, fd, path);
}

int fchmod(int fd, mode_t mode)
{
	return count_call() ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

/* Where delayed writes find that the disk is full. */
int fsync(int fd)
{
	return count_call() ? -1 : (int)syscall(SYS_fsync, fd);
}

/* Neither needs space, so these only crash. */
int unlinkat(int fd, const char *path, int flags)
{
	(void)count_call();
	return (int)syscall(SYS_unlinkat, fd, path, flags);
}

int renameat(int from, const char *old, int to, const char *new)
{
	(void)count_call();
	return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
	(void)count_call();
	if (faulty.no_exchange) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

static int setup(void **state)
{
	memset(&faulty, 0, sizeof(faulty));
	return scratch_setup(state);
}

#define sync_test(function) cmocka_unit_test_setup_teardown(function, setup, scratch_teardown)

/* ---- trees as text */

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void describe(int dir_fd, const char *name, struct buf *out);

static void describe_dir(int dir_fd, const char *name, struct buf *out)
{
	struct dirent **entries = NULL;
	int count = scandirat(dir_fd, name, &entries, NULL, by_name);
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	buf_puts(out, "{ ");
	for (int i = 0; i < count; i++) {
		const char *entry = entries[i]->d_name;
		if (strcmp(entry, ".") != 0 && strcmp(entry, "..") != 0)
			describe(fd, entry, out);
		free(entries[i]);
	}
	free(entries);
	buf_puts(out, "} ");
}

/* "NAME:MODE=CONTENTS " with all that is in it. */
static void describe(int dir_fd, const char *name, struct buf *out)
{
	struct stat st;
	char text[4096];
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		buf_printf(out, "%s:none ", name);
		return;
	}
	if (S_ISLNK(st.st_mode)) {
		ssize_t len = readlinkat(dir_fd, name, text, sizeof(text));
		buf_printf(out, "%s->%.*s ", name, (int)len, text);
		return;
	}
	buf_printf(out, "%s:%o=", name, st.st_mode & 07777);
	if (S_ISDIR(st.st_mode)) {
		describe_dir(dir_fd, name, out);
		return;
	}
	auto_close int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof(text));
	buf_printf(out, "%.*s ", (int)(len > 0 ? len : 0), text);
}

static char *tree_of(const struct scratch *scratch, const char *path)
{
	struct buf out = BUF_INIT(TREE_SIZE_MAX);
	describe(scratch->fd, path, &out);
	return buf_take(&out);
}

static void assert_tree(const struct scratch *scratch, const char *path, const char *wanted)
{
	auto_free char *tree = tree_of(scratch, path);
	assert_string_equal(tree, wanted);
}

/* ---- tools */

static void write_tool(
	const struct scratch *scratch, const char *dir, const char *version, const char *code)
{
	auto_free char *manifest = xasprintf("%s/TOOL.md", dir);
	auto_free char *entry = xasprintf("%s/index.ts", dir);
	auto_free char *text = xasprintf("---\nname: x\ndescription: Does it.\n%s---\n", version);
	scratch_write(scratch, manifest, text);
	scratch_write(scratch, entry, code);
}

static void change_mode(const struct scratch *scratch, const char *path, mode_t mode)
{
	assert_int_equal(fchmodat(scratch->fd, path, mode, 0), 0);
}

/* Runs a sync of seed/ to target/. What was done, as "NAME:ACTION ..." or "-CODE". */
static char *run_sync(const struct scratch *scratch, struct sync_options options)
{
	auto_free char *seed = xasprintf("%s/seed", scratch->path);
	auto_free char *target = xasprintf("%s/target", scratch->path);
	struct sync_report report;
	struct fail why = FAIL_INIT;
	struct buf out = BUF_INIT(TREE_SIZE_MAX);
	int result = sync_run(seed, target, &options, &report, &why);
	if (result < 0)
		buf_printf(&out, "%s", strerrorname_np(-result));
	for (size_t i = 0; result == 0 && i < report.count; i++)
		buf_printf(&out, "%s%s:%s", i ? " " : "", report.items[i].name,
			sync_action_name(report.items[i].action));
	for (size_t i = 0; i < report.warnings.count; i++)
		buf_printf(&out, " %s", report.warnings.items[i].code);
	sync_report_release(&report);
	return buf_take(&out);
}

static void assert_sync(const struct scratch *scratch, const char *wanted)
{
	auto_free char *told = run_sync(scratch, (struct sync_options){ .wait_ms = 0 });
	assert_string_equal(told, wanted);
}

/* ---- versions */

static void r87_r9_an_empty_target_gets_the_seed(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/one", "version: 1\n", "1");
	write_tool(scratch, "seed/two", "version: 2\n", "2");
	assert_sync(scratch, "one:installed two:installed");
	auto_free char *seed = tree_of(scratch, "seed"), *target = tree_of(scratch, "target");
	assert_string_equal(seed + strlen("seed"), target + strlen("target"));
}

static void r89_r90_a_greater_version_is_copied_and_no_other(void **state)
{
	struct scratch *scratch = *state;
	static const struct {
		const char *seed, *target, *told, *code;
	} cases[] = {
		{ "version: 0\n", "version: 0\n", "t:equal", "old" },
		{ "version: 1\n", "version: 0\n", "t:updated", "new" },
		{ "version: 1\n", "version: 1\n", "t:equal", "old" },
		{ "version: 1\n", "version: 2\n", "t:newer", "old" },
		{ "version: 2\n", "version: 1\n", "t:updated", "new" },
		{ "", "version: 1\n", "t:newer missing-version", "old" },
		{ "version: 1\n", "", "t:updated missing-version", "new" },
		{ "", "", "t:equal missing-version missing-version", "old" },
		{ "version: 10\n", "version: 9\n", "t:updated", "new" },
		{ "version: 9\n", "version: 10\n", "t:newer", "old" },
		{ "version: 4294967297\n", "version: 2\n", "t:updated", "new" },
		{ "version: abc\n", "version: 0\n", "t:equal version-not-integer", "old" },
		{ "version: -1\n", "version: 0\n", "t:equal version-not-integer", "old" },
		{ "version: 1.5\n", "version: 1\n", "t:newer version-not-integer", "old" },
		{ "version: \"2\"\n", "version: 1\n", "t:updated version-not-integer", "new" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		write_tool(scratch, "seed/t", cases[i].seed, "new");
		write_tool(scratch, "target/t", cases[i].target, "old");
		assert_sync(scratch, cases[i].told);
		auto_free char *tree = tree_of(scratch, "target/t/index.ts");
		auto_free char *wanted = xasprintf("target/t/index.ts:644=%s ", cases[i].code);
		assert_string_equal(tree, wanted);
	}
}

static void r88_a1_a_front_matter_that_cannot_be_read_is_version_0(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "new");
	write_tool(scratch, "target/t", "version: 1\n", "old");
	scratch_write(scratch, "target/t/TOOL.md", "no front matter\nversion: 7\n");
	assert_sync(scratch, "t:updated no-front-matter");
}

static void r88_a_tool_that_is_unusable_has_a_version_all_the_same(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	write_tool(scratch, "target/t", "", "old");
	scratch_write(scratch, "target/t/TOOL.md", "---\nversion: 3\n---\n");
	assert_sync(scratch, "t:newer missing-name missing-description");
}

static void r92_the_next_run_takes_a_greater_version(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "1");
	assert_sync(scratch, "t:installed");
	write_tool(scratch, "seed/t", "version: 1\n", "changed, not raised");
	assert_sync(scratch, "t:equal");
	assert_tree(scratch, "target/t/index.ts", "target/t/index.ts:644=1 ");
	write_tool(scratch, "seed/t", "version: 2\n", "2");
	assert_sync(scratch, "t:updated");
	assert_tree(scratch, "target/t/index.ts", "target/t/index.ts:644=2 ");
}

static void r93_edits_stay_until_the_seed_is_greater(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/same", "version: 1\n", "seed");
	write_tool(scratch, "seed/own", "version: 1\n", "seed");
	write_tool(scratch, "target/same", "version: 1\n", "edited");
	write_tool(scratch, "target/own", "version: 5\n", "edited");
	auto_free char *before = tree_of(scratch, "target");
	assert_sync(scratch, "own:newer same:equal");
	assert_tree(scratch, "target", before);
	write_tool(scratch, "seed/same", "version: 2\n", "seed");
	assert_sync(scratch, "own:newer same:updated");
	assert_tree(scratch, "target/same/index.ts", "target/same/index.ts:644=seed ");
}

static void r95_tools_that_are_not_in_the_seed_stay(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "seed");
	write_tool(scratch, "target/extra", "version: 1\n", "mine");
	scratch_write(scratch, "target/.hidden", "mine");
	scratch_write(scratch, "target/notes.txt", "mine");
	assert_sync(scratch, "t:installed");
	assert_tree(scratch, "target/notes.txt", "target/notes.txt:644=mine ");
	assert_tree(scratch, "target/.hidden", "target/.hidden:644=mine ");
	assert_tree(scratch, "target/extra/index.ts", "target/extra/index.ts:644=mine ");
}

static void a2_what_is_absent_is_copied_at_any_version(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 0\n", "seed");
	assert_sync(scratch, "t:installed");
}

static void a2_a_directory_without_its_manifest_is_version_0(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "seed");
	scratch_write(scratch, "target/t/index.ts", "mine");
	assert_sync(scratch, "t:updated");
	scratch_write(scratch, "seed/u/TOOL.md", "---\nname: u\ndescription: x\nversion: 0\n---\n");
	scratch_write(scratch, "target/u/index.ts", "mine");
	assert_sync(scratch, "t:equal u:equal");
}

static void a15_what_is_no_tool_is_passed_over(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "seed");
	write_tool(scratch, "seed/.hidden", "version: 1\n", "seed");
	write_tool(scratch, "elsewhere", "version: 1\n", "seed");
	scratch_write(scratch, "seed/TOOLS.md", "the guide");
	scratch_write(scratch, "seed/no_manifest/index.ts", "seed");
	scratch_link(scratch, "../elsewhere", "seed/link");
	scratch_link(scratch, "TOOLS.md", "seed/link_to_file");
	scratch_link(scratch, "nothing", "seed/dangling");
	assert_sync(scratch, "t:installed seed-link");
	assert_tree(scratch, "target/TOOLS.md", "target/TOOLS.md:none ");
	assert_tree(scratch, "target/no_manifest", "target/no_manifest:none ");
	assert_tree(scratch, "target/.hidden", "target/.hidden:none ");
	assert_tree(scratch, "target/link", "target/link:none ");
}

/* ---- copies */

static void r91_the_whole_directory_is_replaced_modes_and_links_kept(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "target/t", "version: 1\n", "old");
	scratch_write(scratch, "target/t/stale.txt", "old");
	scratch_write(scratch, "target/t/bin/deep/stale.txt", "old");
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	scratch_write(scratch, "seed/t/bin/x.sh", "#!/bin/sh\n");
	scratch_write(scratch, "seed/t/bin/deep/private", "data");
	scratch_mkdir(scratch, "seed/t/empty");
	scratch_link(scratch, "x.sh", "seed/t/bin/link");
	scratch_link(scratch, "/usr/bin/python3", "seed/t/bin/python");
	change_mode(scratch, "seed/t/bin/x.sh", 0755);
	change_mode(scratch, "seed/t/bin/deep/private", 0600);
	change_mode(scratch, "seed/t/bin/deep", 0500);
	change_mode(scratch, "seed/t", 04751);
	assert_sync(scratch, "t:updated");
	assert_tree(scratch, "target/t",
		"target/t:751={ TOOL.md:644=---\nname: x\ndescription: Does it.\nversion: 2\n---\n "
		"bin:755={ deep:500={ private:600=data } link->x.sh python->/usr/bin/python3 "
		"x.sh:755=#!/bin/sh\n } empty:755={ } index.ts:644=new } ");
	change_mode(scratch, "seed/t/bin/deep", 0700);
}

static void r91_a_device_or_fifo_is_no_part_of_a_tool(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "target/t", "version: 1\n", "old");
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	assert_int_equal(mknodat(scratch->fd, "seed/t/fifo", S_IFIFO | 0644, 0), 0);
	auto_free char *before = tree_of(scratch, "target");
	assert_sync(scratch, "t:failed");
	assert_tree(scratch, "target", before);
}

static void r91_one_tool_that_fails_does_not_stop_the_others(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/a", "version: 1\n", "new");
	write_tool(scratch, "seed/b", "version: 1\n", "new");
	assert_int_equal(mknodat(scratch->fd, "seed/a/fifo", S_IFIFO | 0644, 0), 0);
	assert_sync(scratch, "a:failed b:installed");
	assert_tree(scratch, "target/" SWAPDIR_NEW, "target/" SWAPDIR_NEW ":none ");
}

static void r91_nothing_is_written_outside_of_the_target(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	write_tool(scratch, "seed/u", "version: 2\n", "new");
	write_tool(scratch, "outside", "version: 1\n", "precious");
	scratch_mkdir(scratch, "target");
	scratch_link(scratch, "../outside", "target/t");
	scratch_link(scratch, "../outside", "target/" SWAPDIR_NEW);
	auto_free char *before = tree_of(scratch, "outside");
	assert_sync(scratch, "t:failed u:installed");
	assert_tree(scratch, "outside", before);
	assert_tree(scratch, "target/t", "target/t->../outside ");
}

static void r91_links_in_the_old_tool_are_removed_not_followed(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	write_tool(scratch, "target/t", "version: 1\n", "old");
	scratch_write(scratch, "outside/precious.txt", "precious");
	scratch_link(scratch, "../../outside", "target/t/bin");
	assert_sync(scratch, "t:updated");
	assert_tree(scratch, "outside", "outside:755={ precious.txt:644=precious } ");
}

/* ---- the two directories */

static void sync_of_a_directory_to_itself_or_into_itself_is_refused(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "new");
	scratch_link(scratch, "seed", "target");
	assert_sync(scratch, "EINVAL");
	assert_int_equal(unlinkat(scratch->fd, "target", 0), 0);
	scratch_link(scratch, "seed/t", "target");
	assert_sync(scratch, "EINVAL");
	assert_int_equal(unlinkat(scratch->fd, "target", 0), 0);
	scratch_link(scratch, ".", "target");
	assert_sync(scratch, "EINVAL");
}

static void sync_without_a_seed_fails(void **state)
{
	assert_sync(*state, "ENOENT");
}

static void sync_in_a_dry_run_changes_nothing(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	auto_free char *told = run_sync(scratch, (struct sync_options){ .dry_run = true });
	assert_string_equal(told, "t:installed");
	assert_tree(scratch, "target", "target:none ");
	write_tool(scratch, "target/t", "version: 1\n", "old");
	auto_free char *before = tree_of(scratch, "target");
	auto_free char *again = run_sync(scratch, (struct sync_options){ .dry_run = true });
	assert_string_equal(again, "t:updated");
	assert_tree(scratch, "target", before);
}

static void sync_beside_another_one_is_refused_until_that_ends(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "new");
	scratch_mkdir(scratch, "target");
	auto_close int fd = openat(scratch->fd, "target", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_sync(scratch, "EBUSY");
	auto_free char *told = run_sync(scratch, (struct sync_options){ .wait_ms = 60 });
	assert_string_equal(told, "EBUSY");
	assert_tree(scratch, "target", "target:755={ } ");
	assert_int_equal(flock(fd, LOCK_UN), 0);
	assert_sync(scratch, "t:installed");
}

static void sync_keeps_no_descriptor(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "new");
	size_t before = scratch_count_fds();
	assert_sync(scratch, "t:installed");
	assert_sync(scratch, "t:equal");
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- crashes and full disks */

/* target/t is either as it was, or as in the seed; target/w is there or not. Nothing in between. */
struct expected {
	char *old, *new;
};

static void make_case(const struct scratch *scratch, struct expected *expected)
{
	io_remove_tree(scratch->fd, "seed");
	io_remove_tree(scratch->fd, "target");
	write_tool(scratch, "seed/t", "version: 2\n", "new");
	scratch_write(scratch, "seed/t/bin/deep/x.sh", "new");
	scratch_link(scratch, "x.sh", "seed/t/bin/deep/link");
	write_tool(scratch, "target/t", "version: 1\n", "old");
	scratch_write(scratch, "target/t/bin/old.sh", "old");
	scratch_write(scratch, "target/t/edited.txt", "mine");
	write_tool(scratch, "seed/w", "version: 1\n", "new");
	expected->old = tree_of(scratch, "target/t");
	char *seed = tree_of(scratch, "seed/t");
	expected->new = xasprintf("target%s", seed + strlen("seed"));
	free(seed);
}

static void release_case(struct expected *expected)
{
	free(expected->old);
	free(expected->new);
}

static bool assert_whole(
	const struct scratch *scratch, const struct expected *expected, bool may_be_aside, long at)
{
	auto_free char *tree = tree_of(scratch, "target/t");
	bool is_aside = may_be_aside && strcmp(tree, "target/t:none ") == 0;
	if (!is_aside && strcmp(tree, expected->old) != 0 && strcmp(tree, expected->new) != 0)
		fail_msg("after call %ld: %s", at, tree);
	auto_free char *other = tree_of(scratch, "target/w");
	auto_free char *seed = tree_of(scratch, "seed/w");
	if (strcmp(other, "target/w:none ") != 0 &&
		strcmp(other + strlen("target"), seed + strlen("seed")) != 0)
		fail_msg("after call %ld: %s", at, other);
	return strcmp(tree, expected->new) == 0;
}

/* A run in a child that ends at its n-th call. Returns whether it came to its end. */
static bool run_and_crash(const struct scratch *scratch, long at)
{
	pid_t child = fork();
	if (child == 0) {
		faulty.calls = 0;
		faulty.crash_at = at;
		free(run_sync(scratch, (struct sync_options){ .wait_ms = 0 }));
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 0;
}

static void crash_at_each_call(const struct scratch *scratch, bool may_be_aside)
{
	for (long at = 1;; at++) {
		struct expected expected;
		make_case(scratch, &expected);
		bool is_done = run_and_crash(scratch, at);
		assert_whole(scratch, &expected, may_be_aside, at);
		free(run_sync(scratch, (struct sync_options){ .wait_ms = 0 }));
		auto_free char *target = tree_of(scratch, "target");
		auto_free char *seed = tree_of(scratch, "seed");
		assert_string_equal(target + strlen("target"), seed + strlen("seed"));
		release_case(&expected);
		if (is_done) {
			assert_true(at > 20);
			return;
		}
	}
}

static void a16_a_crash_at_any_point_leaves_the_old_tool_or_the_new(void **state)
{
	crash_at_each_call(*state, false);
}

static void a16_a_crash_where_nothing_can_be_exchanged_is_mended_by_the_next_run(void **state)
{
	faulty.no_exchange = true;
	crash_at_each_call(*state, true);
}

/* What a crash in the two steps left, before the next run brings something newer. */
static void a16_a_tool_that_was_set_aside_is_put_back(void **state)
{
	struct scratch *scratch = *state;
	write_tool(scratch, "seed/t", "version: 1\n", "seed");
	write_tool(scratch, "target/" SWAPDIR_OLD "t", "version: 3\n", "mine");
	assert_sync(scratch, "t:newer");
	assert_tree(scratch, "target/t/index.ts", "target/t/index.ts:644=mine ");
	assert_tree(scratch, "target/" SWAPDIR_OLD "t", "target/" SWAPDIR_OLD "t:none ");
}

static void a16_a_full_disk_at_any_point_loses_nothing(void **state)
{
	struct scratch *scratch = *state;
	for (long at = 1;; at++) {
		struct expected expected;
		make_case(scratch, &expected);
		faulty.calls = 0;
		faulty.fail_at = at;
		auto_free char *told = run_sync(scratch, (struct sync_options){ .wait_ms = 0 });
		bool was_full = faulty.calls >= at;
		faulty.fail_at = 0;
		bool is_new = assert_whole(scratch, &expected, false, at);
		assert_int_equal(strncmp(told, "t:updated", strlen("t:updated")) == 0, is_new);
		assert_tree(scratch, "target/" SWAPDIR_NEW, "target/" SWAPDIR_NEW ":none ");
		if (!was_full)
			assert_string_equal(told, "t:updated w:installed");
		free(run_sync(scratch, (struct sync_options){ .wait_ms = 0 }));
		assert_true(assert_whole(scratch, &expected, false, at));
		release_case(&expected);
		if (!was_full)
			return;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		sync_test(r87_r9_an_empty_target_gets_the_seed),
		sync_test(r89_r90_a_greater_version_is_copied_and_no_other),
		sync_test(r88_a1_a_front_matter_that_cannot_be_read_is_version_0),
		sync_test(r88_a_tool_that_is_unusable_has_a_version_all_the_same),
		sync_test(r92_the_next_run_takes_a_greater_version),
		sync_test(r93_edits_stay_until_the_seed_is_greater),
		sync_test(r95_tools_that_are_not_in_the_seed_stay),
		sync_test(a2_what_is_absent_is_copied_at_any_version),
		sync_test(a2_a_directory_without_its_manifest_is_version_0),
		sync_test(a15_what_is_no_tool_is_passed_over),
		sync_test(r91_the_whole_directory_is_replaced_modes_and_links_kept),
		sync_test(r91_a_device_or_fifo_is_no_part_of_a_tool),
		sync_test(r91_one_tool_that_fails_does_not_stop_the_others),
		sync_test(r91_nothing_is_written_outside_of_the_target),
		sync_test(r91_links_in_the_old_tool_are_removed_not_followed),
		sync_test(sync_of_a_directory_to_itself_or_into_itself_is_refused),
		sync_test(sync_without_a_seed_fails),
		sync_test(sync_in_a_dry_run_changes_nothing),
		sync_test(sync_beside_another_one_is_refused_until_that_ends),
		sync_test(sync_keeps_no_descriptor),
		sync_test(a16_a_crash_at_any_point_leaves_the_old_tool_or_the_new),
		sync_test(a16_a_crash_where_nothing_can_be_exchanged_is_mended_by_the_next_run),
		sync_test(a16_a_tool_that_was_set_aside_is_put_back),
		sync_test(a16_a_full_disk_at_any_point_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
