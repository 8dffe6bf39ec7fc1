/* One set of tools, immutable once made, shared and counted. */
#ifndef PEGFS_TOOLS_SNAPSHOT_H
#define PEGFS_TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

struct snapshot {
	size_t refs;
	uint64_t generation; /* 1 for the first; each later one is greater */
	struct tool **tools; /* owned references, in byte order of their names, which are unique */
	size_t count;
	struct tool **by_id;  /* the same, in order of their ids; borrowed from tools */
	struct faults faults; /* of all sources, the overridden tools' included; of the shelf */
	struct fault_shelf
		*shelf;  /* owned reference: snapshots that differ in tools share faults */
	bool has_salted; /* two names had one hash */
};

/*
 * A snapshot of tools, which are in byte order of their names; references are taken. A tool that
 * must have another id than it has had in an earlier snapshot is replaced by a copy, also in the
 * array. faults are taken. One reference, the caller's.
 *
 * Ids are made from the names: a tool has the same one in every set in which no earlier name claims
 * it, so node numbers mean the same after a restart. 0 is no id.
 */
struct snapshot *snapshot_new(
	struct tool **tools, size_t count, struct faults *faults, uint64_t generation);

/*
 * The same, and the snapshot that follows `before`: what did not change costs little. faults NULL:
 * they are those of before.
 */
struct snapshot *snapshot_next(const struct snapshot *before, struct tool **tools, size_t count,
	struct faults *faults, uint64_t generation);
struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot); /* NULL is allowed */

/* Both borrow from the snapshot; NULL where there is none. */
struct tool *snapshot_find(const struct snapshot *snapshot, const char *name);
struct tool *snapshot_find_id(const struct snapshot *snapshot, uint32_t id);

/* Calls on_tool for each tool of now that is not the very same in before (NULL: for each). */
void snapshot_each_new(const struct snapshot *before, const struct snapshot *now,
	void (*on_tool)(void *arg, struct tool *tool), void *arg);

/* Whether both hold the very same tools and tell the same faults. */
bool snapshot_equal(const struct snapshot *a, const struct snapshot *b);

#endif
