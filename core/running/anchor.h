/*
 * A place (place.h) that is held, so that a process can be started there later: descriptors of its
 * namespaces and of its root directory, and what else a process there is subject to. As long as it is
 * held, no other place can come to have the same key.
 *
 * Descriptors of namespaces and not a pidfd with setns(2): who calls may be a thread, and may have
 * ended before there is a host for its call (what is written by a subshell is waited for by its parent).
 */
#ifndef PEGFS_RUNNING_ANCHOR_H
#define PEGFS_RUNNING_ANCHOR_H

#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "core/base/fail.h"
#include "core/running/identity.h"
#include "core/running/place.h"

#define ANCHOR_NAMESPACES 7 /* all kinds but the user namespace, of which the order is free */

struct anchor {
	unsigned refs;
	uint64_t round; /* for who counts anchors: when it was counted last */
	struct place place;
	int namespaces[ANCHOR_NAMESPACES]; /* owned; -1: the same as here */
	int user_fd;                       /* owned; -1: the same as here */
	int root_fd;                       /* owned */
	char *cgroups, *label;             /* owned; texts of place.h */
	struct rlimit limits[RLIM_NLIMITS];
};

/*
 * Holds the place of a thread that waits for an answer of ours, if it is still who->place. One
 * reference, the caller's; or NULL and *why. For root.
 */
struct anchor *anchor_open(pid_t tid, const struct identity *who, struct fail *why);
struct anchor *anchor_ref(struct anchor *anchor);
void anchor_unref(struct anchor *anchor); /* NULL is allowed */

#endif
