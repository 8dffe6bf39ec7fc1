/*
 * One tools/call: what it sends while it runs, and its answer. A request that cannot be run has an
 * answer of its own: an error of the protocol where the message is wrong or there is no such tool,
 * else a result that says so (isError), which the model that asked gets to read.
 */
#ifndef PEGFS_CMD_MCPCALL_H
#define PEGFS_CMD_MCPCALL_H

#include <jansson.h>
#include <stdbool.h>

#include "core/cmd/mcprunner.h"
#include "core/cmd/mcpversion.h"

struct mcpbatch;

struct mcpcall_events {
	void (*on_notification)(void *arg, json_t *message); /* is taken */
	/* Once, last, also from within mcpcall_start(): the call is gone. message is taken; NULL: it
	   was cancelled, nobody wants an answer. */
	void (*on_answer)(void *arg, struct mcpbatch *batch, json_t *message);
};

struct mcpcall {
	struct mcpcall *next, **link; /* of the list that it was put into */
	const struct mcpcall_events *events;
	void *arg;
	const struct mcprunner_kind *kind;
	const struct mcpversion *version;
	struct mcpbatch *batch; /* borrowed; NULL: it came alone */
	json_t *id;             /* a reference */
	json_t *token;          /* of progress, a reference; NULL: nobody wants to hear of it */
	char *tool;             /* owned */
	struct mcprun *run;     /* borrowed from the runner */
	struct buf log;         /* what came behind the last newline */
	double progress;
	int level; /* of messages that are wanted (mcplevel.h) */
	bool is_cancelled;
};

struct mcpcall_order {
	const struct mcprunner_kind *kind;
	struct mcprunner *runner;
	const struct mcpversion *version;
	json_t *id, *params; /* borrowed; params may be NULL */
	struct mcpbatch *batch;
	int level;
};

/* Starts the call and puts it into the list, or answers at once. */
void mcpcall_start(const struct mcpcall_order *order, struct mcpcall **list,
	const struct mcpcall_events *events, void *arg);

/* on_answer follows, with NULL where the answer is not wanted. */
void mcpcall_cancel(struct mcpcall *call, bool wants_answer);

/* The call of that id which nobody has cancelled; NULL where there is none. */
struct mcpcall *mcpcall_find(struct mcpcall *list, const json_t *id);

/* Forgets the call, whose runner is gone. */
void mcpcall_free(struct mcpcall *call);

#endif
