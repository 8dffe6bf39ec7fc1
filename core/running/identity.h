/* Who asks: the ids with which a call runs, never more than its caller has. */
#ifndef PEGFS_RUNNING_IDENTITY_H
#define PEGFS_RUNNING_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define IDENTITY_GROUPS_MAX 64

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t groups[IDENTITY_GROUPS_MAX]; /* supplementary groups, as getgroups(2) gives them */
	size_t group_count;
};

/* The ids of this process. */
void identity_self(struct identity *identity);

bool identity_equal(const struct identity *a, const struct identity *b);

#endif
