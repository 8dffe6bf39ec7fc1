/*
 * Users come and go in a data directory (users.h). It is followed and watched like a source, but what
 * is in it are users and not tools, whose own sources are watched each by itself from the data
 * directory on: where that is another one, all of them are.
 */
#include <errno.h>
#include <string.h>

#include "core/base/log.h"
#include "core/tools/watchcore.h"

static void mark_own_sources(struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->sources[i] && watch->sources[i]->is_own) {
			watch_mark_source(watch, watch->sources[i], false);
			watch->sources[i]->look_for_mounts = true;
		}
}

bool watch_users_have_other_mounts(struct watch *watch)
{
	uint64_t digest = watch->users_root ? mounts_digest(watch->users_root->fd) : 0;
	if (digest == watch->users_mounts)
		return false;
	watch->users_mounts = digest;
	return true;
}

/* Takes root. */
static void enter(struct watch *watch, struct root *root)
{
	bool is_new = watch->users->entered && !root_equal(root, watch->users_root);
	bool is_watched = watch->users->root_place && watch->users->root_place->notify.inode;
	root_unref(watch->users_root);
	watch->users_root = root;
	if (watch_users_have_other_mounts(watch) || is_new)
		mark_own_sources(watch);
	if (is_new || !is_watched)
		watch_source_enter(watch->users, watch->notify, root);
	watch->users->entered = true;
}

void watch_check_users(struct watch *watch)
{
	struct watch_source *source = watch->users;
	const struct covered covered = registry_covered_top(watch->registry);
	source->changed = source->unfinished = false;
	int fd = watch_source_follow(source, watch->notify, &covered);
	enter(watch, fd < 0 ? NULL : root_new(source->path, fd));
	struct users users = { .items = NULL };
	int result = watch->users_root ? users_load(watch->users_root, &users) : fd;
	/* Where it cannot be read for once, that says nothing of who is in it. */
	if (result == 0 || result == -ENOENT || result == -ENOTDIR)
		watch->events->on_users(watch->arg, &users);
	else
		log_msg(LOG_LEVEL_WARNING, "%s: cannot read which users there are: %s",
			source->path, strerror(-result));
	users_release(&users);
}
