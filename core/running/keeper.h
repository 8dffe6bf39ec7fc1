/*
 * Who keeps tool hosts when this process dies: another process that holds copies of their
 * descriptors (the FUSE face has its supervisor), and shared memory that says what each host is
 * doing. The next process takes them up, attaches anew (wire.h), and hears what was said meanwhile.
 *
 * Everything here is written in such an order that at each moment the next process can go on: a
 * host is noted before it is given anything, its call before the first byte of it is sent, and the
 * number of the last message that was dealt with after that is done. A call that waits for a host is
 * put by in the keeper's memory, and taken from there once it is noted with a host. Where a call was on its way to
 * its host at that very moment, nobody can know whether it has begun: its outcome is unknown.
 */
#ifndef PEGFS_RUNNING_KEEPER_H
#define PEGFS_RUNNING_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/buf.h"
#include "core/running/call.h"
#include "core/running/identity.h"

#define KEEPER_FDS 3 /* of spawn.h: socket, output, control */
#define KEEPER_SECRETS_MAX 2048

/* What a host is doing. Plain memory, shared with the next process. */
struct kept_host {
	pid_t pid, warden_pid;
	struct identity who;
	uint32_t runtime;
	uint32_t state;          /* enum host_state */
	uint32_t booted, rested; /* as in struct host */
	uint64_t seen;           /* the last of its messages that was dealt with */
	uint64_t output_left;
	char tool[TOOL_KEY_MAX]; /* whose host it is, its tool_key(); "": a spare */
	uint64_t code;           /* a digest of its code's place and of its environment */

	/* Its call. */
	uint64_t tag;       /* the caller's own number for it; 0: none */
	uint32_t delivered; /* all of it was sent */
	uint32_t started;   /* the host has begun with it */
	uint32_t aborted;   /* it is to end */
	int64_t due_ms;     /* CLOCK_MONOTONIC: when its time is over */
	uint64_t progress_left;
	char id[CALL_ID_MAX + 1];
	/* The sensitive parameters, as JSON, to keep them out of what it prints; wiped with the call. */
	uint32_t secrets_len; /* KEEPER_SECRETS_MAX + 1: there are too many to be kept */
	char secrets[KEEPER_SECRETS_MAX];
};

/* All functions get arg. A slot is an index below count. */
struct keeper {
	void *arg;
	size_t count;
	/* What the slot says, and whether it is in use. */
	struct kept_host *(*get)(void *arg, size_t slot, bool *used);
	/* Hands copies of the descriptors over and puts the slot in use. 0 or a negative errno. */
	int (*keep)(void *arg, size_t slot, const int fds[KEEPER_FDS]);
	/* Takes back what an earlier process has handed over, the caller's. 0 or a negative errno. */
	int (*take)(void *arg, size_t slot, int fds[KEEPER_FDS]);
	/* The slot is free, its copies are closed. */
	void (*drop)(void *arg, size_t slot);
	/*
	 * Puts bytes by under a number, in memory that no file shows. 0, or a negative errno where there
	 * is no room. A number that is not there is no mistake for the other two.
	 */
	int (*put_by)(void *arg, uint64_t tag, const void *bytes, size_t len);
	void (*let_go)(void *arg, uint64_t tag);
	/* Appends what was put by; 0 or a negative errno, -ENOENT where there is nothing. */
	int (*fetch)(void *arg, uint64_t tag, struct buf *out);
	/* From here on a message of the slot's host is being dealt with; done: no longer. */
	void (*hear)(void *arg, size_t slot, bool done);
};

#endif
