/*
 * Where a path leads, one name at a time: so that nothing is ever asked of our own mount, and so
 * that it is known which directories decide where the path leads.
 */
#ifndef PEGFS_TOOLS_PATHWALK_H
#define PEGFS_TOOLS_PATHWALK_H

#include <stddef.h>

#define PATHWALK_LINKS_MAX 40 /* as the kernel has it */

/*
 * What our own mount lies over, opened before it was mounted; and in which part of a path nobody may
 * lead elsewhere.
 */
struct covered {
	const char *path; /* borrowed; the mount point, without links in it; NULL: no mount */
	int fd;           /* borrowed; O_PATH */
	size_t plain; /* bytes at the end of the path that is walked: no link is followed there */
};

/*
 * Each name that is looked up, links and missing names included; where a part of the path is plain,
 * only those in there. dir_fd is an O_PATH descriptor.
 */
typedef void pathwalk_on_step(void *arg, int dir_fd, const char *name);

/*
 * Follows the absolute path to a directory. Returns an O_PATH descriptor of it, the caller's; or a
 * negative errno: -EXDEV where it is in a mount of pegfs, which is left alone. Where that is our own
 * (covered; NULL: there is none) the walk goes on below it; -ELOOP also for a link where none is to
 * be. on_step may be NULL.
 */
int pathwalk_open(
	const char *path, const struct covered *covered, pathwalk_on_step *on_step, void *arg);

#endif
