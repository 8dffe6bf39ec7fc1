/*
 * What a host prints: read from its output pipe as it comes, handed on up to a limit while a call
 * runs, and the end of it kept for the text of a crash. Whoever prints without end is slowed down by
 * a full pipe, and slows nobody else.
 */
#ifndef PEGFS_RUNNING_PRINTED_H
#define PEGFS_RUNNING_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/base/loop.h"

#define PRINTED_TAIL_MAX 16384 /* bytes that are kept */

typedef void printed_on_bytes(void *arg, const char *bytes, size_t len);

struct printed {
	struct loop *loop; /* borrowed */
	int fd;            /* borrowed: the pipe's read end, non-blocking */
	struct loop_fd *entry;
	struct loop_timer pause; /* nothing is read until it is over */
	printed_on_bytes *on_bytes;
	void *arg;
	bool is_wanted; /* a call runs */
	size_t left;    /* bytes of this call that are still handed on */
	size_t max;
	char tail[PRINTED_TAIL_MAX];
	size_t tail_len;
};

/* Reads from fd from now on. 0, or a negative errno and *why. */
int printed_watch(struct printed *printed, struct loop *loop, int fd, size_t max,
	printed_on_bytes *on_bytes, void *arg, struct fail *why);

/* Reads no further. */
void printed_stop(struct printed *printed);

/*
 * A call begins: what lies in the pipe is not its own, what comes now is handed on. Where the process
 * is still booting, it is: why it could not, perhaps.
 */
void printed_begin(struct printed *printed, bool is_booting);

/* A call that began in an earlier process goes on, with so many bytes left. */
void printed_resume(struct printed *printed, size_t left);

/* The call has ended: the last of it is handed on, and nothing more. */
void printed_end(struct printed *printed);

/* Hands on what is in the pipe now. What is printed meanwhile is not waited for. */
void printed_drain(struct printed *printed);

/* Whether the kept end holds these words. */
bool printed_says(const struct printed *printed, const char *words);

/* Appends the last lines to a text, under a line that says what they are; nothing where none are. */
void printed_describe(const struct printed *printed, struct buf *out);

#endif
