/*
 * Tools from a seed directory to the one that agents use, by version (R87 to R95, A1, A2, A15, A16):
 *
 *   the seed's version is greater     the tool's whole directory is replaced (R90, R91)
 *   it is equal, or smaller           left as it is, edits and all (R93)
 *   the target has no such directory  copied, also at version 0 (A2)
 *   the target has another tool       left alone (R95)
 *
 * A tool is known by the name of its directory. A version is what TOOL.md's front matter says; 0
 * where it is missing, no integer, or the front matter cannot be read (R88, A1), with a warning.
 * Hidden names, plain files and directories without TOOL.md are no tools of a seed.
 *
 * How a tool changes: its copy is made under a hidden name beside it, written to disk, then
 * exchanged with it in one step (renameat2(2), RENAME_EXCHANGE), and what was there is removed. A
 * reader, or the one who looks after a crash or a power failure at any point, finds the old tool or
 * the new one, whole. Where a file system cannot exchange, the old one steps aside under a hidden
 * name first: for a moment there is none, and after a crash in it the next run puts it back. What a
 * run left behind is removed by the next. A full disk fails that tool's copy, and changes nothing.
 *
 * One sync at a time works on a target: it holds flock(2) on the target directory.
 */
#ifndef PEGFS_TOOLS_SYNC_H
#define PEGFS_TOOLS_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/fail.h"
#include "core/tools/faults.h"

#define SYNC_ABSENT INT64_C(-1) /* as a version: there is no such tool in the target */

enum sync_action {
	SYNC_INSTALLED, /* the target did not have it */
	SYNC_UPDATED,   /* replaced by a greater version */
	SYNC_EQUAL,     /* left: the same version */
	SYNC_NEWER,     /* left: the target's version is greater */
	SYNC_FAILED,    /* `problem` says why; the tool is whole, the old one or the new one */
};

struct sync_item {
	char *name; /* owned; of the directory */
	enum sync_action action;
	int64_t seed_version, target_version; /* SYNC_ABSENT is possible in the target */
	char *problem;                        /* owned; a sentence where it failed, else NULL */
};

struct sync_report {
	struct sync_item *items; /* owned; a seed tool each, in byte order of the names */
	size_t count, capacity;
	struct faults warnings; /* versions that are missing, tools that are links, ... */
};

struct sync_options {
	bool dry_run;     /* change nothing, and tell what would be done */
	unsigned wait_ms; /* how long to wait for another sync of the same target */
	/* Called before each tool where not NULL; done of count are finished. */
	void (*on_progress)(void *context, const char *name, size_t done, size_t count);
	void *context; /* borrowed */
};

/*
 * Syncs seed to target, which is made where it is missing. Fills *report, which the caller releases
 * also after a failure. Returns 0 where the run as a whole worked, though single tools may have
 * failed (sync_failed_count); else why->code: -ENOENT where there is no seed, -EBUSY where another
 * sync is at work, -EINVAL where one directory lies in the other or in a mount of pegfs, ...
 */
int sync_run(const char *seed, const char *target, const struct sync_options *options,
	struct sync_report *report, struct fail *why);
void sync_report_release(struct sync_report *report);

size_t sync_count(const struct sync_report *report, enum sync_action action);

/* "installed", "updated", "equal", "newer", "failed". */
const char *sync_action_name(enum sync_action action);

#endif
