/*
 * The private directory of one mount, on tmpfs where there is one: /run/pegfs for root if that is
 * tmpfs, $XDG_RUNTIME_DIR/pegfs for others, else in /dev/shm, else in /run or /tmp. It holds what calls leave and the hosts' caches, and a lock by which
 * others can tell that the mount is served.
 */
#ifndef PEGFS_RUNNING_STATEDIR_H
#define PEGFS_RUNNING_STATEDIR_H

#include <stdint.h>

#include "core/base/fail.h"

struct statedir {
	char *path;   /* owned */
	int fd;       /* owned; the directory */
	int calls_fd; /* owned; calls/ in it, for nobody else */
	int lock_fd;  /* owned; the lock, held as long as this is open */
};

#define STATEDIR_INIT                                                                              \
	{                                                                                          \
		.path = NULL, .fd = -1, .calls_fd = -1, .lock_fd = -1                              \
	}

/* Makes it afresh for a mount point and takes the lock. 0; or *why, -EBUSY where it is served. */
int statedir_make(struct statedir *dir, const char *mountpoint, struct fail *why);

/*
 * Opens the one that another process (the supervisor) has made and holds the lock of. 0 or *why. To
 * be released, not removed.
 */
int statedir_open(struct statedir *dir, const char *mountpoint, struct fail *why);
void statedir_release(struct statedir *dir);

/*
 * Opens the one whose lock an earlier process of this kind has left open: lock_fd, which is taken. 0
 * or *why, where it is another one's.
 */
int statedir_adopt(struct statedir *dir, const char *mountpoint, int lock_fd, struct fail *why);

/* Random bytes that nobody else knows, the same for all who open the directory. 0 or *why. */
int statedir_get_secret(const struct statedir *dir, uint8_t *bytes, size_t len, struct fail *why);

/* What the holder of the lock tells those who look for it. */
struct statedir_news {
	int holder; /* its pid */
	uint64_t generation, failed_reloads;
};
int statedir_tell(const struct statedir *dir, const struct statedir_news *news);

/* 0, or a negative errno where nobody serves the mount point. */
int statedir_ask(const char *mountpoint, struct statedir_news *news);

/* Removes it with all that is in it, and lets the lock go. */
void statedir_remove(struct statedir *dir);

/*
 * Waits until nobody serves the mount point any more, at most timeout_ms. 0, or -ETIMEDOUT. For
 * `pegfs umount`: blocks.
 */
int statedir_wait_free(const char *mountpoint, unsigned timeout_ms);

#endif
