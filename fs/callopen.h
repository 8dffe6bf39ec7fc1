/*
 * An open `call` file's inner data, shared by its files: callfile.c (what each request means in each
 * phase), callwrite.c (what is written becomes a call), callwait.c (who waits for it, and the result),
 * callkept.c (what the next server must know) and callopen.c (opened, closed).
 */
#ifndef PEGFS_FS_CALLOPEN_H
#define PEGFS_FS_CALLOPEN_H

#include <fuse_lowlevel.h>

#include "core/base/loop.h"
#include "core/running/caller.h"
#include "core/tools/arguments.h"
#include "core/tools/document.h"
#include "fs/state.h"

struct answer;
struct kept;
struct parked;
struct server;

enum phase { PHASE_GATHER, PHASE_RUN, PHASE_DONE };

struct callfile {
	struct server *server; /* borrowed */
	struct tool *tool;     /* a reference */
	struct kept *kept;     /* borrowed, in the state */
	uint64_t reserved;
	fuse_ino_t ino;
	bool lost; /* bytes that an earlier server had gathered */
	bool readable;
	uid_t opener_uid;
	gid_t opener_gid;
	uint64_t opener_caps;
	struct place opener_place;
	struct caller caller; /* who wrote last, for whom the call runs */

	enum phase phase;
	int sticky; /* a positive errno; 0: none */
	struct document document;
	struct arguments *run; /* owned; what `run` was given; NULL: the request is JSON */
	size_t charged;        /* bytes of server->gathering, for the opener */
	size_t last_write_at;  /* in document.bytes: what the last write added */
	uint64_t seq;          /* of the call, in PHASE_RUN */
	uint64_t refused_seq;  /* of what a flush left, in PHASE_GATHER; 0: nothing */

	struct parked *write; /* held; NULL: none */
	struct parked *reads; /* held, newest first */
	bool detached;        /* the held write was let go for a signal; it may come again */
	size_t reattach_at;   /* in document.bytes: up to where it has come again */
	int outcome;          /* of the call, in PHASE_DONE: 0 or a positive errno */

	struct answer *result; /* owned; PHASE_DONE of a readable one */
	off_t write_at;        /* the offset of the write at hand */
	off_t write_end;       /* the end offset of the last write that was taken */
	off_t base;            /* the offset at which the result begins; -1: not settled yet */
	bool result_read;      /* at least one byte of it */
	bool awaited;          /* somebody began to wait for the result: leaving cancels (H6) */
	struct fuse_pollhandle *poll; /* owned; the newest */
	struct loop_timer look_timer;
	struct callfile *same_node; /* another readable one of the same node number */
};

/* One in PHASE_GATHER that nobody has opened yet; its owner ends it with callfile_free(). */
struct callfile *callopen_make(
	struct server *server, struct tool *tool, struct state_handle *place);

/* stat() of its node shows the size of its result from here on. */
void callopen_enter(struct callfile *file);

/* What was gathered is needed no longer. */
void callopen_drop_document(struct callfile *file);

/* So is what `run` was given. */
void callopen_free_run(struct callfile *file);

#endif
