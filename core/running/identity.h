/* Who asks: the ids and rights with which a call runs, never more than its caller has. */
#ifndef PEGFS_RUNNING_IDENTITY_H
#define PEGFS_RUNNING_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/fail.h"
#include "core/running/place.h"

#define IDENTITY_GROUPS_MAX 64

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t groups[IDENTITY_GROUPS_MAX]; /* supplementary groups, as getgroups(2) gives them */
	size_t group_count;
	/* capabilities(7) that it may have at most, as bits; in its own user namespace */
	uint64_t caps;
	struct place place;
};

/* How calls are run, whoever makes them: `pegfs mount`'s --run-in, --call-uid and --call-gid. */
struct identity_rules {
	bool takes_all;  /* callers that live elsewhere as well */
	bool runs_there; /* and they are run where they live: anchor.h */
	bool has_one;    /* all run as call_uid and call_gid, else each as its caller */
	uid_t call_uid;
	gid_t call_gid;
};

/* The ids and rights of this process. */
void identity_self(struct identity *identity);

bool identity_equal(const struct identity *a, const struct identity *b);

/* Whether these are the user and the groups of this process; capabilities are not compared. */
bool identity_is_self(const struct identity *who);

/*
 * As whom a call is run, and at which place. 0, or -EACCES and *why, which names the way out: a caller that lives
 * elsewhere (place.h) is confined to that place, but a tool that runs here is not. Where it is let in
 * nevertheless, it still never runs as root here: root of a container is not root of this machine.
 */
int identity_resolve(const struct identity *caller, const struct identity_rules *rules,
	struct identity *who, struct fail *why);

#endif
