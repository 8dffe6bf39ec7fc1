/*
 * What watch.h keeps of one source: the watches on the path that leads to it, on itself, and on the
 * directories in it. Private to watch.c.
 */
#ifndef PEGFS_TOOLS_WATCHSOURCE_H
#define PEGFS_TOOLS_WATCHSOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/map.h"
#include "core/tools/notify.h"
#include "core/tools/pathwalk.h"
#include "core/tools/root.h"
#include "core/tools/watchdir.h"

struct watch_source {
	size_t index;                     /* in the registry */
	const char *path;                 /* borrowed from the registry */
	struct place *steps, *root_place; /* owned */
	struct map dirs;                  /* struct watchdir by the hash of the name, owned */
	size_t dir_count;
	size_t refused_count;       /* of the dirs, and 1 for itself */
	uint64_t first_ms, last_ms; /* of what happened to its path since it was followed last */
	bool changed;               /* something did */
	bool unfinished;            /* what was there has gone, perhaps for a moment */
	bool is_own;                /* of one set, in a data directory */
	bool is_users;              /* the data directory itself: index means nothing */
	bool look_for_mounts;       /* something may be mounted in it, or not any more */
	bool recheck;               /* anything in it may be another now: all is looked at */
	bool lost;                  /* and no telling which files: all are told */
	bool remote;                /* on a file system that others change unseen */
	bool blind;                 /* so, or it could not be watched: polled */
	bool refused;               /* it could not be watched for want of watches */
	bool entered;               /* what is in it was queued once */
	bool told;                  /* that there are none was told */
};

void watch_source_release(struct watch_source *source, struct notify *notify);

/* Forgets all directories; none of them may be queued. */
void watch_source_clear(struct watch_source *source, struct notify *notify);

/*
 * Follows the path and watches each directory in which it is decided where it leads. Returns what
 * pathwalk_open() does.
 */
int watch_source_follow(
	struct watch_source *source, struct notify *notify, const struct covered *covered);

/* Watches the source itself, in the place of what was. root NULL: there is none. */
void watch_source_enter(
	struct watch_source *source, struct notify *notify, const struct root *root);

/* The directory of that name; NULL where it is not known, or is made. */
struct watchdir *watch_source_find(const struct watch_source *source, const char *name);
struct watchdir *watch_source_get(struct watch_source *source, const char *name);

/* dir must not be queued. */
void watch_source_forget(struct watch_source *source, struct notify *notify, struct watchdir *dir);

/* Looks at it anew with watchdir_renew(); false where it is not there. */
bool watch_source_renew_dir(struct watch_source *source, struct notify *notify,
	const struct root *root, struct watchdir *dir);

/* All directories, one after the other; *at and *dir start with 0 and NULL. NULL at the end. */
struct watchdir *watch_source_next(
	const struct watch_source *source, size_t *at, struct watchdir *dir);

#endif
