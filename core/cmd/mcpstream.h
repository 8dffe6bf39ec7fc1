/*
 * The two ends of a stdio transport: lines of JSON come in, lines go out. Nothing here waits: what
 * the other side does not read yet is kept, and while much is kept nothing more is read from it.
 */
#ifndef PEGFS_CMD_MCPSTREAM_H
#define PEGFS_CMD_MCPSTREAM_H

#include <jansson.h>
#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/loop.h"

#define MCPSTREAM_LINE_MAX ((size_t)64 * 1024 * 1024) /* longer lines are passed over */

struct mcpstream_events {
	void (*on_line)(void *arg, const char *line, size_t len);
	void (*on_long_line)(void *arg); /* once for each, when it begins to be too long */
	void (*on_flushed)(void *arg); /* all that had to wait has been written; NULL: no matter */
	/* Nothing more comes; may be called from within mcpstream_send(). is_broken: nobody reads either. */
	void (*on_end)(void *arg, bool is_broken);
};

struct mcpstream {
	struct loop *loop; /* borrowed */
	const struct mcpstream_events *events;
	void *arg;
	struct loop_fd *in, *out; /* borrowed from the loop; NULL: not watched */
	struct loop_timer in_timer, out_timer;
	struct buf line, pending;
	bool in_is_file, skips, has_ended, is_broken;
	int in_fd, out_fd; /* borrowed */
};

/* Starts to read. events and loop are borrowed. 0 or *why; released in both cases. */
int mcpstream_open(struct mcpstream *stream, struct loop *loop, int in_fd, int out_fd,
	const struct mcpstream_events *events, void *arg, struct fail *why);
void mcpstream_release(struct mcpstream *stream);

/* Sends one message; message is taken. */
void mcpstream_send(struct mcpstream *stream, json_t *message);

/* Whether all that was sent has been written. */
bool mcpstream_is_flushed(const struct mcpstream *stream);

#endif
