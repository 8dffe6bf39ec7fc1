#include "core/tools/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/tools/manifest.h"

int source_open_tool(const struct tool *tool)
{
	return tool->root ? root_open_dir(tool->root, tool->dir_name, O_PATH) : -ENOENT;
}

/* ---- the names in a source */

struct names {
	char **items; /* owned */
	size_t count, capacity;
	bool overflown;
};

static void names_release(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

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

/* In byte order (A7). */
static int read_names(int source_fd, struct names *names)
{
	auto_close int fd = openat(source_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

static void report(struct source_scan *scan, char *file, enum fault_level level, const char *code,
	const char *text)
{
	struct faults one = FAULTS_INIT;
	faults_add(&one, level, code, 0, 0, "%s", text);
	faults_move(&scan->faults, &one, file);
	free(file);
}

/* The file is taken. */
static void report_open(struct source_scan *scan, const char *path, const char *name, int code)
{
	char *file = xasprintf("%s/%s", path, name);
	if (code == -EXDEV)
		report(scan, file, FAULT_ERROR, "link-outside",
			"a symbolic link that leads out of the tool directory, or to another mount; "
			"copy the tool here or bind-mount it");
	else if (code == -ELOOP)
		report(scan, file, FAULT_ERROR, "link-outside",
			"a symbolic link that leads in a circle; remove it");
	else if (code == -ENOENT)
		report(scan, file, FAULT_ERROR, "dangling-link",
			"a symbolic link to a directory that is not there");
	else
		report(scan, file, FAULT_ERROR, "unreadable",
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
	snprintf(text, sizeof(text), "there are no tools from here: %s", strerror(-code));
	report(scan, xstrdup(path), FAULT_WARNING, "missing-source", text);
}

/* ---- scanning */

/* What the earlier scan found in the directory; *at moves on with the names, which ascend. */
static const struct candidate *find_before(
	const struct source_scan *before, size_t *at, const char *name)
{
	while (before && *at < before->candidate_count) {
		const struct candidate *candidate = &before->candidates[*at];
		int order = strcmp(candidate->dir_name, name);
		if (order >= 0)
			return order == 0 ? candidate : NULL;
		(*at)++;
	}
	return NULL;
}

static void keep(struct source_scan *scan, struct candidate candidate)
{
	scan->candidates = xgrow(scan->candidates, scan->candidate_count, &scan->candidate_capacity,
		sizeof(*scan->candidates));
	scan->candidates[scan->candidate_count++] = candidate;
	faults_copy(&scan->faults, &candidate.parse_faults);
	faults_copy(&scan->faults, &candidate.place_faults);
	if (!candidate.tool)
		return;
	scan->tools = xgrow(scan->tools, scan->count, &scan->capacity, sizeof(*scan->tools));
	scan->tools[scan->count++] = tool_ref(candidate.tool);
}

static void look_at(struct source_scan *scan, const char *name, const struct candidate *before,
	struct buf *scratch)
{
	auto_close int fd = root_open_dir(scan->root, name, O_RDONLY);
	if (fd < 0) {
		/* A link to a plain file is a plain file (A15); what has just gone is no fault. */
		bool is_gone = fd == -ENOENT && !is_link(scan->root->fd, name);
		if (fd != -ENOTDIR && !is_gone)
			report_open(scan, scan->root->path, name, fd);
		return;
	}
	struct candidate candidate;
	if (candidate_load(fd, scan->root, name, before, scratch, &candidate))
		keep(scan, candidate);
	else
		candidate_release(&candidate);
}

/* By name; equal ones in the order of their directories. */
static int compare_tools(const void *left, const void *right)
{
	const struct tool *a = *(struct tool *const *)left, *b = *(struct tool *const *)right;
	int order = strcmp(a->name, b->name);
	return order != 0 ? order : strcmp(a->dir_name, b->dir_name);
}

static void report_equal_names(struct source_scan *scan)
{
	auto_free struct tool **sorted = xcalloc(scan->count, sizeof(struct tool *));
	if (scan->count > 0) {
		memcpy(sorted, scan->tools, scan->count * sizeof(*sorted));
		qsort(sorted, scan->count, sizeof(*sorted), compare_tools);
	}
	for (size_t i = 0; i + 1 < scan->count; i++) {
		const struct tool *loser = sorted[i], *next = sorted[i + 1];
		if (strcmp(loser->name, next->name) != 0)
			continue;
		auto_free char *text = xasprintf(
			"the name '%s' is also that of the tool in '%s' beside it, and the last in "
			"byte order wins; rename one of them",
			loser->name, next->dir_name);
		report(scan, xasprintf("%s/%s", loser->dir, TOOL_FILE), FAULT_ERROR,
			"duplicate-name", text);
	}
}

static void scan_names(
	struct source_scan *scan, const struct source_scan *before, const struct names *names)
{
	auto_buf struct buf scratch = BUF_INIT(MANIFEST_SIZE_MAX);
	size_t at = 0;
	for (size_t i = 0; i < names->count; i++)
		look_at(scan, names->items[i], find_before(before, &at, names->items[i]), &scratch);
	report_equal_names(scan);
	if (names->overflown)
		report(scan, xstrdup(scan->root->path), FAULT_ERROR, "too-many-directories",
			"more than 65536 directories; some are left out, split it");
}

/* The directory behind path; the one of before where it is still that, or lies below our mount. */
static struct root *find_root(const char *path, struct root *before, int *code)
{
	struct root *root = root_open(path, code);
	bool is_same = root ? root_equal(root, before) : *code == -EXDEV && before;
	if (!is_same)
		return root;
	root_unref(root);
	return root_ref(before);
}

void source_scan(const char *path, const struct source_scan *before, struct source_scan *scan)
{
	*scan = (struct source_scan){ .tools = NULL };
	int code;
	scan->root = find_root(path, before ? before->root : NULL, &code);
	if (!scan->root && code == -EXDEV)
		report(scan, xstrdup(path), FAULT_ERROR, "own-mount",
			"this is the mount itself and not a directory with tools; take it out of "
			"PI_TOOLS_DIRS");
	else if (!scan->root)
		report_source(scan, path, code);
	if (!scan->root)
		return;
	struct names names = { .items = NULL };
	int result = read_names(scan->root->fd, &names);
	if (result < 0)
		report_source(scan, path, result);
	else
		scan_names(scan, before && before->root == scan->root ? before : NULL, &names);
	names_release(&names);
}

void source_scan_release(struct source_scan *scan)
{
	for (size_t i = 0; i < scan->count; i++)
		tool_unref(scan->tools[i]);
	for (size_t i = 0; i < scan->candidate_count; i++)
		candidate_release(&scan->candidates[i]);
	free(scan->tools);
	free(scan->candidates);
	root_unref(scan->root);
	faults_release(&scan->faults);
	*scan = (struct source_scan){ .tools = NULL };
}

static void replace(struct tool **slot, const struct tool *old, struct tool *new)
{
	if (*slot != old)
		return;
	struct tool *taken = *slot;
	*slot = tool_ref(new);
	tool_unref(taken);
}

void source_scan_replace(struct source_scan *scan, const struct tool *old, struct tool *new)
{
	for (size_t i = 0; i < scan->count; i++)
		replace(&scan->tools[i], old, new);
	for (size_t i = 0; i < scan->candidate_count; i++)
		replace(&scan->candidates[i].tool, old, new);
}
