/* Mounting and unmounting, by mount(2) or, without the right to, by fusermount3(1). */
#ifndef PEGFS_FS_MOUNT_H
#define PEGFS_FS_MOUNT_H

#include <stdbool.h>

#include "core/base/fail.h"
#include "fs/options.h"

/* Whether something can be mounted at path; a dead mount of ours there is taken away. 0 or *why. */
int mount_prepare(const char *path, struct fail *why);

/* Mounts, after mount_prepare(); returns the FUSE descriptor, the caller's, or a negative errno and *why. */
int mount_attach(const struct mount_options *options, struct fail *why);

/* Unmounts path; lazy: also while it is in use, which ends when the last user lets go. 0 or *why. */
int mount_detach(const char *path, bool lazy, struct fail *why);

/*
 * The absolute path without links, the caller's, also where it leads to a mount whose server is
 * gone; NULL and errno.
 */
char *mount_real_path(const char *path);

/* Whether the topmost mount at path is one of pegfs. Asks the kernel's table, not the mount. */
bool mount_is_ours(const char *path);

#endif
