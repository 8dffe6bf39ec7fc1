/*
 * Sources, in order -> one set of tools: the last valid tool of a name wins (R12, R98, R99), whole,
 * and an invalid one never hides a valid one. The set is an immutable snapshot, replaced whole.
 *
 * Further sets may share these sources, each with one of its own over them (toolset.h): what is
 * shared is read and kept once. A source has an index, which is its own as long as it is there.
 */
#ifndef PEGFS_TOOLS_REGISTRY_H
#define PEGFS_TOOLS_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tools/faults.h"
#include "core/tools/root.h"
#include "core/tools/snapshot.h"
#include "core/tools/tool.h"
#include "core/tools/toolset.h"

struct registry;

/*
 * dirs: colon-separated (R72, R96), empty segments are passed over, so is a directory that was named
 * before. Relative ones are made absolute. NULL is none.
 */
struct registry *registry_new(const char *dirs);
void registry_free(struct registry *registry); /* NULL is allowed */

/*
 * What our own mount lies over (pathwalk.h): a source below the mount point is then read from
 * there. The path is copied, fd must outlive the registry. Before the first scan.
 */
void registry_set_covered(struct registry *registry, const char *path, int fd);

/* How the path of a source, or another one, is to be walked; its strings are borrowed from the registry. */
struct covered registry_covered(const struct registry *registry, size_t index);
struct covered registry_covered_top(const struct registry *registry);

/*
 * A further set, of the sources that there were from the beginning and of its own at path (absolute),
 * whose last `plain` bytes nobody may lead elsewhere by a link. Its source is at set->own, and is
 * empty until it is loaded. Borrowed from the registry.
 */
struct toolset *registry_add_set(
	struct registry *registry, struct owner *owner, const char *path, size_t plain);

/* Its source goes with it. */
void registry_remove_set(struct registry *registry, struct toolset *set);

/* The current snapshot of a set, borrowed until the next scan; made where it was never asked for. */
struct snapshot *registry_use(struct registry *registry, struct toolset *set);

/*
 * Scans all sources. Where anything is different from the current snapshot, a new one takes its
 * place; tools that did not change are shared between the two. Returns whether there is a new one.
 */
bool registry_scan(struct registry *registry);

/* The same for one source, by its index; the others count as they were. */
bool registry_scan_source(struct registry *registry, size_t index);

/* The same for one tool directory of it, by its name there; it may be new or gone. */
bool registry_scan_dir(struct registry *registry, size_t index, const char *dir_name);

/*
 * The same in two steps, for many changes at once: load any number, then renew, which puts new
 * snapshots in place where anything is different, of all sets that somebody has asked for. Returns
 * whether there is any.
 */
void registry_load_source(struct registry *registry, size_t index);
void registry_load_dir(struct registry *registry, size_t index, const char *dir_name);
bool registry_renew(struct registry *registry);

/*
 * Follows the source's path anew, which is the first half of registry_load_source(). Where it leads
 * to another directory than before the source has no tools from now on, until its directories are
 * loaded; returns whether that is so.
 */
bool registry_enter_source(struct registry *registry, size_t index);

/* What else is to be told about a source, in the place of what was; faults are taken. */
void registry_tell(struct registry *registry, size_t index, struct faults *faults);

/* The directory in which the source's tools were found last, borrowed; NULL where there was none. */
struct root *registry_root(const struct registry *registry, size_t index);

/* The current snapshot; borrowed until the next scan. Empty (generation 0) before the first. */
struct snapshot *registry_current(const struct registry *registry);

/* One more than the greatest index of a source. */
size_t registry_source_count(const struct registry *registry);

/* How many are in all sets: those of the lowest indices. */
size_t registry_shared_count(const struct registry *registry);

/* Its absolute path, borrowed as long as it is there; NULL where no source has the index. */
const char *registry_source_path(const struct registry *registry, size_t index);

/* The name of the at-th directory that was found in the source, borrowed until the next scan; or NULL. */
const char *registry_dir_in(const struct registry *registry, size_t index, size_t at);

/* The tool found in that directory of the source, hidden or not, borrowed until the next scan; or NULL. */
struct tool *registry_tool_in(const struct registry *registry, size_t index, const char *dir_name);

#endif
