#include "core/tools/sync.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/ownmount.h"
#include "core/base/xalloc.h"
#include "core/tools/copytree.h"
#include "core/tools/manifest.h"
#include "core/tools/swapdir.h"

#define LOCK_STEP_MS 20

/* One run. */
struct run {
	const char *seed, *target;
	int seed_fd, target_fd; /* target_fd: -1 in a dry run where there is no target */
	const struct sync_options *options;
	struct sync_report *report;
};

/* ---- the report */

void sync_report_release(struct sync_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		free(report->items[i].name);
		free(report->items[i].problem);
	}
	free(report->items);
	faults_release(&report->warnings);
	*report = (struct sync_report){ .items = NULL };
}

size_t sync_count(const struct sync_report *report, enum sync_action action)
{
	size_t count = 0;
	for (size_t i = 0; i < report->count; i++)
		count += report->items[i].action == action;
	return count;
}

const char *sync_action_name(enum sync_action action)
{
	static const char *const names[] = { [SYNC_INSTALLED] = "installed",
		[SYNC_UPDATED] = "updated",
		[SYNC_EQUAL] = "equal",
		[SYNC_NEWER] = "newer",
		[SYNC_FAILED] = "failed" };
	return names[action];
}

static void add_item(struct sync_report *report, struct sync_item item)
{
	report->items =
		xgrow(report->items, report->count, &report->capacity, sizeof(*report->items));
	report->items[report->count++] = item;
}

static void warn(struct run *run, const char *root, const char *name, const char *code, size_t line,
	const char *text)
{
	struct faults one = FAULTS_INIT;
	auto_free char *file = xasprintf("%s/%s", root, name);
	faults_add(&one, FAULT_WARNING, code, line, 0, "%s", text);
	faults_move(&run->report->warnings, &one, file);
}

/* ---- versions */

static bool is_about_version(const struct fault *fault)
{
	return strcmp(fault->code, "missing-version") == 0 ||
	       strcmp(fault->code, "version-not-integer") == 0;
}

/* What there is to tell about a TOOL.md as far as its version goes. */
static void warn_about(struct run *run, const char *root, const char *name,
	const struct faults *faults, bool is_usable)
{
	auto_free char *file = xasprintf("%s/%s", name, TOOL_FILE);
	for (size_t i = 0; i < faults->count; i++) {
		const struct fault *fault = &faults->items[i];
		if (is_about_version(fault) || (!is_usable && fault->level == FAULT_ERROR))
			warn(run, root, file, fault->code, fault->line, fault->text);
	}
}

/*
 * The version in TOOL.md of the directory dir_fd, root/name for messages. Returns 0, -ENOENT where
 * there is no TOOL.md, or why->code.
 */
static int load_version(struct run *run, int dir_fd, const char *root, const char *name,
	int64_t *version, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_SIZE_MAX);
	int result = io_load_beneath(dir_fd, TOOL_FILE, &text);
	if (result == -ENOENT)
		return result;
	if (result < 0)
		return fail_set(why, result, "'%s/%s/%s' cannot be read: %s", root, name, TOOL_FILE,
			result == -EFBIG ? "it is too large" : strerror(-result));
	auto_faults struct faults faults = FAULTS_INIT;
	auto_tool struct tool *tool = tool_new();
	bool is_usable = manifest_parse(buf_str(&text), text.len, tool, &faults) == 0;
	warn_about(run, root, name, &faults, is_usable);
	*version = tool->version;
	return 0;
}

/*
 * The version of the target's tool, SYNC_ABSENT where there is none. A link or a file in its place
 * is somebody's own doing, and nothing is followed out of the target.
 */
