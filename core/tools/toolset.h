/*
 * One set of tools, overlaid of the sources that all sets share and of one of its own: the last
 * valid tool of a name wins. The registry has one set, or one for each owner besides; what a source
 * holds is read once, whatever the number of sets that show it.
 *
 * A set is made when somebody first asks for it, and kept in step from then on.
 */
#ifndef PEGFS_TOOLS_TOOLSET_H
#define PEGFS_TOOLS_TOOLSET_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/overlay.h"
#include "core/tools/owner.h"
#include "core/tools/snapshot.h"
#include "core/tools/source.h"

/* A source as the registry keeps it. */
struct registered {
	char *path;   /* owned, absolute */
	size_t plain; /* of pathwalk.h */
	struct source_scan scan;
	struct faults told; /* what others say of it */
};

struct registered_list {
	struct registered **items; /* owned; NULL: a place of one that was removed */
	size_t count, capacity;
	size_t shared; /* the first so many are in all sets */
};

#define TOOLSET_NONE_OWN ((size_t)-1)

struct toolset {
	struct owner *owner;      /* owned reference; NULL: tools are shown as they were found */
	size_t own;               /* the index of its own source, or TOOLSET_NONE_OWN */
	struct snapshot *current; /* owned reference; empty (generation 0) before the first */
	struct overlay overlay;   /* of all its sources, sorted where it is not stale */
	bool is_used;             /* somebody has asked for it */
	bool is_stale;            /* a whole source was scanned since */
	bool has_new_tools;       /* since the last snapshot */
	bool has_new_faults;
};

/* An owner gets a reference of his own; NULL is allowed. The caller's. */
struct toolset *toolset_new(struct owner *owner, size_t own);
void toolset_free(struct toolset *set);

/* Whether it shows the source. */
bool toolset_has(const struct toolset *set, const struct registered_list *sources, size_t index);

/* The source's tools are about to be others: to be called before they go, the set borrows them. */
void toolset_drop_source(struct toolset *set);

/* One directory of one of its sources has changed. */
void toolset_change(struct toolset *set, size_t index, const struct source_change *change);

/*
 * Puts a new snapshot in place where anything is different; returns whether it did. on_copied is
 * called where a tool had to get another id, and so is another object from now on, which the sources
 * must know (arg, the tool as it was, and as it is); the set itself knows.
 */
bool toolset_renew(struct toolset *set, const struct registered_list *sources,
	void (*on_copied)(void *arg, const struct tool *old, struct tool *now), void *arg);

#endif
