#include "core/tools/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/ownmount.h"
#include "core/base/xalloc.h"
#include "core/tools/manifest.h"

int source_open_tool(const struct tool *tool)
{
	return tool->root ? root_open_dir(tool->root, tool->dir_name, O_PATH) : -ENOENT;
}

static int open_name(int dir_fd, const char *name)
{
	int flags = O_PATH | O_NOFOLLOW;
	int fd = io_open_resolve(dir_fd, name, flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (fd != -EXDEV)
		return fd;
	auto_close int mounted = io_open_resolve(dir_fd, name, flags, RESOLVE_NO_SYMLINKS);
	return mounted >= 0 && ownmount_has(mounted) ? -ENOENT : take_fd(&mounted);
}

/* Name by name, as a mount is on the way: whose it is must be known before anything behind it. */
static int open_across(int dir_fd, const char *path, int flags)
{
	auto_free char *rest = xstrdup(path);
	auto_close int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	char *state = NULL;
	for (char *name = strtok_r(rest, "/", &state); name; name = strtok_r(NULL, "/", &state)) {
		int next = open_name(fd, name);
		if (next < 0)
			return next;
		close(fd);
		fd = next;
	}
	if (flags & O_PATH)
		return take_fd(&fd);
	return io_open_resolve(fd, ".", flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

int source_open_file(const struct tool *tool, const char *path, int flags)
{
	auto_close int dir_fd = source_open_tool(tool);
	if (dir_fd < 0)
		return dir_fd;
	int fd = io_open_resolve(dir_fd, path, flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	return fd == -EXDEV ? open_across(dir_fd, path, flags) : fd;
}

/* ---- the names in a source */

void source_names_release(struct source_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

/* A16: hidden ones are passed over. */
static bool may_be_tool(const struct dirent *entry)
{
	bool is_dir =
		entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
	return is_dir && entry->d_name[0] != '.';
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

int source_names_load(const struct root *root, struct source_names *names)
{
	*names = (struct source_names){ .items = NULL };
	auto_close int fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	take_fd(&fd);
	const struct dirent *entry;
	errno = 0;
	while ((entry = readdir(dir)) && !names->overflown) {
		if (!may_be_tool(entry))
			continue;
		names->overflown = names->count == SOURCE_DIRS_MAX;
		if (names->overflown)
			break;
		names->items =
			xgrow(names->items, names->count, &names->capacity, sizeof(*names->items));
		names->items[names->count++] = xstrdup(entry->d_name);
	}
	if (!entry && errno)
		return -errno;
	if (names->count > 0)
		qsort(names->items, names->count, sizeof(*names->items), compare_names);
	return 0;
}

/* ---- faults */

static void report(struct faults *faults, const char *file, enum fault_level level,
	const char *code, const char *text)
{
	struct faults one = FAULTS_INIT;
	faults_add(&one, level, code, 0, 0, "%s", text);
	faults_move(faults, &one, file);
}

static void report_open(struct faults *faults, const char *file, int code)
{
	if (code == -EXDEV)
		report(faults, file, FAULT_ERROR, "link-outside",
			"a symbolic link that leads out of the tool directory, or to another mount; "
			"copy the tool here or bind-mount it");
	else if (code == -ELOOP)
		report(faults, file, FAULT_ERROR, "link-outside",
			"a symbolic link that leads in a circle; remove it");
	else if (code == -ENOENT)
		report(faults, file, FAULT_ERROR, "dangling-link",
			"a symbolic link to a directory that is not there");
	else
		report(faults, file, FAULT_ERROR, "unreadable",
			code == -EACCES ? "the directory may not be read" : strerror(-code));
}

static bool is_link(int source_fd, const char *name)
{
	char target[1];
	return readlinkat(source_fd, name, target, sizeof(target)) >= 0;
}

static void report_source(struct source_scan *scan, const char *path, int code)
{
	char text[160];
	snprintf(text, sizeof(text), "there are no tools from here: %s",
		code == -ELOOP
			? "symbolic links that lead in a circle, or one that is not followed here"
			: strerror(-code));
	scan->is_missing = code == -ENOENT;
	report(&scan->faults, path, FAULT_WARNING, "missing-source", text);
}

void source_append_tools(const struct source_scan *scan, struct overlay *overlay, size_t source)
{
	for (size_t i = 0; i < scan->count; i++)
		if (scan->candidates[i]->tool)
			overlay_append(overlay, scan->candidates[i]->tool, source);
}

void source_tell_faults(const struct source_scan *scan, struct faults *faults)
{
	for (size_t i = 0; i < scan->count; i++) {
		faults_copy(faults, &scan->candidates[i]->parse_faults);
		faults_copy(faults, &scan->candidates[i]->place_faults);
	}
	faults_copy(faults, &scan->faults);
}

/* ---- candidates */

static void free_candidate(struct candidate *candidate)
{
	if (candidate)
		candidate_release(candidate);
	free(candidate);
}

/* A directory that cannot be opened. NULL where that is no fault. */
static struct candidate *unopened(const struct root *root, const char *name, int code)
{
	/* A link to a plain file is a plain file (A15); what has just gone is no fault. */
	bool is_gone = code == -ENOENT && !is_link(root->fd, name);
	if (code == -ENOTDIR || is_gone)
		return NULL;
	struct candidate *candidate = xcalloc(1, sizeof(*candidate));
	candidate->dir_name = xstrdup(name);
	auto_free char *dir = xasprintf("%s/%s", root->path, name);
	report_open(&candidate->place_faults, dir, code);
	return candidate;
}

/* What is in the directory; the caller's. NULL where it has nothing to do with tools. */
static struct candidate *look_at(
	struct root *root, const char *name, const struct candidate *before, struct buf *scratch)
{
	auto_close int fd = root_open_dir(root, name, O_RDONLY);
	if (fd < 0)
		return unopened(root, name, fd);
	struct candidate *candidate = xcalloc(1, sizeof(*candidate));
	if (candidate_load(fd, root, name, before, scratch, candidate))
		return candidate;
	free_candidate(candidate);
	return NULL;
}

/* Where the directory's candidate is, or where it would go; *found tells which. */
static size_t place_of(const struct source_scan *scan, const char *name, bool *found)
{
	size_t low = 0, high = scan->count;
	*found = false;
	while (low < high && !*found) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(scan->candidates[middle]->dir_name, name);
		*found = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return *found ? high : low;
}

struct tool *source_tool_in(const struct source_scan *scan, const char *dir_name)
{
	bool found;
	size_t at = place_of(scan, dir_name, &found);
	return found ? scan->candidates[at]->tool : NULL;
}

static void insert(struct source_scan *scan, size_t at, struct candidate *candidate)
{
	scan->candidates =
		xgrow(scan->candidates, scan->count, &scan->capacity, sizeof(struct candidate *));
	memmove(&scan->candidates[at + 1], &scan->candidates[at],
		(scan->count++ - at) * sizeof(struct candidate *));
	scan->candidates[at] = candidate;
}

static void take_out(struct source_scan *scan, size_t at)
{
	free_candidate(scan->candidates[at]);
	memmove(&scan->candidates[at], &scan->candidates[at + 1],
		(--scan->count - at) * sizeof(struct candidate *));
}

/* ---- one directory */

static bool same_faults(const struct candidate *a, const struct candidate *b)
{
	static const struct faults none = FAULTS_INIT;
	return faults_equal(a ? &a->parse_faults : &none, b ? &b->parse_faults : &none) &&
	       faults_equal(a ? &a->place_faults : &none, b ? &b->place_faults : &none);
}

static struct tool *ref_tool(const struct candidate *candidate)
{
	return candidate && candidate->tool ? tool_ref(candidate->tool) : NULL;
}

static void report_too_many(struct source_scan *scan)
{
	report(&scan->faults, scan->root->path, FAULT_ERROR, "too-many-directories",
		"more than 65536 directories; some are left out, split it");
}

/* Whether there is no room for a further directory; told once. */
static bool is_full(struct source_scan *scan, struct source_change *change)
{
	if (scan->count < SOURCE_DIRS_MAX)
		return false;
	if (scan->faults.count == 0) {
		report_too_many(scan);
		change->faults = true;
	}
	return true;
}

void source_scan_dir(struct source_scan *scan, const char *dir_name, struct source_change *change)
{
	*change = (struct source_change){ .faults = false };
	if (!scan->root || *dir_name == '.')
		return;
	bool found;
	size_t at = place_of(scan, dir_name, &found);
	if (!found && is_full(scan, change))
		return;
	struct candidate *before = found ? scan->candidates[at] : NULL;
	auto_buf struct buf scratch = BUF_INIT(MANIFEST_SIZE_MAX);
	struct candidate *now = look_at(scan->root, dir_name, before, &scratch);
	change->old = ref_tool(before);
	change->new = ref_tool(now);
	change->faults = !same_faults(before, now);
	if (before)
		take_out(scan, at);
	if (now)
		insert(scan, at, now);
}

/* ---- a whole source */

/* What the earlier scan found in the directory; *at moves on with the names, which ascend. */
static const struct candidate *find_before(
	const struct source_scan *before, size_t *at, const char *name)
{
	while (before && *at < before->count) {
		const struct candidate *candidate = before->candidates[*at];
		int order = strcmp(candidate->dir_name, name);
		if (order >= 0)
			return order == 0 ? candidate : NULL;
		(*at)++;
	}
	return NULL;
}

static void scan_names(struct source_scan *scan, const struct source_scan *before,
	const struct source_names *names)
{
	auto_buf struct buf scratch = BUF_INIT(MANIFEST_SIZE_MAX);
	size_t at = 0;
	for (size_t i = 0; i < names->count; i++) {
		const char *name = names->items[i];
		struct candidate *candidate =
			look_at(scan->root, name, find_before(before, &at, name), &scratch);
		if (candidate)
			insert(scan, scan->count, candidate);
	}
	if (names->overflown)
		report_too_many(scan);
}

/* The directory behind path; the one of before where it is still that, or lies below a mount. */
static struct root *find_root(
	const char *path, const struct covered *covered, struct root *before, int *code)
{
	struct root *root = root_open(path, covered, code);
	bool is_same = root ? root_equal(root, before) : *code == -EXDEV && before;
	if (!is_same)
		return root;
	root_unref(root);
	return root_ref(before);
}

void source_enter(const char *path, const struct covered *covered, struct root *before,
	struct source_scan *scan)
{
	*scan = (struct source_scan){ .root = NULL };
	int code;
	scan->root = find_root(path, covered, before, &code);
	if (!scan->root && code == -EXDEV)
		report(&scan->faults, path, FAULT_ERROR, "own-mount",
			"this is the mount itself and not a directory with tools; take it out of "
			"PI_TOOLS_DIRS");
	else if (!scan->root)
		report_source(scan, path, code);
	if (!scan->root)
		return;
	auto_close int fd = openat(scan->root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		report_source(scan, path, -errno);
}

void source_scan(const char *path, const struct covered *covered, const struct source_scan *before,
	struct source_scan *scan)
{
	source_enter(path, covered, before ? before->root : NULL, scan);
	if (!scan->root || scan->faults.count > 0)
		return;
	struct source_names names;
	int result = source_names_load(scan->root, &names);
	if (result < 0)
		report_source(scan, path, result);
	else
		scan_names(scan, before && before->root == scan->root ? before : NULL, &names);
	source_names_release(&names);
}

void source_scan_release(struct source_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		free_candidate(scan->candidates[i]);
	free(scan->candidates);
	root_unref(scan->root);
	faults_release(&scan->faults);
	*scan = (struct source_scan){ .root = NULL };
}

void source_scan_replace(struct source_scan *scan, const struct tool *old, struct tool *new)
{
	for (size_t i = 0; i < scan->count; i++) {
		struct tool **slot = &scan->candidates[i]->tool;
		if (*slot != old)
			continue;
		struct tool *taken = *slot;
		*slot = tool_ref(new);
		tool_unref(taken);
	}
}
