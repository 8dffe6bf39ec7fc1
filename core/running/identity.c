#include "core/running/identity.h"

#include <string.h>
#include <unistd.h>

void identity_self(struct identity *identity)
{
	memset(identity, 0, sizeof(*identity));
	identity->uid = geteuid();
	identity->gid = getegid();
	int count = getgroups(IDENTITY_GROUPS_MAX, identity->groups);
	identity->group_count = count > 0 ? (size_t)count : 0;
}

bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->group_count == b->group_count &&
	       memcmp(a->groups, b->groups, a->group_count * sizeof(*a->groups)) == 0;
}
