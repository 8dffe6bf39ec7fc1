/* One call: who made it, of which tool, how far it is, and what it has left so far. */
#ifndef PEGFS_RUNNING_CALL_H
#define PEGFS_RUNNING_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/running/caller.h"
#include "core/running/executor.h"
#include "core/tools/tool.h"

#define CALL_ID_MAX 64
#define CALL_REASON_MAX 256

enum call_state {
	CALL_RESERVED, /* an id is taken, no request has come */
	CALL_QUEUED,   /* waits for a host */
	CALL_RUNNING,
	CALL_DONE,
	CALL_FAILED, /* the tool said so, or it crashed */
	CALL_CANCELLED,
	CALL_TIMED_OUT,
	CALL_REFUSED, /* nothing ran: bad JSON, bad parameters, no rights, too busy */
	CALL_STATES,
};

/* What a call leaves, as documents of the tree. */
enum call_part {
	CALL_PART_REQUEST,     /* the parameters, sensitive values taken out */
	CALL_PART_RESULT_JSON, /* the ToolResult on one line; empty until the end */
	CALL_PART_RESULT_TEXT,
	CALL_PART_LOG,
	CALL_PART_PROGRESS,
	CALL_PARTS,
};

struct call {
	uint64_t seq; /* grows from call to call, also over restarts of the daemon */
	char id[CALL_ID_MAX + 1];
	struct tool *tool; /* owned reference */
	uid_t uid;
	gid_t gid;
	uint64_t pid_ns;
	struct chain chain; /* of the writer */
	enum call_state state;
	bool not_run;                 /* of CALL_FAILED: it is certain that nothing has begun */
	char reason[CALL_REASON_MAX]; /* of an end that is not CALL_DONE; "" else */
	int64_t created_ms, started_ms, changed_ms; /* CLOCK_REALTIME; 0: not yet */
	size_t part_len[CALL_PARTS];                /* bytes that can be read now */
};

bool call_state_is_final(enum call_state state);

/* "reserved", "queued", "running", "done", "failed", "cancelled", "timed out", "refused". */
const char *call_state_name(enum call_state state);

/* 1 to CALL_ID_MAX of [A-Za-z0-9._-], the first a letter or a digit. */
bool call_id_is_valid(const char *id);

/*
 * calls/ID/status: lines of "key: value" (state, id, tool, created, started, ended, reason), times
 * as in RFC 3339, UTC. Returns 0 or a negative errno.
 */
int call_render_status(const struct call *call, struct buf *out);

/* What a writer that waited gets: 0, or a negative errno (call-semantics.md 4.7). */
int call_outcome(const struct call *call);

#endif
