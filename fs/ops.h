/*
 * FUSE requests: decode, ask, reply once. No policy here: what a node is, how it may be cached and
 * what it holds are the node table's, views' and callfile's to say.
 */
#ifndef PEGFS_FS_OPS_H
#define PEGFS_FS_OPS_H

#include <fuse_lowlevel.h>

/* For session_new(); its argument is the struct server. */
extern const struct fuse_lowlevel_ops server_ops;

#endif
