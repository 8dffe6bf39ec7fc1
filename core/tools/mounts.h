/* The table of mounts of this process (proc(5), mountinfo), and when it changes. */
#ifndef PEGFS_TOOLS_MOUNTS_H
#define PEGFS_TOOLS_MOUNTS_H

#include <stdint.h>

#include "core/base/loop.h"

struct mounts;

/* on_change is called after each change. The caller's; NULL where there is no /proc. */
struct mounts *mounts_new(struct loop *loop, void (*on_change)(void *arg), void *arg);
void mounts_free(struct mounts *mounts); /* NULL is allowed */

/*
 * Calls on_name for each mount point that is directly in the directory dir_fd stands for, with its
 * name there and the number of its mount.
 */
void mounts_in(int dir_fd, void (*on_name)(void *arg, const char *name, uint64_t id), void *arg);

/* A digest of all mounts in that directory and the ones below it; 0: there are none. */
uint64_t mounts_digest(int dir_fd);

#endif
