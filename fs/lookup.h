/* A name in a directory -> its node, for whom it is looked up. */
#ifndef PEGFS_FS_LOOKUP_H
#define PEGFS_FS_LOOKUP_H

#include <fuse_lowlevel.h>

#include "fs/node.h"

struct server;

/*
 * The node of name in dir. `call` gets a number of its own each time; result.* and log are those of
 * the call nearest to the one who asks. A file is counted as looked up. 0 or -ENOENT and the like.
 */
int lookup_name(struct server *server, const struct node *dir, const char *name,
	const struct fuse_ctx *ctx, struct node *node);

/*
 * The same while a directory is listed, for nodes that are one and the same for all; -ENOENT for
 * others, which the kernel then looks up when they are needed.
 */
int lookup_listed(
	struct server *server, const struct node *dir, const char *name, struct node *node);

#endif
