/*
 * The inside of watch.h, in five files: watchevents.c hears what happens and marks what is to be
 * looked at, watchlook.c and watchusers.c look, watch.c says when, watchhurry.c when it cannot wait.
 * Private to them.
 */
#ifndef PEGFS_TOOLS_WATCHCORE_H
#define PEGFS_TOOLS_WATCHCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/tools/mounts.h"
#include "core/tools/watch.h"
#include "core/tools/watchqueue.h"
#include "core/tools/watchsource.h"

struct watch {
	struct loop *loop;          /* borrowed */
	struct registry *registry;  /* borrowed */
	struct watch_config config; /* with the defaults filled in */
	const struct watch_events *events;
	void *arg;
	struct notify *notify; /* owned; NULL: there is no inotify */
	struct mounts *mounts; /* owned; may be NULL */
	struct loop_timer timer, poll_timer;
	struct watch_source **sources; /* owned; by the registry's index, NULL: there is none */
	size_t count, capacity;
	size_t next_source;         /* where looking at sources goes on */
	struct map by_root;         /* address of a source's root -> the source, borrowed */
	struct watch_source *users; /* owned: the data directory; NULL: none is watched */
	struct root *users_root;    /* a reference; NULL: it is not there */
	uint64_t users_mounts;      /* a digest of what is mounted in there */
	struct watchqueue due;      /* directories that are to be looked at */
	struct watchqueue told;     /* those whose files are told after the next snapshot */
	bool unsettled;             /* something was looked at since the last snapshot */
	uint64_t unsettled_ms, settled_ms;
	bool is_entering; /* a source is another one: its tools are shown when all are loaded */
	uint64_t busy_ms; /* spent since the last poll */
	bool poll_all;    /* each second poll looks at everything */
	struct watch_stats stats;
};

/* ---- watchevents.c */

/* For notify.h. */
void watch_hear(void *arg, struct notify_place *place, uint32_t mask, const char *name);

/* Something happened in the directory at that time; 0: it is due at once. */
void watch_mark_dir(struct watch *watch, struct watchdir *dir, uint64_t at_ms);
void watch_mark_source(struct watch *watch, struct watch_source *source, bool unfinished);

/* ---- watch.c */

/* Makes snapshots of what was looked at, and tells of them. Whether there is a new one. */
bool watch_settle(struct watch *watch);

/* ---- watchlook.c */

void watch_look_at(struct watch *watch, struct watchdir *dir);
void watch_check_source(struct watch *watch, struct watch_source *source);

/* Queues all that is in the source, and what was. is_poll: watches that are in order are left so. */
void watch_queue_all(struct watch *watch, struct watch_source *source, bool is_poll);

/* Forgets all directories in the source. */
void watch_drop_dirs(struct watch *watch, struct watch_source *source);

/* Something may be different from the current snapshot. */
void watch_unsettle(struct watch *watch);

/* ---- watchusers.c */

void watch_check_users(struct watch *watch);

/* The table of mounts has changed: whether it has for what is in the data directory. */
bool watch_users_have_other_mounts(struct watch *watch);

#endif
