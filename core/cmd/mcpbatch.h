/*
 * Answers on their way to the client: each on a line, or, of requests that came as a batch
 * (revision 2025-03-26), together when the last one is there.
 */
#ifndef PEGFS_CMD_MCPBATCH_H
#define PEGFS_CMD_MCPBATCH_H

#include <jansson.h>
#include <stddef.h>

#include "core/cmd/mcpstream.h"

struct mcpbatch {
	struct mcpbatch *next; /* of those that are open */
	json_t *answers;       /* owned */
	size_t waiting;        /* requests without an answer, and one while it is being read */
};

/* One that is being read, put into the list. */
struct mcpbatch *mcpbatch_open(struct mcpbatch **list);

/*
 * Sends the answer (taken; NULL: there is none), or puts it to the others of its batch (NULL: it has
 * none), which is sent and gone when that was the last.
 */
void mcpbatch_answer(
	struct mcpbatch **list, struct mcpbatch *batch, struct mcpstream *stream, json_t *answer);

/* Forgets those that are open. */
void mcpbatch_free_all(struct mcpbatch **list);

#endif
