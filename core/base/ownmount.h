/*
 * Whether a descriptor lies in a mount of pegfs. The daemon must never ask its own mount anything:
 * it would wait for itself. Nothing here does: the kernel's table of mounts answers.
 */
#ifndef PEGFS_BASE_OWNMOUNT_H
#define PEGFS_BASE_OWNMOUNT_H

#include <stdbool.h>

#define OWNMOUNT_TYPE "fuse.pegfs" /* as /proc/self/mountinfo shows it */

/* fd may be an O_PATH descriptor. False where /proc tells nothing. */
bool ownmount_has(int fd);

#endif
