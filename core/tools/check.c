#include "core/tools/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/tools/candidate.h"
#include "core/tools/checkdoc.h"
#include "core/tools/checkfiles.h"
#include "core/tools/codecheck.h"
#include "core/tools/manifest.h"
#include "core/tools/root.h"
#include "core/tools/sametree.h"
#include "core/tools/source.h"

/* One path that is looked at. */
struct checker {
	const struct check_options *options;
	struct check_report *report;
	struct root *root; /* the directory above the tools */
};

__attribute__((format(printf, 5, 6))) static void add(struct check_report *report, const char *file,
	enum fault_level level, const char *code, const char *format, ...)
{
	struct faults one = FAULTS_INIT;
	va_list args;
	va_start(args, format);
	faults_vadd(&one, level, code, 0, 0, format, args);
	va_end(args);
	faults_move(&report->faults, &one, file);
}

/* ---- one tool */

static const char *find_entry(int dir_fd, const struct candidate *candidate)
{
	static const char *const names[] = { "index.ts", "index.js", "index.py", NULL };
	if (candidate->tool)
		return candidate->tool->entry;
	for (const char *const *name = names; *name; name++)
		if (faccessat(dir_fd, *name, R_OK, 0) == 0)
			return *name;
	return NULL;
}

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), end_len = strlen(end);
	return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

/* Returns whether the code uses credentials. */
static bool check_entry(
	struct checker *checker, int dir_fd, const char *dir, const struct candidate *candidate)
{
	const char *entry = find_entry(dir_fd, candidate);
	if (!entry)
		return false;
	auto_free char *file = xasprintf("%s/%s", dir, entry);
	auto_buf struct buf source = BUF_INIT(CHECK_ENTRY_MAX);
	int result = io_load_beneath(dir_fd, entry, &source);
	if (result == -EFBIG)
		add(checker->report, file, FAULT_WARNING, "large-entry",
			"larger than %d MiB, and not looked at; a tool is short and has no packages "
			"in it",
			CHECK_ENTRY_MAX / (1024 * 1024));
	if (result < 0)
		return false; /* the scan has told why */
	struct faults found = FAULTS_INIT;
	bool is_javascript = ends_with(entry, ".ts") || ends_with(entry, ".js");
	if (is_javascript)
		codecheck_javascript(buf_str(&source), source.len, ends_with(entry, ".ts"),
			candidate->tool, &found);
	else if (ends_with(entry, ".py"))
		codecheck_python(buf_str(&source), source.len, &found);
	faults_move(&checker->report->faults, &found, file);
	return is_javascript && codecheck_uses_secrets(buf_str(&source), source.len);
}

static void check_doc(struct checker *checker, int dir_fd, const char *dir,
	const struct candidate *candidate, bool has_secrets)
{
	auto_free char *file = xasprintf("%s/%s", dir, TOOL_FILE);
	auto_buf struct buf text = BUF_INIT(MANIFEST_SIZE_MAX);
	if (!candidate->tool || io_load_beneath(dir_fd, TOOL_FILE, &text) < 0)
		return;
	struct faults found = FAULTS_INIT;
	checkdoc_run(candidate->tool, buf_str(&text), text.len, candidate->dir_name, has_secrets,
		&found);
	faults_move(&checker->report->faults, &found, file);
}

/* The version in a TOOL.md, 0 where it cannot be read. */
static int64_t version_in(int dir_fd)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_SIZE_MAX);
	auto_faults struct faults ignored = FAULTS_INIT;
	auto_tool struct tool *tool = tool_new();
	if (io_load_beneath(dir_fd, TOOL_FILE, &text) == 0)
		(void)manifest_parse(buf_str(&text), text.len, tool, &ignored);
	return tool->version;
}

static void check_bumped(
	struct checker *checker, int dir_fd, const char *dir, const struct candidate *candidate)
{
	if (!checker->options->against || !candidate->tool)
		return;
	auto_free char *before = xasprintf("%s/%s", checker->options->against, candidate->dir_name);
	auto_close int fd = open(before, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || sametree(fd, dir_fd))
		return;
	int64_t was = version_in(fd);
	auto_free char *file = xasprintf("%s/%s", dir, TOOL_FILE);
	if (candidate->tool->version <= was)
		add(checker->report, file, FAULT_ERROR, "unbumped-version",
			"the tool is not what it is in '%s', but its version, %lld, is not greater "
			"than the %lld there, so sync leaves the old one; raise it",
			before, (long long)candidate->tool->version, (long long)was);
}

/* What the scan does not look at. */
static void check_tool(struct checker *checker, const struct candidate *candidate)
{
	auto_close int fd = root_open_dir(checker->root, candidate->dir_name, O_RDONLY);
	if (fd < 0)
		return;
	auto_free char *dir = xasprintf("%s/%s", checker->root->path, candidate->dir_name);
	checker->report->tools++;
	checkfiles_run(fd, dir, &checker->report->faults);
	bool has_secrets = check_entry(checker, fd, dir, candidate);
	check_doc(checker, fd, dir, candidate, has_secrets);
	check_bumped(checker, fd, dir, candidate);
}

/* ---- paths */

static bool is_tool_dir(const char *path)
{
	static const char *const files[] = { TOOL_FILE, "index.ts", "index.js", NULL };
	for (const char *const *file = files; *file; file++) {
		auto_free char *whole = xasprintf("%s/%s", path, *file);
		struct stat st;
		if (lstat(whole, &st) == 0)
			return true;
	}
	return false;
}

