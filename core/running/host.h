/*
 * One tool host: a process that loads one tool and runs its calls, one after the other. This file
 * knows the process, its socket and its output; which call goes where is the executor's business.
 */
#ifndef PEGFS_RUNNING_HOST_H
#define PEGFS_RUNNING_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/running/keeper.h"
#include "core/running/spawn.h"
#include "core/running/wire.h"

struct host;

/* The life of a host, and what happens in it. host_step() is the table. */
enum host_state {
	HOST_BOOTING,  /* started, has not said so yet */
	HOST_IDLE,     /* can be given a call */
	HOST_BUSY,     /* runs a call, whether it has finished booting or not */
	HOST_SETTLING, /* the call is over, what it left behind is being looked for */
	HOST_ENDING,   /* told to go or killed; never given a call again */
	HOST_GONE,     /* the process has ended */
};
#define HOST_STATES (HOST_GONE + 1)

enum host_event {
	HOST_ON_READY,   /* it says that it has booted */
	HOST_ON_GIVE,    /* it is given a call */
	HOST_ON_ANSWER,  /* the result of its call, or that it failed */
	HOST_ON_CLEAN,   /* nothing of the call is left */
	HOST_ON_DIRTY,   /* something is, or the tool's files have changed: no further call here */
	HOST_ON_DISMISS, /* it is told to go, or has been killed */
	HOST_ON_EXIT,
};
#define HOST_EVENTS (HOST_ON_EXIT + 1)

enum host_state host_step(enum host_state state, enum host_event event);

/* All are called from the loop only, never from within a function of this file. */
struct host_events {
	/* started, stale, progress, result, failed; value and text are borrowed from the message. */
	void (*on_message)(void *arg, const struct wire_message *message);
	/* What the tool printed while it ran a call. */
	void (*on_output)(void *arg, const char *bytes, size_t len);
	/* The host has become HOST_IDLE: it can be given a call. */
	void (*on_idle)(void *arg);
	/* The process has ended, all it said and printed was handed on; free it now or later. */
	void (*on_gone)(void *arg);
};

/* Borrowed for the length of host_start, but for loop, events and arg: for the host's life. */
struct host_setup {
	struct loop *loop;
	const struct host_events *events;
	void *arg;
	struct spawn_request spawn;
	const json_t *settings;      /* sent with "attach" */
	size_t message_max;          /* bytes of JSON of one result */
	size_t output_max;           /* bytes that are handed on for one call */
	unsigned grace_ms;           /* from a dismissal to SIGKILL */
	const struct keeper *keeper; /* for the host's life; NULL: it dies with this process */
};

/* Starts a process. The caller's; NULL and *why where it cannot be. */
struct host *host_start(const struct host_setup *setup, struct fail *why);

/*
 * Takes up a host that an earlier process has left with the keeper; of setup->spawn only the limits
 * count. It goes on where that one was, and says again what was not dealt with. NULL and *why where
 * it cannot be: what is left of it is ended then.
 */
struct host *host_adopt(const struct host_setup *setup, size_t slot, struct fail *why);

/*
 * What the next process will know of it, to be written to; NULL where it is not kept. Good as long
 * as the host is.
 */
struct kept_host *host_kept(const struct host *host);

/* Kills what still runs, without a callback. */
void host_free(struct host *host);

enum host_state host_get_state(const struct host *host);
pid_t host_get_pid(const struct host *host);
bool host_has_booted(const struct host *host);

/*
 * Whether its process is known to have ended. One whose warden was killed dies as well, but a moment
 * later: until then it may begin with what it was given.
 */
bool host_has_ended(const struct host *host);

/*
 * Gives it a call (HOST_BOOTING or HOST_IDLE). 0 or a negative errno.
 */
int host_give(struct host *host, const struct wire_call *call);

/* Has it translate a tool's files; WIRE_PREPARED follows. */
void host_prepare(struct host *host, const char *dir, const char *entry);

void host_abort(struct host *host, const char *id, const char *reason);

/* A signal to the host and all that it started. */
void host_signal(struct host *host, int signal);

/* Asks it to go, and kills it where it does not in time. Output is no longer handed on. */
void host_dismiss(struct host *host);

/* Why a host is gone, for people: its exit status or signal, and the end of what it printed. */
void host_describe_end(const struct host *host, struct buf *out);

#endif
