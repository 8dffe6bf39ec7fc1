#include "core/running/quota.h"

#include <stdlib.h>

#include "core/base/xalloc.h"

void quota_init(struct quota *quota, size_t max)
{
	*quota = (struct quota){ .by_uid = MAP_INIT, .max = max };
}

void quota_release(struct quota *quota)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&quota->by_uid, &at)))
		free(slot->value);
	map_release(&quota->by_uid);
}

bool quota_take(struct quota *quota, uid_t uid, size_t bytes)
{
	size_t *held = map_get(&quota->by_uid, uid);
	if (bytes > quota->max - (held ? *held : 0))
		return false;
	if (bytes > 0 && !held) {
		held = xcalloc(1, sizeof(*held));
		map_put(&quota->by_uid, uid, held);
	}
	if (held)
		*held += bytes;
	return true;
}

void quota_give(struct quota *quota, uid_t uid, size_t bytes)
{
	size_t *held = map_get(&quota->by_uid, uid);
	if (!held)
		return;
	*held -= bytes;
	if (*held == 0)
		free(map_remove(&quota->by_uid, uid));
}
