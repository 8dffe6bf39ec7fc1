/*
 * One call by `pegfs call`, and the two ways it can go: through a mount (callmount.c), or in a tool
 * host of this process's own (calldirect.c). Both end with an answer.
 */
#ifndef PEGFS_CMD_CALLORDER_H
#define PEGFS_CMD_CALLORDER_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/cmd/tree.h"
#include "core/tools/result.h"

#define CALLORDER_SIZE_MAX ((size_t)64 * 1024 * 1024) /* of a request, and of an answer */

struct callorder {
	const struct tree *tree;
	const char *tool;
	const struct buf *request; /* one JSON object */
	/* One line of progress as JSON; NULL: nobody wants to see it. */
	void (*on_progress)(void *arg, const char *json, size_t len);
	/* What the tool prints; NULL as well. */
	void (*on_output)(void *arg, const char *bytes, size_t len);
	void *arg;
};

enum callorder_end {
	CALLORDER_DONE,
	CALLORDER_FAILED,
	CALLORDER_REFUSED, /* nothing was run: the request is wrong */
};

struct callorder_answer {
	enum callorder_end end;
	struct result result; /* owned */
	int signal;           /* which has cancelled the call; 0: none */
};

/*
 * Make the call and wait for its end; SIGINT, SIGTERM and SIGHUP cancel it, a second one gives up at
 * once. Return 0 and *answer, or *why where there is no answer; it is released in both cases.
 */
int callmount_run(const struct callorder *order, struct callorder_answer *answer, struct fail *why);
int calldirect_run(
	const struct callorder *order, struct callorder_answer *answer, struct fail *why);

/* Has on_signal called for each of the signals that cancel. 0 or *why. */
int callorder_watch_signals(
	struct loop *loop, loop_on_signal *on_signal, void *arg, struct fail *why);

#endif
