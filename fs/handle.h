/*
 * Open files. What the kernel keeps for each is a number, never a pointer: it outlives this process,
 * and the next server makes the handle anew from the node number (survival.md A4).
 */
#ifndef PEGFS_FS_HANDLE_H
#define PEGFS_FS_HANDLE_H

#include <stdbool.h>

#include "core/base/bytes.h"
#include "core/base/fail.h"
#include "core/base/map.h"
#include "core/running/call.h"
#include "core/running/quota.h"
#include "fs/state.h"

#define HANDLE_BYTES_A_UNIT ((size_t)16 * 1024) /* of memory, in handles.quota */

struct callfile;
struct fuse_ctx;
struct fuse_pollhandle;
struct listing;
struct node;
struct server;

enum handle_kind {
	HANDLE_BYTES,   /* a text as it was when it was opened */
	HANDLE_GROWING, /* a part of a call that still grows: read through */
	HANDLE_PART,    /* a large part of a call that has ended */
	HANDLE_FILE,    /* a tool's own file */
	HANDLE_CALL,    /* `call`, opened for writing */
	HANDLE_CANCEL,  /* `cancel`, opened for writing */
	HANDLE_DIR,
};

struct handle {
	enum handle_kind kind;
	struct bytes *bytes;          /* HANDLE_BYTES: a reference */
	uint64_t seq;                 /* HANDLE_GROWING, HANDLE_CANCEL */
	enum call_part part;          /* HANDLE_GROWING */
	size_t read_end;              /* HANDLE_GROWING: up to where it has been read */
	struct fuse_pollhandle *poll; /* HANDLE_GROWING: owned; NULL: nobody waits */
	int fd;                       /* HANDLE_FILE, HANDLE_PART, HANDLE_GROWING: owned; or -1 */
	off_t start;                  /* HANDLE_PART, HANDLE_GROWING: where it begins in fd */
	size_t len;                   /* HANDLE_PART */
	struct callfile *callfile;    /* HANDLE_CALL: owned */
	struct listing *listing;      /* HANDLE_DIR: owned */
	bool listed;                  /* HANDLE_DIR: somebody has read from its beginning */
	uid_t uid;                    /* who has opened it, */
	size_t weight;                /* and what was taken for that of handles->quota */
};

struct handles {
	struct map by_fh; /* owned struct handle */
	struct state
		*state;  /* borrowed; knows the number to come, and of `call` all that is needed */
	struct map kept; /* fh -> its struct state_handle, in use */
	uint32_t *free_kept; /* owned; a stack of places in state->handles, and its count */
	size_t free_count;
	size_t polled;      /* handles with a poll */
	struct quota quota; /* descriptors, and memory in pieces of 16 KiB */
};

/* No uid takes more than half of this process's descriptors. */
void handles_init(struct handles *handles, struct state *state);
void handles_release(struct handles *handles);

/*
 * Puts a handle in (it becomes theirs) for the uid that opens it. Returns its number; or 0, and it is
 * gone, where that uid has too much open.
 */
uint64_t handles_add(struct handles *handles, struct handle *handle, uid_t uid);

/* The handle of a number, or NULL where this server does not know it. */
struct handle *handles_get(const struct handles *handles, uint64_t fh);

/*
 * A place in the state for the `call` file with the number that handles_add() gives next, opened by
 * the request `unique`. NULL where too many are open.
 */
struct state_handle *handles_keep(struct handles *handles, uint64_t ino, uint64_t unique);

/*
 * The number that the `call` file got when the open `unique` came to an earlier server, which may have
 * answered: then somebody uses it. 0: it got none.
 */
uint64_t handles_opened_by(struct handles *handles, uint64_t unique);

/*
 * The handle of a number that an earlier server has given, made anew from the node number. NULL and
 * a negative errno in *error where that cannot be.
 */
struct handle *handle_revive(
	struct server *server, uint64_t ino, uint64_t fh, const struct fuse_ctx *ctx, int *error);

/* Takes it out and frees it. */
void handles_drop(struct handles *handles, uint64_t fh);

/* An empty one of a kind; the caller's until handles_add(). */
struct handle *handle_new(enum handle_kind kind);

/* A handle for reading a node, as it is now for who opens it; or NULL and *why. */
struct handle *handle_open(struct server *server, const struct node *node,
	const struct fuse_ctx *ctx, struct fail *why);

/* Before a directory is read from its beginning: again it is read as it is then. 0 or an errno. */
int handle_rewind(struct server *server, struct handle *handle, const struct node *dir,
	const struct fuse_ctx *ctx);

/* Whether there is something to read, or nothing to wait for. */
bool handle_is_readable(const struct server *server, const struct handle *handle);

/* Keeps the newest poll of a handle (becomes its; NULL: none). */
void handle_set_poll(struct handles *handles, struct handle *handle, struct fuse_pollhandle *poll);

/* Wakes those who wait for more of a call. */
void handles_wake(struct handles *handles, uint64_t seq);

/* Up to size bytes from offset on; appended to out. Returns 0 or a negative errno. */
int handle_read(
	struct server *server, struct handle *handle, size_t size, size_t offset, struct buf *out);

#endif
