/*
 * .pegfs/events: the audit trail (core/running/audit.h), for each reader what he may see. Root and the
 * daemon's own user see all, unless they are those of a container.
 */
#ifndef PEGFS_FS_EVENTS_H
#define PEGFS_FS_EVENTS_H

#include <stddef.h>

#include "core/base/bytes.h"
#include "core/base/fail.h"

struct fuse_ctx;
struct server;

/* What it holds now for the one who asks; a new reference, or NULL and *why. */
struct bytes *events_get(const struct server *server, const struct fuse_ctx *ctx, struct fail *why);

/* How many bytes that is. 0 or a negative errno. */
int events_size(const struct server *server, const struct fuse_ctx *ctx, size_t *size);

#endif
