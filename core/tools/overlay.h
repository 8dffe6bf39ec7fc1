/*
 * The tools of all sources by name: which of them is shown and which are hidden. The last source
 * wins (R12, R98), in one source the last directory in byte order (A7). Kept sorted, so that one
 * changed tool among thousands costs little.
 */
#ifndef PEGFS_TOOLS_OVERLAY_H
#define PEGFS_TOOLS_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

struct overlay_entry {
	struct tool *tool; /* borrowed from its source */
	size_t source;     /* later ones win */
	bool hidden;       /* the next entry has its name */
	bool doubled;      /* and is of the same source */
};

struct overlay {
	struct overlay_entry *entries; /* owned; by name, source and directory */
	size_t count, capacity;
};

#define OVERLAY_INIT                                                                               \
	{                                                                                          \
		.entries = NULL, .count = 0, .capacity = 0                                         \
	}

void overlay_release(struct overlay *overlay);

/* One tool comes or goes. Both return whether any tool is doubled, now or before, by that. */
bool overlay_add(struct overlay *overlay, struct tool *tool, size_t source);
bool overlay_remove(struct overlay *overlay, struct tool *tool, size_t source);

/* Many at once: empty it, append in any order, and sort. */
void overlay_clear(struct overlay *overlay);
void overlay_append(struct overlay *overlay, struct tool *tool, size_t source);
void overlay_sort(struct overlay *overlay);

/* Appends a fault for each doubled tool of the source (duplicate-name). */
void overlay_tell_doubled(const struct overlay *overlay, size_t source, struct faults *faults);

#endif
