/*
 * What a reader of a `call` file gets: the ToolResult for who wrote JSON, and for a tool's `run` the
 * answer that its words ask for. It is there until the file is closed, read or not, whatever becomes
 * of the call's record meanwhile; a long one stays where it is, for anybody can leave very many.
 */
#ifndef PEGFS_FS_ANSWER_H
#define PEGFS_FS_ANSWER_H

#include <sys/types.h>

#include "core/base/bytes.h"
#include "core/base/fail.h"
#include "core/running/calls.h"
#include "core/tools/arguments.h"

struct quota;
struct server;

struct answer {
	int error;          /* a positive errno instead of an answer; 0: there is one */
	struct bytes *head; /* a reference; NULL: empty */
	int fd;             /* owned; what follows, tail_len bytes at start; -1: nothing */
	off_t start;
	size_t tail_len;
	struct quota *quota; /* borrowed; `weight` of it is taken for uid */
	uid_t uid;
	size_t weight;
};

/*
 * All return an answer that is the caller's. What is held beyond some KiB is charged to uid, as what
 * it has open is (handle.h): where that is too much, the answer is EMFILE.
 */

/* run: what `run` was given; NULL: the request was JSON. */
struct answer *answer_of_call(
	struct server *server, uid_t uid, const struct call *call, const struct arguments *run);

/* The request did not become a call, or was refused as the call that is given (NULL: none). */
struct answer *answer_of_refusal(struct server *server, uid_t uid, const struct call *call,
	const struct tool *tool, const struct arguments *run, const struct fail *why);

/* The help that run asks for. */
struct answer *answer_of_help(
	struct server *server, uid_t uid, const struct tool *tool, const struct arguments *run);

void answer_free(struct answer *answer); /* NULL is allowed */

size_t answer_len(const struct answer *answer); /* NULL: 0 */

/* Appends up to size bytes from offset on. 0 or a negative errno. */
int answer_read(const struct answer *answer, size_t size, size_t offset, struct buf *out);

#endif
