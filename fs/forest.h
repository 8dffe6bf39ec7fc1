/*
 * The trees of a mount. Mostly there is one, at the mount point. With --data there is one for each
 * user of the data directory, in a directory of his name at the mount point, and they share the
 * global tools (core/tools/toolset.h). The code is the same: one tree is a forest of one.
 *
 * A user's tree is made when somebody first looks into it; until then it costs its name, and the
 * watches on his directory.
 */
#ifndef PEGFS_FS_FOREST_H
#define PEGFS_FS_FOREST_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "core/tools/registry.h"
#include "core/tools/users.h"
#include "core/tools/watch.h"
#include "fs/places.h"

struct mount_options;

struct forest_tree {
	struct owner
		*owner; /* owned reference; NULL: the only tree, or what is above users' trees */
	struct toolset *set; /* borrowed from the registry; NULL: that of the shared sources */
	uint32_t place; /* its number in node numbers (places.h); 0: above users' trees, or alone */
	struct snapshot
		*snapshot; /* a reference: what it shows now; NULL: nobody has looked into it */
	struct snapshot *prepared; /* a reference: whose tools have been prepared; NULL: none */
	uint32_t digest;           /* of all tools and faults: what its texts are made from */
	struct timespec changed;   /* CLOCK_REALTIME; when that changed last */
	struct stat integrations;  /* as the user's file was when it was read */
	struct forest_tree *next;  /* another one with the same hash of the name */
};

struct forest {
	const struct mount_options *options; /* borrowed */
	struct registry *registry;           /* owned */
	bool has_users;
	struct forest_tree only; /* the tree; with users what is above theirs: it shows no tools */
	struct map by_name;      /* hash of the name -> owned list of users' trees */
	size_t count;            /* of them */
	struct places places;
	struct faults faults; /* what in the data directory is no user */
};

/* Who is told of what happens to users' trees; may be NULL. */
struct forest_events {
	/* The owner's settings are others. */
	void (*on_settings)(void *arg, const struct owner *owner);
	/* He is there, and was not before; or is there no longer. */
	void (*on_come)(void *arg, const struct owner *owner);
	void (*on_gone)(void *arg, const struct owner *owner);
	void *arg;
};

/* Reads the tools, and which users there are. */
struct forest *forest_new(const struct mount_options *options, int covered_fd);
void forest_free(struct forest *forest); /* NULL is allowed */

/* From here on numbers are given to trees and tools, and noted in the private directory. */
void forest_take_over(struct forest *forest, int state_fd);

/* Shows what the registry has now. Calls on_change for each tree that is different, before it is. */
bool forest_adopt(struct forest *forest,
	void (*on_change)(void *arg, const struct forest_tree *tree), void *arg);

/* The users there are now. Returns whether any has come or gone. watch may be NULL. */
bool forest_set_users(struct forest *forest, struct watch *watch, const struct users *users,
	const struct forest_events *events);

/* A user's tree, ready to be shown; NULL where there is no such user. Borrowed. */
struct forest_tree *forest_find(struct forest *forest, const char *name);

/* All users' trees, one after the other, some not ready; *at and tree start with 0 and NULL. */
struct forest_tree *forest_next(
	const struct forest *forest, size_t *at, const struct forest_tree *tree);

/* The tree in which the tool is shown; NULL where its owner is gone. */
struct forest_tree *forest_tree_of(struct forest *forest, const struct tool *tool);

/* The tool of a tool_key() now, borrowed; or NULL. */
struct tool *forest_find_tool(struct forest *forest, const char *key);

/*
 * The number of a tree (tool NULL) or of a tool in it, for node numbers; and what has it. The latter
 * returns false where that is gone.
 */
uint32_t forest_number(
	struct forest *forest, const struct forest_tree *tree, const struct tool *tool);
bool forest_get(
	struct forest *forest, uint32_t number, struct forest_tree **tree, struct tool **tool);

/* Before a call of the tool: looks whether the settings of its owner are others now. */
void forest_refresh_settings(
	struct forest *forest, const struct tool *tool, const struct forest_events *events);

/* Whether it is above users' trees. */
static inline bool forest_is_above(const struct forest *forest, const struct forest_tree *tree)
{
	return forest->has_users && tree == &forest->only;
}

#endif
