/* Attributes and how long the kernel may keep them: call-semantics.md 4.2. */
#ifndef PEGFS_FS_ATTR_H
#define PEGFS_FS_ATTR_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

#include "fs/node.h"

struct server;

/* Fills *st as ctx sees the node, and for how many seconds that holds. 0 or a negative errno. */
int attr_stat(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct stat *st, double *timeout);

/* The answer to a look-up. 0 or a negative errno. */
int attr_entry(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct fuse_entry_param *entry);

/*
 * The same of a node number that means nothing any more, where somebody has it open and reads on;
 * false where it cannot be known.
 */
bool attr_stat_gone(struct server *server, uint64_t ino, struct stat *st);

/* When a node changed last, as its stat says. */
struct timespec attr_time(const struct node *node);

/* Whether a uid may call at all: tools run as their caller, which takes root or being the same. */
bool attr_may_call(const struct server *server, uid_t uid);

#endif
