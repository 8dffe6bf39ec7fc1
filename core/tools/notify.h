/*
 * inotify(7) for directories that several parties may be interested in: one kernel watch an inode,
 * any number of places that share it. The kernel's queue is read when the owner says so, so that
 * it merges and bounds what a storm brings.
 */
#ifndef PEGFS_TOOLS_NOTIFY_H
#define PEGFS_TOOLS_NOTIFY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>

#include "core/base/fail.h"
#include "core/base/loop.h"

struct notify;
struct notify_inode;

/* One interest in one directory; embedded in its owner, all zero while not watched. */
struct notify_place {
	struct notify_inode *inode; /* borrowed; NULL: not watched (any more) */
	struct notify_place *next;  /* others with the same inode */
	struct notify_place **link;
	uint32_t mask; /* IN_... that it wants to hear */
};

struct notify_events {
	/* There is something to read; paused then until notify_resume(). */
	void (*on_wake)(void *arg);
	/*
	 * mask as the kernel has it, name "" for the directory itself. IN_IGNORED: the place is not
	 * watched any more. place NULL, IN_Q_OVERFLOW: something was lost. It must neither add nor
	 * remove places.
	 */
	void (*on_event)(void *arg, struct notify_place *place, uint32_t mask, const char *name);
};

/* max: kernel watches at most. The caller's; NULL and *why where the system has no more. */
struct notify *notify_new(struct loop *loop, size_t max, const struct notify_events *events,
	void *arg, struct fail *why);

/* Places that are left are forgotten. NULL is allowed. */
void notify_free(struct notify *notify);

/*
 * dir_fd may be O_PATH and is not kept. Returns 0, or a negative errno: -ENOSPC where max or the
 * system's limit is reached, -EACCES where the directory may not be read.
 */
int notify_add(struct notify *notify, int dir_fd, uint32_t mask, struct notify_place *place);
void notify_remove(struct notify *notify, struct notify_place *place); /* also one that is not */

/* Reads all there is; never waits. */
void notify_drain(struct notify *notify);
void notify_resume(struct notify *notify);

/* Kernel watches now. */
size_t notify_count(const struct notify *notify);

#endif
