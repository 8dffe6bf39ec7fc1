#include "core/tools/candidate.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"
#include "core/tools/listing.h"
#include "core/tools/manifest.h"

#define READ_TRIES 3

/*
 * A file that changed less than this before it was read may change again without a new stamp: the
 * kernel's clock for time stamps ticks every 1 to 10 ms. File systems that keep whole seconds
 * (their nanoseconds are 0) need as many.
 */
#define SETTLED_NS INT64_C(20000000)
#define SETTLED_COARSE_NS INT64_C(2000000000)

struct loader {
	int dir_fd;      /* borrowed */
	const char *dir; /* source/dir_name, for messages */
	struct listing listing;
	struct buf *scratch; /* borrowed */
	struct candidate *candidate;
	int64_t started_ns; /* CLOCK_REALTIME */
};

/* ---- stamps */

static int64_t nanoseconds(struct timespec time)
{
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Also of times before 1970: the nanoseconds count up from the second. */
static struct timespec timespec_of(int64_t ns)
{
	int64_t rest = ns % 1000000000;
	int64_t second = ns / 1000000000 - (rest < 0);
	return (struct timespec){ .tv_sec = second,
		.tv_nsec = rest < 0 ? rest + 1000000000 : rest };
}

static struct stamp stamp_of(const struct stat *st)
{
	return (struct stamp){ .dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime_ns = nanoseconds(st->st_mtim),
		.ctime_ns = nanoseconds(st->st_ctim) };
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static bool is_settled(const struct loader *loader, const struct stamp *stamp)
{
	bool is_coarse = stamp->ctime_ns % 1000000000 == 0;
	return loader->started_ns - stamp->ctime_ns > (is_coarse ? SETTLED_COARSE_NS : SETTLED_NS);
}

/* ---- faults of the place */

__attribute__((format(printf, 4, 5))) static void report(
	struct loader *loader, enum fault_level level, const char *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	faults_vadd(&loader->candidate->place_faults, level, code, 0, 0, format, args);
	va_end(args);
}

/* Why a file of the tool could not be opened as a regular file for reading. */
static void report_open(struct loader *loader, enum listing_name name, int code)
{
	const char *text = listing_text(name);
	bool is_link = loader->listing.types[name] == DT_LNK;
	if (code == -EISDIR || code == -EINVAL)
		report(loader, FAULT_ERROR, "not-a-file", "'%s' is %s; it must be a regular file",
			text, code == -EISDIR ? "a directory" : "a FIFO, a socket or a device");
	else if (code == -ENOENT && is_link)
		report(loader, FAULT_ERROR, "dangling-link",
			"'%s' is a symbolic link to a file that is not there", text);
	else if (code == -EXDEV || code == -ELOOP)
		report(loader, FAULT_ERROR, "link-outside",
			"'%s' is a symbolic link that leads out of the tool's directory (or in a "
			"circle); put the file itself there",
			text);
	else
		report(loader, FAULT_ERROR, "unreadable", "'%s' cannot be opened: %s", text,
			strerror(-code));
}

/* An O_PATH descriptor of a regular file that may be read, and its stamp; or -1 and a fault. */
static int look_at(struct loader *loader, enum listing_name name, struct stamp *stamp)
{
	struct stat st;
	auto_close int fd = io_look_regular(loader->dir_fd, listing_text(name), &st);
	int result = fd;
	if (fd >= 0 && faccessat(fd, "", R_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		result = -errno;
	if (result < 0) {
		report_open(loader, name, result);
		return -1;
	}
	*stamp = stamp_of(&st);
	return take_fd(&fd);
}

/* ---- TOOL.md */

/* Reads all of it, as it is at one moment: a file that changed meanwhile is read again. */
static int read_steadily(struct loader *loader, int path_fd, struct buf *text)
{
	struct stamp *stamp = &loader->candidate->manifest;
	for (int tries = 0; tries < READ_TRIES; tries++) {
		auto_close int fd = io_reopen(path_fd);
		struct stat st = { .st_size = 0 };
		buf_reset(text);
		int result = fd < 0 ? fd : io_read_all(fd, text);
		if (result == 0 && fstat(fd, &st) < 0)
			result = -errno;
		if (result < 0)
			return result;
		struct stamp now = stamp_of(&st);
		if (same_stamp(stamp, &now))
			return 0;
		*stamp = now;
	}
	return -EAGAIN;
}

static void report_read(struct loader *loader, int code)
{
	if (code == -EFBIG)
		report(loader, FAULT_ERROR, "too-large",
			"larger than %d KiB; move what is not needed to use the tool into files "
			"beside it",
			MANIFEST_SIZE_MAX / 1024);
	else if (code == -EAGAIN)
		report(loader, FAULT_ERROR, "changing",
			"it changes while it is read; it is read again when that has ended");
	else
		report(loader, FAULT_ERROR, "unreadable", "it cannot be read: %s", strerror(-code));
}

static uint32_t digest_of(const struct buf *text)
{
	uint64_t hash = map_hash(MAP_HASH_SEED, buf_str(text), text->len);
	return (uint32_t)(hash ^ hash >> 32);
}

/* False where TOOL.md could not be read; what is in it is another matter. */
static bool parse(struct loader *loader, int path_fd)
{
	struct candidate *candidate = loader->candidate;
	int result = read_steadily(loader, path_fd, loader->scratch);
	if (result < 0) {
		report_read(loader, result);
		return false;
	}
	candidate->tool = tool_new();
	candidate->tool->mtime = timespec_of(candidate->manifest.mtime_ns);
	candidate->tool->digest = digest_of(loader->scratch);
	candidate->parsed = true;
	candidate->usable = manifest_parse(buf_str(loader->scratch), loader->scratch->len,
				    candidate->tool, &candidate->parse_faults) == 0;
	candidate->language = candidate->tool->language;
	return true;
}

/* ---- the entry */

static bool is_there(const struct loader *loader, enum listing_name name)
{
	return loader->listing.types[name] != LISTING_ABSENT;
}

/* R2, R6, A6; index.py and index.sh for their language, where none of the two is there (A9). */
static enum listing_name choose_entry(const struct loader *loader)
{
	enum language language = loader->candidate->language;
	if (is_there(loader, LISTING_INDEX_TS))
		return LISTING_INDEX_TS;
	if (is_there(loader, LISTING_INDEX_JS))
		return LISTING_INDEX_JS;
	if (language == LANGUAGE_PYTHON && is_there(loader, LISTING_INDEX_PY))
		return LISTING_INDEX_PY;
	if (language == LANGUAGE_BASH && is_there(loader, LISTING_INDEX_SH))
		return LISTING_INDEX_SH;
	return LISTING_COUNT;
}

static void report_no_entry(struct loader *loader)
{
	const struct candidate *candidate = loader->candidate;
	bool has_python = is_there(loader, LISTING_INDEX_PY);
	bool has_any = has_python || is_there(loader, LISTING_INDEX_SH);
	if (has_any && !candidate->usable)
		return; /* which one fits is known when TOOL.md has been mended */
	if (has_any)
		report(loader, FAULT_ERROR, "entry-language",
			"the entry is %s, but the language is %s; add 'language: %s', or an index.ts",
			has_python ? "index.py" : "index.sh", language_name(candidate->language),
			has_python ? "python" : "bash");
	else if (candidate->language == LANGUAGE_TYPESCRIPT)
		report(loader, FAULT_ERROR, "missing-entry",
			"there is no index.ts or index.js beside it; a tool needs both");
	else
		report(loader, FAULT_ERROR, "missing-entry",
			"there is no index.ts, index.js or index.%s beside it; a tool needs both",
			candidate->language == LANGUAGE_PYTHON ? "py" : "sh");
}

/* Finds the entry and looks whether it can be read. Returns its name, or LISTING_COUNT. */
static enum listing_name check_entry(struct loader *loader)
{
	enum listing_name name = choose_entry(loader);
	if (name == LISTING_COUNT) {
		report_no_entry(loader);
		return LISTING_COUNT;
	}
	auto_close int fd = look_at(loader, name, &loader->candidate->entry);
	return fd < 0 ? LISTING_COUNT : name;
}

static void warn_hidden(struct loader *loader)
{
	for (enum listing_name name = LISTING_HIDDEN_FIRST; name < LISTING_COUNT; name++)
		if (is_there(loader, name))
			report(loader, FAULT_WARNING, "hidden-file",
				"the tool's own '%s' is hidden by the one that pegfs makes; give it "
				"another name",
				listing_text(name));
}

/* ---- all of it */

/* Takes over what the last scan read, unless a file has another stamp. */
static bool reuse(struct loader *loader, const struct candidate *before, enum listing_name entry)
{
	struct candidate *candidate = loader->candidate;
	if (before->tool) {
		bool is_same = entry != LISTING_COUNT &&
			       strcmp(before->tool->entry, listing_text(entry)) == 0 &&
			       same_stamp(&before->entry, &candidate->entry);
		if (!is_same)
			return false;
		candidate->tool = tool_ref(before->tool);
	} else if (before->usable && entry != LISTING_COUNT) {
		return false; /* the entry has come */
	}
	faults_copy(&candidate->parse_faults, &before->parse_faults);
	candidate->parsed = true;
	candidate->usable = before->usable;
	candidate->settled = true;
	return true;
}

static void place_tool(struct loader *loader, struct root *root, enum listing_name entry)
{
	struct candidate *candidate = loader->candidate;
	if (!candidate->usable || entry == LISTING_COUNT) {
		tool_unref(candidate->tool);
		candidate->tool = NULL;
		return;
	}
	candidate->tool->root = root_ref(root);
	candidate->tool->source = xstrdup(root->path);
	candidate->tool->dir_name = xstrdup(candidate->dir_name);
	candidate->tool->dir = xstrdup(loader->dir);
	candidate->tool->place = map_hash(MAP_HASH_SEED, loader->dir, strlen(loader->dir));
	candidate->tool->entry = xstrdup(listing_text(entry));
}

static void load_tool(struct loader *loader, struct root *root, const struct candidate *before)
{
	struct candidate *candidate = loader->candidate;
	auto_close int fd = look_at(loader, LISTING_MANIFEST, &candidate->manifest);
	if (fd < 0)
		return;
	bool is_known = before && before->parsed && before->settled &&
			same_stamp(&before->manifest, &candidate->manifest);
	if (is_known) {
		candidate->language = before->language;
		candidate->usable = before->usable;
	} else if (!parse(loader, fd)) {
		return;
	}
	enum listing_name entry = check_entry(loader);
	if (is_known && reuse(loader, before, entry))
		return;
	/* Another entry makes another tool, though TOOL.md is the same. */
	if (is_known && !parse(loader, fd))
		return;
	place_tool(loader, root, entry);
	candidate->settled = is_settled(loader, &candidate->manifest) &&
			     (entry == LISTING_COUNT || is_settled(loader, &candidate->entry));
}

static void report_no_manifest(struct loader *loader)
{
	const char *entry = is_there(loader, LISTING_INDEX_TS) ? "index.ts" : "index.js";
	if (*loader->listing.like_manifest)
		report(loader, FAULT_ERROR, "missing-manifest",
			"there is %s, but no %s; rename '%s'", entry, TOOL_FILE,
			loader->listing.like_manifest);
	else
		report(loader, FAULT_ERROR, "missing-manifest",
			"there is %s, but no %s beside it; a tool needs both", entry, TOOL_FILE);
}

/* Gives those that have none their file: the one of that name in the directory, or itself. */
static void name_file(struct faults *faults, const char *dir, const char *name)
{
	if (faults->count == 0)
		return;
	auto_free char *file = name ? xasprintf("%s/%s", dir, name) : xstrdup(dir);
	struct faults nameless = *faults;
	*faults = (struct faults)FAULTS_INIT;
	faults_move(faults, &nameless, file);
}

bool candidate_load(int dir_fd, struct root *root, const char *dir_name,
	const struct candidate *before, struct buf *scratch, struct candidate *candidate)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	auto_free char *dir = xasprintf("%s/%s", root->path, dir_name);
	struct loader loader = {
		.dir_fd = dir_fd,
		.dir = dir,
		.scratch = scratch,
		.candidate = candidate,
		.started_ns = nanoseconds(now),
	};
	*candidate = (struct candidate){ .dir_name = xstrdup(dir_name) };
	int result = listing_read(dir_fd, &loader.listing);
	bool has_entry = is_there(&loader, LISTING_INDEX_TS) || is_there(&loader, LISTING_INDEX_JS);
	if (result < 0)
		report(&loader, FAULT_ERROR, "unreadable", "the directory cannot be read: %s",
			strerror(-result));
	else if (is_there(&loader, LISTING_MANIFEST))
		load_tool(&loader, root, before);
	else if (has_entry)
		report_no_manifest(&loader);
	else
		return false;
	if (candidate->tool)
		warn_hidden(&loader);
	name_file(&candidate->parse_faults, dir, TOOL_FILE);
	name_file(&candidate->place_faults, dir, result < 0 ? NULL : TOOL_FILE);
	return true;
}

void candidate_release(struct candidate *candidate)
{
	free(candidate->dir_name);
	tool_unref(candidate->tool);
	faults_release(&candidate->parse_faults);
	faults_release(&candidate->place_faults);
	*candidate = (struct candidate){ .dir_name = NULL };
}
