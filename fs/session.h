/* The FUSE device on the loop: libfuse's low-level session over a descriptor that we opened. */
#ifndef PEGFS_FS_SESSION_H
#define PEGFS_FS_SESSION_H

#include <fuse_lowlevel.h>

#include "core/base/fail.h"
#include "core/base/loop.h"

struct session;

/*
 * Serves requests on fuse_fd (becomes the session's) with ops and arg. on_end is called once when
 * the kernel has ended the connection (unmounted or aborted). NULL and *why.
 */
struct session *session_new(struct loop *loop, int fuse_fd, const struct fuse_lowlevel_ops *ops,
	void *arg, void (*on_end)(void *arg), struct fail *why);
void session_free(struct session *session); /* NULL is allowed */

/*
 * Makes the kernel look up every name anew that it has cached. Takes no lock of the kernel's, so it
 * cannot wait for us. Returns 0 or a negative errno; -EINVAL before Linux 6.16.
 */
int session_drop_names(const struct session *session);

/* Borrowed. */
struct fuse_session *session_fuse(const struct session *session);

#endif
