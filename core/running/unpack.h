/* Takes an archive apart: ustar (POSIX.1-2017, pax), of regular files and directories alone. */
#ifndef PEGFS_RUNNING_UNPACK_H
#define PEGFS_RUNNING_UNPACK_H

#include <stddef.h>

#include "core/base/fail.h"

/*
 * Writes what is in the archive below dir_fd, with its modes; nothing that is there is replaced, and
 * nothing is written elsewhere. 0 or *why: -EINVAL where the archive is none that it knows.
 */
int unpack_archive(const char *bytes, size_t len, int dir_fd, struct fail *why);

#endif
