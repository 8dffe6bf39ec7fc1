/*
 * One subdirectory of a source -> a tool, or what is wrong with it. What was read is kept with the
 * stamps of the files, so that the next scan reads only what changed.
 */
#ifndef PEGFS_TOOLS_CANDIDATE_H
#define PEGFS_TOOLS_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "core/tools/faults.h"
#include "core/tools/root.h"
#include "core/tools/tool.h"

/* What tells that a file was not touched. */
struct stamp {
	uint64_t dev, ino;
	int64_t size, mtime_ns, ctime_ns;
};

struct candidate {
	char *dir_name;    /* owned */
	struct tool *tool; /* owned reference; NULL where its files make none */
	enum language language;
	bool parsed;  /* TOOL.md was read: manifest and parse_faults say something */
	bool usable;  /* and manifest_parse found no error in it */
	bool settled; /* the files were old when they were read: equal stamps, equal bytes */
	struct stamp manifest, entry;
	struct faults parse_faults; /* of manifest_parse, with their file */
	struct faults place_faults; /* of this scan: entry, links, hidden names */
};

/*
 * Looks at dir_name in root, dir_fd being a descriptor of it (open for reading, at its beginning),
 * and fills *candidate, which the caller releases. `before` is what the last scan found there, or
 * NULL. scratch is a buffer of MANIFEST_SIZE_MAX, so that not every file needs one of its own.
 * Returns false where the directory has nothing to do with tools: there is nothing to tell.
 */
bool candidate_load(int dir_fd, struct root *root, const char *dir_name,
	const struct candidate *before, struct buf *scratch, struct candidate *candidate);
void candidate_release(struct candidate *candidate);

#endif
