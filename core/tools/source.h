/*
 * One tool directory of PI_TOOLS_DIRS, and the files of its tools. Who writes tools is not trusted:
 * everything below the source directory is opened beneath it, and a tool's files beneath the tool.
 */
#ifndef PEGFS_TOOLS_SOURCE_H
#define PEGFS_TOOLS_SOURCE_H

#include "core/base/fail.h"
#include "core/tools/candidate.h"
#include "core/tools/faults.h"
#include "core/tools/overlay.h"
#include "core/tools/root.h"
#include "core/tools/tool.h"

#define SOURCE_DIRS_MAX 65536 /* subdirectories of one source that are looked at */

/* What was found in a source. */
struct source_scan {
	struct root *root;             /* owned reference; NULL where there is no such directory */
	struct candidate **candidates; /* owned, in byte order of their directories' names (A7) */
	size_t count, capacity;
	struct faults faults; /* of the source as a whole */
	bool is_missing;      /* there is nothing at its path */
};

/*
 * Scans the subdirectories of path (absolute): those with a TOOL.md and an entry become tools (R6,
 * R96, R97, A5, A6, A9, A15); hidden ones (a leading dot, A16) and plain files are passed over.
 * Nothing of a tool is run. A missing or unreadable directory gives no tools and one fault. A link
 * to a directory is followed where it stays in the source; a mount of pegfs is passed over. Equal
 * names inside the source all count; the overlay resolves them.
 *
 * before: what an earlier scan of the same path found, or NULL. A tool whose files did not change
 * since is the same object, unless the path leads to another directory now. Where a mount of pegfs
 * lies over the directory, the one below it is looked at: the one of before, or covered
 * (pathwalk.h; NULL: none).
 */
void source_scan(const char *path, const struct covered *covered, const struct source_scan *before,
	struct source_scan *scan);
void source_scan_release(struct source_scan *scan);

/*
 * The first half of that: the root and the faults of the source as a whole, and no directory yet.
 * before: the root of an earlier scan, or NULL; the scan holds the very same one where it still is.
 */
void source_enter(const char *path, const struct covered *covered, struct root *before,
	struct source_scan *scan);

/* What a second look at one directory changed. */
struct source_change {
	struct tool *old,
		*new; /* owned references, the caller's; equal or NULL where nothing changed */
	bool faults;  /* whether its faults are others than before */
};

/*
 * Looks at the directory of that name once more; it may be there no longer, or be new. Costs the
 * same for any number of tools. Without a root nothing changes.
 */
void source_scan_dir(struct source_scan *scan, const char *dir_name, struct source_change *change);

/* The directories in a root that may be tools, in byte order; hidden ones are left out (A16). */
struct source_names {
	char **items; /* owned */
	size_t count, capacity;
	bool overflown; /* there are more than SOURCE_DIRS_MAX */
};

/* Returns 0 or a negative errno; released by the caller in both cases. */
int source_names_load(const struct root *root, struct source_names *names);
void source_names_release(struct source_names *names);

/* Appends the tools, as those of the source of that number. */
void source_append_tools(const struct source_scan *scan, struct overlay *overlay, size_t source);

/* The tool in that directory, borrowed; or NULL. */
struct tool *source_tool_in(const struct source_scan *scan, const char *dir_name);

/* Appends the faults of the source and of its directories. */
void source_tell_faults(const struct source_scan *scan, struct faults *faults);

/* Puts new in the place of old, wherever it is in the scan; a reference to it is taken. */
void source_scan_replace(struct source_scan *scan, const struct tool *old, struct tool *new);

/*
 * The tool's directory as an O_PATH descriptor for openat-like calls and io_open_beneath, which is
 * the caller's; or a negative errno. Reached through the source, so a link cannot lead out of it.
 */
int source_open_tool(const struct tool *tool);

/*
 * A file or directory of the tool, by its path there, with no link on the way (at its end only with
 * O_PATH | O_NOFOLLOW); flags hold O_PATH or O_DIRECTORY. The descriptor is the caller's, or a
 * negative errno. Other mounts in the tool's directory are entered; one of pegfs is not there
 * (-ENOENT), for it is never asked anything.
 */
int source_open_file(const struct tool *tool, const char *path, int flags);

#endif
