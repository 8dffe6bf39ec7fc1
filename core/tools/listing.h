/* What lies in one tool directory, as far as it matters: TOOL.md, entries, names the tree uses. */
#ifndef PEGFS_TOOLS_LISTING_H
#define PEGFS_TOOLS_LISTING_H

#include "core/tools/tool.h"

/* Reads of 4 KiB, about 100 names each; in a larger directory the rest is asked for by name. */
#define LISTING_READS_MAX 64

enum listing_name {
	LISTING_MANIFEST,
	LISTING_INDEX_TS,
	LISTING_INDEX_JS,
	LISTING_INDEX_PY,
	LISTING_INDEX_SH,
	LISTING_HIDDEN_FIRST, /* from here on: names that the tree uses itself in a tool directory */
	LISTING_COUNT = LISTING_HIDDEN_FIRST + 8,
};

struct listing {
	unsigned char types[LISTING_COUNT];    /* DT_REG, ... of readdir(3); LISTING_ABSENT */
	char like_manifest[sizeof(TOOL_FILE)]; /* "tool.md" and the like, where found; else "" */
};

#define LISTING_ABSENT 255

/* dir_fd: a descriptor of the directory, open for reading, at its beginning. Returns 0 or a negative errno. */
int listing_read(int dir_fd, struct listing *listing);

/* "TOOL.md", "index.ts", ... */
const char *listing_text(enum listing_name name);

#endif
