/* Whole reads and writes, and opening without being led astray. */
#ifndef PEGFS_BASE_IO_H
#define PEGFS_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/base/buf.h"
#include "core/base/fail.h"

/* Appends all that is left in fd to out, up to out->max. Returns 0 or a negative errno (-EFBIG). */
int io_read_all(int fd, struct buf *out);

/* Writes all of it, through short writes and EINTR. Returns 0 or a negative errno. */
int io_write_all(int fd, const void *bytes, size_t len);

/*
 * Opens path below the directory dir_fd for flags (O_CLOEXEC is added), never outside it: no "..",
 * absolute path or link leads out, magic links are refused (openat2(2), RESOLVE_BENEATH). A FIFO
 * or a device cannot block the open (O_NONBLOCK is added). Returns a descriptor or a negative errno.
 */
int io_open_beneath(int dir_fd, const char *path, int flags);

/* The same with further RESOLVE_ flags of openat2(2), such as RESOLVE_NO_XDEV. */
int io_open_resolve(int dir_fd, const char *path, int flags, uint64_t resolve);

/*
 * As io_open_beneath for reading, and only for a regular file: -EISDIR where it is a directory, else
 * -EINVAL. What is opened is what was looked at, whatever takes its place meanwhile.
 */
int io_open_regular(int dir_fd, const char *path);

/* The first half of that: an O_PATH descriptor and what it is. */
int io_look_regular(int dir_fd, const char *path, struct stat *st);

/* The second half: what an O_PATH descriptor stands for, opened for reading (needs /proc). */
int io_reopen(int path_fd);

/* Reads the whole regular file dir_fd/path beneath dir_fd into out. Returns 0 or a negative errno. */
int io_load_beneath(int dir_fd, const char *path, struct buf *out);

/*
 * Puts a file in place whole: readers see the old bytes or the new ones (a temporary sibling, then
 * rename(2)). Not synced to disk: what is written here lives on tmpfs. 0 or a negative errno.
 */
int io_replace_file(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode);

/*
 * Removes dir_fd/name with all that is in it; links are removed, not followed. Returns 0 or a
 * negative errno: -ELOOP where it is nested deeper than IO_REMOVE_DEPTH_MAX.
 */
#define IO_REMOVE_DEPTH_MAX 256
int io_remove_tree(int dir_fd, const char *name);

/* Sets or clears O_NONBLOCK. Returns 0 or a negative errno. */
int io_set_nonblock(int fd, bool on);

#endif