static void tell_faults(const struct source_scan *scan, struct faults *faults)
{
	struct overlay overlay = OVERLAY_INIT;
	source_tell_faults(scan, faults);
	source_append_tools(scan, &overlay, 0);
	overlay_sort(&overlay);
	overlay_tell_doubled(&overlay, 0, faults);
	overlay_release(&overlay);
}

/* Names what was found below dir as the caller names it: path/TOOL.md. */
static void rename_files(struct faults *faults, size_t first, const char *dir, const char *path)
{
	size_t len = strlen(dir);
	for (size_t i = first; i < faults->count; i++) {
		char *file = faults->items[i].file;
		if (!file || strncmp(file, dir, len) != 0 || (file[len] != '/' && file[len]))
			continue;
		bool is_here = strcmp(path, ".") == 0 && file[len] == '/';
		faults->items[i].file =
			is_here ? xstrdup(file + len + 1) : xasprintf("%s%s", path, file + len);
		free(file);
	}
}

static void check_source(struct checker *checker, const char *path)
{
	auto_free char *real = realpath(path, NULL);
	struct check_report *report = checker->report;
	size_t first = report->faults.count;
	if (!real) {
		add(report, path, FAULT_ERROR, "missing-source", "cannot be read: %s",
			strerror(errno));
		return;
	}
	struct source_scan scan;
	source_scan(real, NULL, NULL, &scan);
	checker->root = scan.root;
	tell_faults(&scan, &report->faults);
	for (size_t i = 0; scan.root && i < scan.count; i++)
		check_tool(checker, scan.candidates[i]);
	if (scan.count == 0 && scan.faults.count == 0)
		add(report, real, FAULT_ERROR, "no-tools",
			"there is no tool here; name a tool's directory, or one that holds tools");
	source_scan_release(&scan);
	rename_files(&report->faults, first, real, path);
}

static void check_single(struct checker *checker, const char *path)
{
	/* By its real path: "." has no name. */
	auto_free char *real = realpath(path, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	size_t first = checker->report->faults.count;
	int code = -ENOENT;
	if (slash && slash[1]) {
		auto_free char *parent =
			slash == real ? xstrdup("/") : xstrndup(real, (size_t)(slash - real));
		checker->root = root_open(parent, NULL, &code);
	}
	auto_close int fd =
		checker->root ? root_open_dir(checker->root, slash + 1, O_RDONLY) : code;
	if (!checker->root || fd < 0) {
		add(checker->report, path, FAULT_ERROR, "missing-source", "cannot be read: %s",
			strerror(-fd));
		root_unref(checker->root);
		return;
	}
	auto_buf struct buf scratch = BUF_INIT(MANIFEST_SIZE_MAX);
	struct candidate candidate;
	candidate_load(fd, checker->root, slash + 1, NULL, &scratch, &candidate);
	faults_copy(&checker->report->faults, &candidate.parse_faults);
	faults_copy(&checker->report->faults, &candidate.place_faults);
	check_tool(checker, &candidate);
	candidate_release(&candidate);
	root_unref(checker->root);
	rename_files(&checker->report->faults, first, real, path);
}

/* Without slashes at the end; of a file, its directory. */
static char *directory_of(const char *path)
{
	struct stat st;
	char *dir = xstrdup(path);
	for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
		dir[len - 1] = '\0';
	if (stat(dir, &st) < 0 || S_ISDIR(st.st_mode))
		return dir;
	char *slash = strrchr(dir, '/');
	if (slash) {
		slash[slash == dir ? 1 : 0] = '\0';
		return dir;
	}
	free(dir);
	return xstrdup(".");
}

void check_path(const char *path, const struct check_options *options, struct check_report *report)
{
	struct checker checker = { .options = options, .report = report };
	auto_free char *dir = directory_of(path);
	struct stat st;
	if (stat(dir, &st) < 0)
		add(report, path, FAULT_ERROR, "missing-source", "cannot be read: %s",
			strerror(errno));
	else if (is_tool_dir(dir))
		check_single(&checker, dir);
	else
		check_source(&checker, dir);
}

/* ---- the report */

static int compare_faults(const void *left, const void *right)
{
	const struct fault *a = left, *b = right;
	int order = strcmp(a->file ? a->file : "", b->file ? b->file : "");
	if (order == 0 && a->line != b->line)
		order = a->line < b->line ? -1 : 1;
	if (order == 0 && a->column != b->column)
		order = a->column < b->column ? -1 : 1;
	if (order == 0)
		order = strcmp(a->code, b->code);
	return order ? order : strcmp(a->text, b->text);
}

static bool is_ignored(const struct check_options *options, const char *code)
{
	for (const char *const *ignored = options->ignored; ignored && *ignored; ignored++)
		if (strcmp(*ignored, code) == 0)
			return true;
	return false;
}

void check_finish(const struct check_options *options, struct check_report *report)
{
	struct faults *faults = &report->faults;
	if (faults->count > 1)
		qsort(faults->items, faults->count, sizeof(*faults->items), compare_faults);
	size_t kept = 0;
	for (size_t i = 0; i < faults->count; i++) {
		struct fault *fault = &faults->items[i];
		bool is_double = kept > 0 && compare_faults(&faults->items[kept - 1], fault) == 0;
		if (is_double || is_ignored(options, fault->code)) {
			free(fault->file);
			free(fault->text);
		} else {
			faults->items[kept++] = *fault;
		}
	}
	faults->count = kept;
}

void check_report_release(struct check_report *report)
{
	faults_release(&report->faults);
	report->tools = 0;
}

size_t check_count(const struct check_report *report, enum fault_level level)
{
	size_t count = 0;
	for (size_t i = 0; i < report->faults.count; i++)
		count += report->faults.items[i].level == level;
	return count;
}
