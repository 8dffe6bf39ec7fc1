/*
 * The table of calls: starts them, gives them ids, keeps a bounded number of finished ones, and says
 * who sees which. A caller sees its own (uid, and pid namespace where it is known); root sees all.
 */
#ifndef PEGFS_RUNNING_CALLS_H
#define PEGFS_RUNNING_CALLS_H

#include "core/base/bytes.h"
#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/running/call.h"
#include "core/running/executor.h"

struct calls;

struct calls_config {
	int dir_fd;          /* borrowed: where records lie, private, on tmpfs */
	unsigned keep;       /* finished calls kept of each caller and tool; 0: the default */
	unsigned timeout_ms; /* longest a call may take; 0: the executor's */
	size_t bytes_max;    /* that finished calls hold, in all; 0: half of dir_fd's file system */
	size_t pending_max;  /* bytes of requests of one uid that wait or run; 0: the default */
};
#define CALLS_KEEP_DEFAULT 64
#define CALLS_PENDING_MAX_DEFAULT ((size_t)256 << 20)

/* News of a call for those who look at it (nodes that can be waited on, caches). */
struct calls_listener {
	/* Its state or a part has changed. */
	void (*on_change)(void *arg, const struct call *call);
	/* It is forgotten: its id means nothing from here on. */
	void (*on_forget)(void *arg, const struct call *call);
};

/* loop and executor are borrowed and must outlive it. */
struct calls *calls_new(
	struct loop *loop, struct executor *executor, const struct calls_config *config);
void calls_free(struct calls *calls); /* NULL is allowed; after executor_free() */

/* listener is borrowed (make it static). */
void calls_listen(struct calls *calls, const struct calls_listener *listener, void *arg);

/*
 * Once, when the call has ended and what it left can be read; call is borrowed until this returns.
 * Not from within calls_start().
 */
typedef void call_on_end(void *arg, const struct call *call);

struct call_order {
	struct tool *tool;
	const struct caller *caller;
	uint64_t
		reserved; /* the seq of a call in CALL_RESERVED that this request is for; 0: none */
	const char *document; /* the request as it was written */
	size_t len;
};

/*
 * Checks the request and starts the call: 0, and on_end(arg) follows. Or *why (-EINVAL, -EACCES,
 * -EBUSY, ...): nothing runs, and a refused call with the reason is in the table. *seq is the
 * call's number in both cases. A reserved id is for one call of the uid that reserved it: -EBUSY
 * where it has been used, -ECANCELED where it is gone.
 */
int calls_start(struct calls *calls, const struct call_order *order, call_on_end *on_end, void *arg,
	uint64_t *seq, struct fail *why);

/*
 * Puts a refused call with the reason into the table, for a request that never became complete.
 * Returns its number.
 */
uint64_t calls_refuse(struct calls *calls, struct tool *tool, const struct caller *caller,
	uint64_t reserved, const struct fail *why);

/*
 * Takes up what an earlier process has left in the directory and with the executor's keeper; to be
 * called once, before the loop runs. Calls of which that process did not see the end go on, or end
 * here: as not run, or with an outcome that nobody can know. find_tool gives the tool of a tool_key() now,
 * borrowed, or NULL: what its calls left is removed then.
 */
void calls_recover(
	struct calls *calls, struct tool *(*find_tool)(void *arg, const char *key), void *arg);

/* on_end(arg) follows where the call has not ended; the former one is not called. */
void calls_watch(struct calls *calls, uint64_t seq, call_on_end *on_end, void *arg);

/* Cancels a call that has not ended; on_end follows where it was started. */
void calls_cancel(struct calls *calls, uint64_t seq);

/* From here on nobody waits for it: on_end is not called. */
void calls_unwatch(struct calls *calls, uint64_t seq);

/*
 * Reserves an id, which becomes the toolCallId. Returns its seq, or 0 and *why: -EINVAL for an id
 * that is none, -EEXIST, -EBUSY where too many are reserved.
 */
uint64_t calls_reserve(struct calls *calls, struct tool *tool, const struct caller *caller,
	const char *id, struct fail *why);

/* Forgets a call with all that it left; one that has not ended is cancelled. */
void calls_forget(struct calls *calls, uint64_t seq);

/* All borrow; NULL where there is none (any more). */
const struct call *calls_get(const struct calls *calls, uint64_t seq);
const struct call *calls_find(const struct calls *calls, const struct tool *tool,
	const struct caller *caller, const char *id);

/*
 * Of the reader's own calls of a tool, the one made nearest to it in the process tree, the newest of
 * equals; with `finished`, of those that have ended (call-semantics.md 4.2).
 */
const struct call *calls_nearest(const struct calls *calls, const struct tool *tool,
	const struct caller *reader, bool finished);

/* Whether that uid may see any call of the tool: to find out who asks takes much longer. */
bool calls_may_be_seen(const struct calls *calls, const struct tool *tool, uid_t uid);

/* Visits the calls of a tool that a caller sees, those of one uid from the oldest on. */
typedef void calls_visit(void *arg, const struct call *call);
void calls_each(const struct calls *calls, const struct tool *tool, const struct caller *caller,
	calls_visit *visit, void *arg);

/* Cancels and forgets all calls of the tools of owners of that name, who are there no longer. */
void calls_forget_owner(struct calls *calls, const char *name);

bool calls_may_see(const struct calls *calls, const struct call *call, const struct caller *caller);

/* Appends what can be read of a part now, at most size bytes from offset on. 0 or *why. */
int calls_read(const struct calls *calls, const struct call *call, enum call_part part,
	size_t offset, size_t size, struct buf *out, struct fail *why);

/* As record_open(): for who reads on when the call is forgotten. */
int calls_open(
	const struct calls *calls, const struct call *call, enum call_part part, off_t *offset);

/* All that can be read of a part now; a new reference, or NULL and *why. */
struct bytes *calls_load(
	const struct calls *calls, const struct call *call, enum call_part part, struct fail *why);

struct calls_stats {
	uint64_t ended[CALL_STATES];
	uint64_t resumed; /* went on although the process was replaced */
	uint64_t unknown; /* ended with an outcome that cannot be known, for the same reason */
	size_t kept;
};
void calls_get_stats(const struct calls *calls, struct calls_stats *stats);

#endif