static int look_at_target(struct run *run, const char *name, int64_t *version, struct fail *why)
{
	*version = SYNC_ABSENT;
	if (run->target_fd < 0)
		return 0;
	auto_close int fd =
		openat(run->target_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return fail_set(why, -ENOTDIR,
			"'%s/%s' is a link or a file, which sync does not replace; remove it",
			run->target, name);
	if (fd < 0)
		return fail_errno(why, "'%s/%s' cannot be read", run->target, name);
	int result = load_version(run, fd, run->target, name, version, why);
	if (result == -ENOENT)
		*version = 0; /* A2 */
	return why->code;
}

/* ---- one tool */

static int replace(struct run *run, int from_fd, const char *name, bool had_old, struct fail *why)
{
	int result = copytree(from_fd, run->target_fd, SWAPDIR_NEW, why);
	if (result == 0)
		result = swapdir_place(run->target_fd, name, had_old, why);
	if (result < 0)
		(void)copytree_remove(run->target_fd, SWAPDIR_NEW); /* else the next run does */
	return result;
}

static enum sync_action decide(int64_t seed_version, int64_t target_version)
{
	if (target_version == SYNC_ABSENT)
		return SYNC_INSTALLED;
	if (seed_version > target_version)
		return SYNC_UPDATED;
	return seed_version == target_version ? SYNC_EQUAL : SYNC_NEWER;
}

/* Returns false where the seed's directory is no tool (A15). */
static bool sync_tool(struct run *run, int from_fd, const char *name, struct sync_item *item)
{
	struct fail why = FAIL_INIT;
	int result = load_version(run, from_fd, run->seed, name, &item->seed_version, &why);
	if (result == -ENOENT)
		return false;
	if (result == 0)
		result = look_at_target(run, name, &item->target_version, &why);
	if (result == 0) {
		item->action = decide(item->seed_version, item->target_version);
		bool is_due = item->action == SYNC_INSTALLED || item->action == SYNC_UPDATED;
		if (is_due && !run->options->dry_run)
			result = replace(run, from_fd, name, item->action == SYNC_UPDATED, &why);
	}
	if (result < 0) {
		item->action = SYNC_FAILED;
		item->problem = xstrdup(why.text);
	}
	return true;
}

static void sync_entry(struct run *run, const char *name)
{
	auto_close int fd =
		openat(run->seed_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct sync_item item = { .action = SYNC_FAILED, .target_version = SYNC_ABSENT };
	if (fd >= 0 && !sync_tool(run, fd, name, &item))
		return;
	if (fd < 0) {
		int error = errno;
		bool is_other = error == ENOTDIR || error == ELOOP;
		struct stat st;
		bool is_dir = fstatat(run->seed_fd, name, &st, 0) == 0 && S_ISDIR(st.st_mode);
		if (is_other && is_dir)
			warn(run, run->seed, name, "seed-link", 0,
				"a symbolic link, which sync passes over; put the tool's directory "
				"itself into the seed");
		if (is_other || error == ENOENT)
			return;
		item.problem =
			xasprintf("'%s/%s' cannot be read: %s", run->seed, name, strerror(error));
	}
	item.name = xstrdup(name);
	add_item(run->report, item);
}

/* ---- all tools */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static int sync_all(struct run *run, struct fail *why)
{
	struct dirent **entries = NULL;
	int count = scandirat(run->seed_fd, ".", &entries, is_visible, compare_names);
	if (count < 0)
		return fail_errno(why, "the seed '%s' cannot be read", run->seed);
	for (int i = 0; i < count; i++) {
		if (run->options->on_progress)
			run->options->on_progress(run->options->context, entries[i]->d_name,
				(size_t)i, (size_t)count);
		sync_entry(run, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

/* ---- the two directories */

static int make_dirs(const char *path, struct fail *why)
{
	auto_free char *part = xstrdup(path);
	for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return fail_errno(why, "the target '%s' cannot be made", part);
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int open_dir(const char *path, const char *what, struct fail *why)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(why, "the %s '%s' cannot be opened", what, path);
	if (ownmount_has(fd))
		return fail_set(why, -EINVAL,
			"the %s '%s' is a mount of pegfs; name the directory that its tools come "
			"from",
			what, path);
	return take_fd(&fd);
}

/* Whether fd is, or lies somewhere in, the directory that *outer tells of. */
static bool lies_in(int fd, const struct stat *outer)
{
	auto_close int at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, above;
	while (at >= 0 && fstat(at, &st) == 0) {
		if (st.st_dev == outer->st_dev && st.st_ino == outer->st_ino)
			return true;
		int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		bool is_root = up < 0 || fstat(up, &above) < 0 ||
			       (above.st_dev == st.st_dev && above.st_ino == st.st_ino);
		close(at);
		at = up;
		if (is_root)
			return false;
	}
	return false;
}

/* One in the other would copy, or replace, itself. */
static int check_apart(const struct run *run, struct fail *why)
{
	struct stat seed, target;
	if (fstat(run->seed_fd, &seed) < 0 || fstat(run->target_fd, &target) < 0)
		return fail_errno(why, "the directories cannot be looked at");
	if (lies_in(run->target_fd, &seed) || lies_in(run->seed_fd, &target))
		return fail_set(why, -EINVAL,
			"the seed '%s' and the target '%s' are the same directory, or one lies in "
			"the other; keep them apart",
			run->seed, run->target);
	return 0;
}

static int lock(const struct run *run, struct fail *why)
{
	for (unsigned waited_ms = 0; flock(run->target_fd, LOCK_EX | LOCK_NB) < 0;
		waited_ms += LOCK_STEP_MS) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return fail_errno(why, "the target '%s' cannot be locked", run->target);
		if (waited_ms >= run->options->wait_ms)
			return fail_set(why, -EBUSY,
				"another sync is at work on '%s'; try again when it is done",
				run->target);
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_STEP_MS * 1000000L }, NULL);
	}
	return 0;
}

/* Opens and locks the target, and mends what a crash left in it. */
static int prepare_target(struct run *run, struct fail *why)
{
	bool is_dry = run->options->dry_run;
	struct stat st;
	if (is_dry && stat(run->target, &st) < 0 && errno == ENOENT)
		return 0;
	if (!is_dry && make_dirs(run->target, why) < 0)
		return why->code;
	run->target_fd = open_dir(run->target, "target", why);
	if (run->target_fd < 0 || check_apart(run, why) < 0)
		return why->code;
	if (is_dry)
		return 0;
	if (lock(run, why) < 0)
		return why->code;
	if (swapdir_recover(run->target_fd, why) < 0)
		return fail_context(why, "the target '%s'", run->target);
	return 0;
}

int sync_run(const char *seed, const char *target, const struct sync_options *options,
	struct sync_report *report, struct fail *why)
{
	*report = (struct sync_report){ .items = NULL };
	struct run run = { .seed = seed,
		.target = target,
		.seed_fd = -1,
		.target_fd = -1,
		.options = options,
		.report = report };
	run.seed_fd = open_dir(seed, "seed", why);
	if (run.seed_fd >= 0 && prepare_target(&run, why) == 0)
		sync_all(&run, why);
	if (run.target_fd >= 0)
		close(run.target_fd); /* and with it goes the lock */
	if (run.seed_fd >= 0)
		close(run.seed_fd);
	return why->code;
}
