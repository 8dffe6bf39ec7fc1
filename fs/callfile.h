/*
 * A `call` file that somebody has open for writing. call-semantics.md 4.3 to 4.7 is the
 * specification; the essay at the head of callfile.c says how the code follows it.
 */
#ifndef PEGFS_FS_CALLFILE_H
#define PEGFS_FS_CALLFILE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

#include "core/tools/tool.h"
#include "fs/state.h"

struct callfile;
struct server;

/*
 * One opened by ctx with flags of open(2). reserved: the seq of a call of calls/ID/, or 0. kept: its
 * place in the state, for the next server; borrowed, and the file's alone until it is freed.
 */
struct callfile *callfile_new(struct server *server, struct tool *tool, uint64_t reserved,
	const struct fuse_ctx *ctx, struct state_handle *kept, int flags);

/* One that an earlier server had, as it says in kept. */
struct callfile *callfile_revive(
	struct server *server, struct tool *tool, struct state_handle *kept);

/*
 * sendfile and splice read a direct_io file through the page cache, up to the size that the kernel
 * has for the node, and are refused (H7); without a size beyond their position they would see an
 * empty file instead, and not read in another way. So a look-up gives a size beyond all but giant requests,
 * and who asks for attributes gets the true one, which of a node that somebody has open to read
 * his result is where that result ends, or will end. (To tell the kernel a size from here, by
 * fuse_lowlevel_notify_store, takes a page's lock, for which anybody can make us wait for ever.)
 */
/* Not more: who appends under a limit (ulimit -f) is measured by it. */
#define CALLFILE_SIZE_AT_LOOKUP ((off_t)8 << 20)

/* The size of a node that is open for reading and writing; false: it is not. */
bool callfile_size(const struct server *server, fuse_ino_t ino, size_t *size);

/* The last close: what still waits is dropped, and the call is cancelled or left to run (H6). */
void callfile_free(struct callfile *file); /* NULL is allowed */

/* Each answers req, now or later. */
void callfile_write(
	struct callfile *file, fuse_req_t req, const char *bytes, size_t size, off_t offset);
void callfile_read(struct callfile *file, fuse_req_t req, size_t size, off_t offset,
	const struct fuse_file_info *fi);
void callfile_flush(struct callfile *file, fuse_req_t req);

/* poll becomes the file's (NULL is allowed). */
void callfile_poll(struct callfile *file, fuse_req_t req, const struct fuse_file_info *fi,
	struct fuse_pollhandle *poll);

/* ftruncate(fd, 0): drops what was gathered. */
void callfile_truncate(struct callfile *file);

#endif
