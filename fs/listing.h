/*
 * What a directory holds, in the order of its offsets. An offset is made from the entry itself, not
 * from its place: it means the same when others come and go, and to the next server.
 */
#ifndef PEGFS_FS_LISTING_H
#define PEGFS_FS_LISTING_H

#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/fail.h"

struct node;
struct server;

struct listing_entry {
	char *name;      /* owned */
	uint64_t offset; /* > 0; entries ascend */
	uint64_t ino;
	mode_t type; /* S_IFMT bits */
};

struct listing {
	struct listing_entry *items; /* owned */
	size_t count, capacity;
};

#define LISTING_FIRST 16        /* offsets below are those of "." and ".." */
#define LISTING_FILES_MAX 65536 /* of a tool's own directory */

/* What ctx sees of a directory; the caller's, or NULL and *why. */
struct listing *listing_new(struct server *server, const struct node *dir,
	const struct fuse_ctx *ctx, struct fail *why);
void listing_free(struct listing *listing); /* NULL is allowed */

/* The index of the first entry behind offset. */
size_t listing_after(const struct listing *listing, uint64_t offset);

#endif
