/*
 * The directory that a source's path led to when it was scanned. It is held open, so that its tools
 * are always read from where they were found: also after the path leads elsewhere (a link that was
 * flipped, a rename, a bind mount), and where our own mount lies over it now.
 *
 * Shared and counted: the scan and each of its tools hold a reference. While one is held the file
 * system that the directory is on cannot be unmounted (EBUSY), but for lazily (umount -l).
 */
#ifndef PEGFS_TOOLS_ROOT_H
#define PEGFS_TOOLS_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/tools/pathwalk.h"

struct root {
	size_t refs;
	char *path; /* owned; absolute, as the source was named */
	int fd;     /* owned; O_PATH */
	/* which directory it is, and seen through which mount; while fd is open no other one is that */
	uint64_t dev, ino, mount;
};

/*
 * What the absolute path leads to now. Returns one reference, the caller's; or NULL and *code, a
 * negative errno: -EXDEV where it is a mount of pegfs or lies in one, which is not touched. covered:
 * see pathwalk.h, may be NULL.
 */
struct root *root_open(const char *path, const struct covered *covered, int *code);
/* The same with a descriptor that pathwalk_open() gave, which is taken. */
struct root *root_new(const char *path, int fd);
struct root *root_ref(struct root *root);
void root_unref(struct root *root); /* NULL is allowed */

/* Whether both are one directory behind one mount. NULL is like nothing. */
bool root_equal(const struct root *a, const struct root *b);

/*
 * Opens a tool's directory for flags (O_DIRECTORY is added). The descriptor is the caller's; or a
 * negative errno: -EXDEV for a link that leads out of the root or across a mount, -ENOTDIR where it
 * is no directory or a mount of pegfs. A directory that is itself a mount point (a bind mount) is a
 * tool like any other.
 */
int root_open_dir(const struct root *root, const char *dir_name, int flags);

#endif
