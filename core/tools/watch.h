/*
 * Keeps a registry as its sources are: whatever is added, edited, renamed, removed or replaced is in
 * a new snapshot a few milliseconds after the change is complete, and at the latest 100 ms after it
 * began (R13).
 *
 * inotify tells what happens
 *   - in the directories that a source's path leads through, so that a source which comes late, is
 *     swapped by rename or by a link is found; the table of mounts tells of mounts over it
 *   - in the source; and in a data directory, whose users come and go
 *   - in each directory in it and those below (WATCHDIR_DIRS_MAX of each)
 *
 * What happened is gathered until it is complete: a file that is being written until it is closed,
 * a name that has gone until another takes it, each within bounds. Then the tool's directory is
 * looked at, some milliseconds' worth of them in one turn of the loop, and when all are done a new
 * snapshot is made. So a storm costs a bounded part of the time, and nobody waits long.
 *
 * Where inotify cannot see everything the stamps are polled: on network file systems, where a
 * directory may not be read, and where there are no more watches (a fault, not-watched, says so).
 * Not seen at once: what is written through another hard link, or into a mapping.
 */
#ifndef PEGFS_TOOLS_WATCH_H
#define PEGFS_TOOLS_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/loop.h"
#include "core/tools/registry.h"
#include "core/tools/users.h"

#define WATCH_MAX 131072   /* kernel watches; each keeps about 1 KiB in the kernel */
#define WATCH_POLL_MS 2000 /* between two looks at what cannot be watched */

struct watch;

struct watch_config {
	size_t max;       /* kernel watches at most; 0: WATCH_MAX */
	unsigned poll_ms; /* 0: WATCH_POLL_MS */
	const char
		*users; /* borrowed: a data directory (users.h) whose users come and go; or NULL */
};

struct watch_events {
	/* registry_current() is another one, or that of another set that somebody has asked for. */
	void (*on_snapshot)(void *arg);
	/*
	 * A file of the tool changed, came or went: its path in the tool's directory. A directory: so
	 * may everything below it; "": the whole tool. Called after on_snapshot, where there is a new
	 * one: the tool, borrowed for the time of the call, is the one in it, or is hidden by another.
	 * May be NULL.
	 */
	void (*on_file)(void *arg, const struct tool *tool, const char *path);
	/*
	 * The users there are now: also when nothing has changed. The callee adds and removes sets of
	 * the registry and tells it by watch_add_source() and watch_remove_source(). May be NULL where
	 * no data directory is watched.
	 */
	void (*on_users)(void *arg, const struct users *users);
};

struct watch_stats {
	size_t watches; /* in the kernel */
	size_t dirs;    /* in the sources */
	size_t refused; /* of them, for want of watches */
	size_t polled;  /* sources that are polled as a whole */
	size_t looks;   /* at a directory, since the start */
	size_t scans;   /* of a whole source, since the start */
	size_t lost;    /* times that the kernel's queue overflowed */
};

/*
 * The registry was scanned and is the watch's from now on: only it scans. Starts by itself when the
 * loop runs, and then looks at each directory once more, so that nothing is missed in between.
 * Never fails: without inotify everything is polled. config may be NULL; events is borrowed.
 */
struct watch *watch_new(struct loop *loop, struct registry *registry,
	const struct watch_config *config, const struct watch_events *events, void *arg);
void watch_free(struct watch *watch); /* NULL is allowed */

/* The source of a set that has just been added: it is looked at as soon as can be. */
void watch_add_source(struct watch *watch, size_t index);

/* The source will be removed from the registry. */
void watch_remove_source(struct watch *watch, size_t index);

/*
 * Whether all changes of this tool's files are told by on_file: what was learnt of them while this
 * is true may be kept until then.
 */
bool watch_sees(const struct watch *watch, const struct tool *tool);

/*
 * To be called where a file of a tool was not found. Where the tool's directory is not there any more
 * and another source has it too, or the source's path leads elsewhere, the registry is brought up to
 * date at once (on_snapshot is called: the tool may be gone). Returns whether that was so.
 */
bool watch_hurry(struct watch *watch, const struct tool *tool);

/*
 * To be called once, before anybody is shown anything: where a source's path leads elsewhere since the
 * scan, perhaps because what was scanned is about to be removed, it is scanned anew.
 */
void watch_catch_up(struct watch *watch);

struct watch_stats watch_stats(const struct watch *watch);

#endif
