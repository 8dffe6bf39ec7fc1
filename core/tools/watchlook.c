#include <string.h>
#include <unistd.h>

#include "core/tools/source.h"
#include "core/tools/watchcore.h"

/* ---- looking at one directory */

void watch_unsettle(struct watch *watch)
{
	if (!watch->unsettled)
		watch->unsettled_ms = loop_now_ms(watch->loop);
	watch->unsettled = true;
}

static void forget(struct watch *watch, struct watchdir *dir)
{
	if (watchqueue_has(&watch->told, dir))
		watchqueue_drop(&watch->told, dir->source, dir);
	watch_source_forget(dir->source, watch->notify, dir);
}

void watch_look_at(struct watch *watch, struct watchdir *dir)
{
	struct watch_source *source = dir->source;
	const struct root *root = registry_root(watch->registry, source->index);
	bool is_there = root != NULL, has_look = dir->look;
	if (root && dir->rewatch)
		is_there = watch_source_renew_dir(source, watch->notify, root, dir);
	dir->look = dir->rewatch = dir->unfinished = false;
	if (has_look) {
		registry_load_dir(watch->registry, source->index, dir->name);
		watch->stats.looks++;
		watch_unsettle(watch);
	}
	if (!is_there)
		forget(watch, dir);
	else if (dir->file_count > 0)
		watchqueue_push(&watch->told, dir);
}

/* ---- mounts over directories of a source */

struct mount_check {
	struct watch *watch;
	struct watch_source *source;
};

static void on_mounted(void *arg, const char *name, uint64_t id)
{
	struct mount_check *check = arg;
	if (*name == '.')
		return;
	struct watchdir *dir = watch_source_get(check->source, name);
	dir->mount_seen = true;
	if (dir->mount == id)
		return;
	dir->mount = id;
	dir->rewatch = true;
	watchdir_note(dir, NULL, "");
	watch_mark_dir(check->watch, dir, loop_now_ms(check->watch->loop));
}

/* Directories of the source over which something was mounted, or not any more. */
static void check_mounts(struct watch *watch, struct watch_source *source)
{
	const struct root *root = registry_root(watch->registry, source->index);
	struct mount_check check = { .watch = watch, .source = source };
	if (root)
		mounts_in(root->fd, on_mounted, &check);
	size_t at = 0;
	struct watchdir *dir = NULL;
	while ((dir = watch_source_next(source, &at, dir))) {
		bool has_gone = dir->mount && !dir->mount_seen;
		dir->mount_seen = false;
		if (!has_gone)
			continue;
		dir->mount = 0;
		dir->rewatch = true;
		watchdir_note(dir, NULL, "");
		watch_mark_dir(watch, dir, loop_now_ms(watch->loop));
	}
}

/* ---- looking at a source */

void watch_drop_dirs(struct watch *watch, struct watch_source *source)
{
	watchqueue_drop(&watch->due, source, NULL);
	watchqueue_drop(&watch->told, source, NULL);
	watch_source_clear(source, watch->notify);
}

static bool has_name(const struct source_names *names, const char *name)
{
	size_t low = 0, high = names->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(names->items[middle], name);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

void watch_queue_all(struct watch *watch, struct watch_source *source, bool is_poll)
{
	const struct root *root = registry_root(watch->registry, source->index);
	struct source_names names = { .items = NULL };
	if (root)
		source_names_load(root, &names);
	for (size_t i = 0; i < names.count; i++) {
		struct watchdir *dir = watch_source_get(source, names.items[i]);
		bool is_new = !dir->places && !dir->refused;
		dir->rewatch = dir->rewatch || !is_poll || is_new || dir->refused;
		if (source->lost)
			watchdir_note(dir, NULL, "");
		watch_mark_dir(watch, dir, 0);
	}
	/* What was scanned before it was watched, and has gone since, nothing else would tell of. */
	const char *known;
	for (size_t i = 0; (known = registry_dir_in(watch->registry, source->index, i)); i++)
		watch_source_get(source, known);
	size_t at = 0;
	struct watchdir *dir = NULL;
	while ((dir = watch_source_next(source, &at, dir)))
		if (!has_name(&names, dir->name)) {
			dir->rewatch = true;
			watch_mark_dir(watch, dir, 0);
		}
	source_names_release(&names);
	source->lost = source->recheck = false;
}

/* The address of the root in which its tools were found tells which source it is. */
static uint64_t key_of(const struct root *root)
{
	return (uint64_t)(uintptr_t)root;
}

static bool enter(struct watch *watch, struct watch_source *source)
{
	const struct root *old = registry_root(watch->registry, source->index);
	if (old)
		map_remove(&watch->by_root, key_of(old));
	bool is_new = registry_enter_source(watch->registry, source->index);
	const struct root *root = registry_root(watch->registry, source->index);
	if (root)
		map_put(&watch->by_root, key_of(root), source);
	return is_new;
}

void watch_check_source(struct watch *watch, struct watch_source *source)
{
	const struct covered covered = registry_covered(watch->registry, source->index);
	source->changed = source->unfinished = false;
	int fd = watch_source_follow(source, watch->notify, &covered);
	if (fd >= 0)
		close(fd);
	bool is_new = enter(watch, source);
	watch_unsettle(watch);
	if (is_new) {
		watch_drop_dirs(watch, source);
		watch->is_entering = true;
		watch->stats.scans++;
	}
	bool is_watched = source->root_place && source->root_place->notify.inode;
	if (is_new || !is_watched)
		watch_source_enter(
			source, watch->notify, registry_root(watch->registry, source->index));
	if (source->look_for_mounts || !source->is_own)
		check_mounts(watch, source);
	source->look_for_mounts = false;
	if (is_new || !source->entered || source->lost || source->recheck)
		watch_queue_all(watch, source, !is_new && source->entered && !source->lost);
	source->entered = true;
}
