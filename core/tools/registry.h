/*
 * Sources, in order -> one set of tools: the last valid tool of a name wins (R12, R98, R99), whole,
 * and an invalid one never hides a valid one. The set is an immutable snapshot, replaced whole.
 */
#ifndef PEGFS_TOOLS_REGISTRY_H
#define PEGFS_TOOLS_REGISTRY_H

#include <stdint.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

/* Immutable once made; shared and counted. */
struct snapshot {
	size_t refs;
	uint64_t generation; /* 1 for the first; each later one is greater */
	struct tool **tools; /* owned references, in byte order of their names, which are unique */
	size_t count;
	struct tool **by_id;  /* the same, in order of their ids; borrowed from tools */
	struct faults faults; /* of all sources, the overridden tools' included */
};

struct snapshot *snapshot_ref(struct snapshot *snapshot);
void snapshot_unref(struct snapshot *snapshot); /* NULL is allowed */

/* Both borrow from the snapshot; NULL where there is none. */
struct tool *snapshot_find(const struct snapshot *snapshot, const char *name);
struct tool *snapshot_find_id(const struct snapshot *snapshot, uint32_t id);

struct registry;

/* dirs: colon-separated (R72, R96), empty segments are passed over. Relative ones are made absolute. */
struct registry *registry_new(const char *dirs);
void registry_free(struct registry *registry);

/* Scans all sources and makes a new snapshot the current one. Tools that did not change are shared. */
void registry_scan(struct registry *registry);

/* The current snapshot; borrowed until the next scan. Empty before the first. */
struct snapshot *registry_current(const struct registry *registry);

/* The sources as absolute paths, NULL-terminated; borrowed from the registry. */
const char *const *registry_sources(const struct registry *registry);

#endif
