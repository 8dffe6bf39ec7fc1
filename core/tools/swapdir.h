/*
 * A new directory put in the place of another in one step, and what a crash in between leaves.
 *
 * Hidden names in the parent directory, which discovery passes over:
 *
 *   .pegfs-sync-new         the new directory while it is filled, the old one once they are exchanged;
 *                           found after a crash: removed, NAME is whole in either case
 *   .pegfs-sync-old.NAME    the old directory, where the file system cannot exchange two; found after
 *                           a crash: becomes NAME again if there is none, else removed
 *
 * Who uses this holds a lock on the parent directory: all such names are then nobody's.
 */
#ifndef PEGFS_TOOLS_SWAPDIR_H
#define PEGFS_TOOLS_SWAPDIR_H

#include <stdbool.h>

#include "core/base/fail.h"

#define SWAPDIR_NEW ".pegfs-sync-new"
#define SWAPDIR_OLD ".pegfs-sync-old."

/* Mends what a crashed run left. Returns 0 or why->code. */
int swapdir_recover(int parent_fd, struct fail *why);

/*
 * Puts the filled SWAPDIR_NEW, all of it on disk, in the place of name, and removes what was there
 * (had_old: there was such a directory). Returns 0 or why->code; name is whole in any case.
 */
int swapdir_place(int parent_fd, const char *name, bool had_old, struct fail *why);

#endif
