/*
 * What survives the server: a memory file that the supervisor makes, and that every server maps.
 *
 * The kernel keeps what it was told of a server that has died: node numbers, handle numbers, waiting
 * requests, poll handles. What is needed to go on with them lies here, as plain numbers, and is
 * always in a state from which the next server can go on: it is written by one thread, and who
 * reads it comes after that one's death. Everything else is made anew (survival.md A4).
 *
 * Knows nothing of what the fields mean to others, so that the supervisor can use it.
 */
#ifndef PEGFS_FS_STATE_H
#define PEGFS_FS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/fail.h"

/* To be raised with each change below: a server of another layout refuses to take over. */
#define STATE_LAYOUT 5

#define STATE_INIT_MAX 512
#define STATE_REQUESTS 16384
#define STATE_HEAD_MAX 232
#define STATE_HANDLES 16384
#define STATE_HANDLE_SIZE 192
#define STATE_POLLS 16384
#define STATE_HOSTS 256
#define STATE_HOST_SIZE 4080
#define STATE_PUT_BY 4096
#define STATE_PUT_BY_MAX (UINT64_C(256) << 20) /* bytes, in all */
#define STATE_POISONS 64
#define STATE_QUARANTINE_AFTER 2 /* crashes, of the server in the same request */

/* The largest request: 1 MiB of data and a page for what stands before it, as libfuse reads it. */
#define STATE_RECEIVE_SIZE ((1u << 20) + 4096)

/* A request that waits for its answer: enough of it to be served again (replay.h). */
struct state_request {
	uint64_t unique; /* 0: free */
	uint32_t len;    /* of the whole request; head may hold less */
	uint32_t interrupted;
	unsigned char head[STATE_HEAD_MAX];
};

/* An open `call` file. What body holds is callfile.c's own. */
struct state_handle {
	uint64_t fh; /* 0: free */
	uint64_t ino;
	uint64_t open_unique; /* of the request that opened it */
	_Alignas(8) unsigned char body[STATE_HANDLE_SIZE];
};

/* A tool host whose descriptors the supervisor keeps. What body holds is keeper.h's. */
struct state_host {
	uint32_t used;
	uint32_t crashes; /* of the server, while it heard this host */
	_Alignas(8) unsigned char body[STATE_HOST_SIZE];
};

/* Where in the put-by memory file something lies, in whole pages. */
struct state_put_by {
	uint64_t tag; /* 0: free */
	uint64_t offset, len;
};

/* A request with which the server has crashed or hung. */
struct state_poison {
	uint64_t unique; /* 0: free */
	uint32_t crashes;
	uint32_t opcode;
};

/* What the server is doing: whom to blame when it crashes or hangs. 0: nothing. */
struct state_current {
	uint64_t unique; /* of the request it is working on */
	uint32_t opcode;
	uint32_t host;     /* 1 + the index of the host it is hearing */
	uint64_t since_ms; /* CLOCK_MONOTONIC; 0: waiting for events */
};

struct state_counters {
	uint64_t restarts;            /* servers started because one had died */
	uint64_t supervisor_restarts; /* of the supervisor, by its manager */
	uint64_t reloads;             /* servers started because it was asked for */
	uint64_t resends;             /* requests that were served again */
	uint64_t
		quarantined; /* requests that were answered with EIO since servers crash with them */
	uint64_t hangs;      /* servers killed by the watchdog */
	uint64_t unknown;    /* calls whose outcome cannot be known */
	uint64_t resumed;    /* calls that went on while the server was replaced */
};

struct state {
	uint32_t layout;
	uint32_t init_len, reply_len, init_replied;
	unsigned char init[STATE_INIT_MAX], reply[STATE_INIT_MAX]; /* FUSE_INIT and its answer */
	int32_t supervisor_pid, server_pid;
	uint64_t generation;     /* of the server that serves; 1 is the first */
	uint64_t polls_overflow; /* more wait than polls has places: wake all up to polls_max */
	uint64_t polls_max;
	uint64_t next_fh, call_serial; /* numbers that the kernel must not get twice */
	uint64_t received; /* unique of the last request that was dealt with: answered, or kept */
	uint64_t tree_digest; /* of what the root's texts were made from, and since when */
	int64_t tree_s, tree_ns;
	struct state_counters counters;
	struct state_current current;
	struct state_poison poisons[STATE_POISONS];

	uint64_t put_by_end, put_by_bytes; /* where the next one goes; bytes in use */
	struct state_put_by put_by[STATE_PUT_BY];
	uint64_t polls[STATE_POLLS]; /* handles of poll(2), by their last bits */
	struct state_request requests[STATE_REQUESTS];
	struct state_handle handles[STATE_HANDLES];
	struct state_host hosts[STATE_HOSTS];

	/* Resident: a page fault of a dying server would fail the request that it receives (A5.1). */
	_Alignas(4096) unsigned char receive[STATE_RECEIVE_SIZE];
};

/* Makes the memory file; *state is mapped. Its descriptor, the caller's, or *why. */
int state_make(struct state **state, struct fail *why);

/* Maps one that another process has made. NULL and *why, also where its layout is another one. */
struct state *state_map(int fd, struct fail *why);

/* For a server: has the receive buffer in memory for good. */
void state_make_resident(struct state *state);
void state_unmap(struct state *state); /* NULL is allowed */

/* Blames the request or the host that the server was busy with. Returns whether there was one. */
bool state_blame(struct state *state);

/* Whether servers have crashed in this request too often to try it once more. */
bool state_is_poison(const struct state *state, uint64_t unique);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t state_now_ms(void);

#endif
