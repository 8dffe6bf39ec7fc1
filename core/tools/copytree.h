/*
 * Copies of whole directories: files with their permissions, links as links, nothing followed on
 * either side. Not kept: owners, times, and the set-user-id bits, which would mean somebody else here.
 */
#ifndef PEGFS_TOOLS_COPYTREE_H
#define PEGFS_TOOLS_COPYTREE_H

#include "core/base/fail.h"

#define COPYTREE_DEPTH_MAX 64 /* levels of directories */

/*
 * Copies the directory from_fd (open for reading, at its beginning) to a new directory `name` in
 * to_fd, which must not be there yet, and writes all of it to disk. A directory has the mode 0700
 * until all is in it. Refused: what is neither a file, a directory nor a link (-EINVAL), nesting
 * beyond COPYTREE_DEPTH_MAX (-ELOOP). After a failure what was copied so far is still there
 * (copytree_remove). Returns 0 or why->code; *why names the place below from_fd.
 */
int copytree(int from_fd, int to_fd, const char *name, struct fail *why);

/*
 * Removes to_fd/name with all that is in it, also directories that their owner may not write to.
 * Nothing there is success. Returns 0 or a negative errno.
 */
int copytree_remove(int to_fd, const char *name);

#endif
