/*
 * The FUSE device on the loop: libfuse's low-level session over a descriptor that the supervisor
 * opened, and that an earlier server may have served.
 */
#ifndef PEGFS_FS_SESSION_H
#define PEGFS_FS_SESSION_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "fs/state.h"

struct session;

/* All borrowed, for the session's life. */
struct session_setup {
	struct loop *loop;
	int fuse_fd; /* becomes the session's */
	struct state *state;
	bool replays; /* repeats requests itself, also where the kernel would */
	const struct fuse_lowlevel_ops *ops;
	void *arg; /* for ops and on_end */
	/* Once, when the kernel has ended the connection (unmounted or aborted). */
	void (*on_end)(void *arg);
};

/*
 * Makes the session as the kernel has it: its FUSE_INIT is handled, and the answer, where an earlier
 * server has given it, must be the same (survival.md A2). Serves nothing yet. NULL and *why.
 */
struct session *session_new(const struct session_setup *setup, struct fail *why);
void session_free(struct session *session); /* NULL is allowed */

/*
 * Serves requests from here on; where an earlier server has died, first those that it has not
 * answered. Only to be called when that one is gone for good. 0 or *why.
 */
int session_serve(struct session *session, struct fail *why);

/*
 * The number of the request at hand, which is the same when it comes again, and no other request's
 * in the life of the mount.
 */
uint64_t session_unique(const struct session *session);

/* Whether the request at hand has come before: to a server that died before it answered. */
bool session_is_repeat(const struct session *session);

/* Whether a server that died may have answered it as well: the kernel does not tell. */
bool session_may_be_answered(const struct session *session);

/* Whether what the request at hand writes is lost: it is repeated from what was kept of it. */
bool session_has_lost_data(const struct session *session);

/*
 * Makes the kernel look up every name anew that it has cached. Takes no lock of the kernel's, so it
 * cannot wait for us. Returns 0 or a negative errno; -EINVAL before Linux 6.16.
 */
int session_drop_names(const struct session *session);

/* The arg of the session whose userdata libfuse hands to an operation. */
void *session_arg(const void *userdata);

/* Borrowed. */
struct fuse_session *session_fuse(const struct session *session);

#endif
