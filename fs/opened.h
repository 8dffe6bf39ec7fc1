/*
 * What somebody may have open although it is no longer there: texts that are made of tools which have
 * changed since, tools' files that were replaced. A server has the bytes, or a descriptor; the next
 * one has not, and could not make them anew. So what is opened is noted here, once for each node
 * number and time of change, and the next server serves from the note where all else fails.
 *
 * A ring in one file on tmpfs: the oldest make room. Its first page says where it begins and ends, in
 * bytes since ever; a server that dies while it writes leaves it as it was before.
 */
#ifndef PEGFS_FS_OPENED_H
#define PEGFS_FS_OPENED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/base/bytes.h"
#include "core/base/map.h"

#define OPENED_SIZE ((uint64_t)32 << 20) /* of the ring */
#define OPENED_MAX ((size_t)256 << 10)   /* the longest that is noted */

struct opened {
	int fd; /* owned; 0: nothing is noted */
	uint64_t first, end;
	struct map by_ino; /* node number -> owned struct note */
	bool has_index;    /* by_ino is that of what earlier servers have noted, too */
};

/* Goes on with the file in the private directory, or makes one. What fails is logged. */
void opened_load(struct opened *opened, int dir_fd);
void opened_release(struct opened *opened);

/* Whether the node is noted as *st says that it is now: its size and time of change. */
bool opened_has(struct opened *opened, uint64_t ino, const struct stat *st);

/* Notes the bytes (as many as st->st_size) of a node; too many are passed over. */
void opened_note(struct opened *opened, uint64_t ino, const void *bytes, const struct stat *st);

/* What was noted last of the node: a new reference; or NULL. */
struct bytes *opened_get(struct opened *opened, uint64_t ino);

/* Puts size and times of the note into *st; false where there is none. */
bool opened_stat(struct opened *opened, uint64_t ino, struct stat *st);

#endif
