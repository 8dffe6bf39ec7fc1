/*
 * A server of the Model Context Protocol for one client at the other end of a stream: tools, and
 * what is printed while they run. Whatever comes in, each request gets one answer and the server
 * goes on; it ends when the stream does, and then cancels what runs.
 */
#ifndef PEGFS_CMD_MCPSERVER_H
#define PEGFS_CMD_MCPSERVER_H

#include <stddef.h>

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/cmd/mcprunner.h"
#include "core/cmd/tree.h"

struct mcpserver;

struct mcpserver_config {
	struct loop *loop;                 /* borrowed; stopped with 0 when the client has gone */
	const struct mcprunner_kind *kind; /* how calls are run */
	struct tree *tree;                 /* borrowed, open; for the runner alone */
	int in_fd, out_fd;                 /* borrowed */
	size_t page_size;                  /* tools on a page of tools/list */
};

/* Owned by the caller. NULL and *why. */
struct mcpserver *mcpserver_new(const struct mcpserver_config *config, struct fail *why);

/* As when the stream ends: cancels what runs, sends what is left, stops the loop. */
void mcpserver_end(struct mcpserver *server);

void mcpserver_free(struct mcpserver *server); /* NULL is allowed */

#endif
