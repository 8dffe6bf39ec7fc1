/* How many bytes each uid has of something that this process holds in memory for it. */
#ifndef PEGFS_RUNNING_QUOTA_H
#define PEGFS_RUNNING_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/map.h"

struct quota {
	struct map by_uid; /* owned; a uid that holds nothing takes no room */
	size_t max;        /* bytes a uid */
};

void quota_init(struct quota *quota, size_t max);
void quota_release(struct quota *quota);

/* Takes bytes for a uid; false, and nothing is taken, where that would be more than it may have. */
bool quota_take(struct quota *quota, uid_t uid, size_t bytes);

/* Gives back what was taken. */
void quota_give(struct quota *quota, uid_t uid, size_t bytes);

#endif
