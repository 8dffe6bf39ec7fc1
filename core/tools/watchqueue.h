/* Directories in the order in which they came, each in the queue at most once. Private to watch.c. */
#ifndef PEGFS_TOOLS_WATCHQUEUE_H
#define PEGFS_TOOLS_WATCHQUEUE_H

#include <stddef.h>

#include "core/tools/watchdir.h"

struct watchqueue {
	enum watchqueue_kind kind; /* which of a directory's links it uses */
	struct watchdir *first, **last;
	size_t count;
};

void watchqueue_init(struct watchqueue *queue, enum watchqueue_kind kind);
bool watchqueue_has(const struct watchqueue *queue, const struct watchdir *dir);
void watchqueue_push(struct watchqueue *queue, struct watchdir *dir); /* also one that is in it */
struct watchdir *watchqueue_pop(struct watchqueue *queue);            /* NULL: it is empty */

/* Takes out those of one source (dir NULL), or one directory of it. Costs the whole queue. */
void watchqueue_drop(
	struct watchqueue *queue, const struct watch_source *source, const struct watchdir *dir);

#endif
