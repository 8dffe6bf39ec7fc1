#include <string.h>

#include "core/tools/watchcore.h"

/* ---- marks */

void watch_mark_dir(struct watch *watch, struct watchdir *dir, uint64_t at_ms)
{
	if (!watchqueue_has(&watch->due, dir))
		dir->first_ms = dir->last_ms = 0;
	watchqueue_push(&watch->due, dir);
	if (dir->first_ms == 0)
		dir->first_ms = at_ms;
	if (at_ms > 0)
		dir->last_ms = at_ms;
	dir->look = true;
}

void watch_mark_source(struct watch *watch, struct watch_source *source, bool unfinished)
{
	uint64_t now = loop_now_ms(watch->loop);
	if (!source->changed)
		source->first_ms = now;
	source->changed = true;
	source->unfinished = unfinished;
	source->last_ms = now;
}

/* ---- what inotify tells */

static void on_step_event(
	struct watch *watch, const struct place *place, uint32_t mask, const char *name)
{
	bool has_gone = mask & (IN_DELETE | IN_MOVED_FROM);
	if (!*name || strcmp(name, place->text) == 0)
		watch_mark_source(watch, place->source, has_gone);
}

static void on_root_event(
	struct watch *watch, const struct place *place, uint32_t mask, const char *name)
{
	struct watch_source *source = place->source;
	if (!*name) {
		/* Itself: moved, removed, unmounted; or who may read it is another matter now. */
		source->recheck = source->recheck || mask & IN_ATTRIB;
		watch_mark_source(watch, source, false);
		return;
	}
	if (source->is_users) {
		if (*name != '.' && mask & IN_ISDIR)
			watch_mark_source(watch, source, mask & (IN_DELETE | IN_MOVED_FROM));
		return;
	}
	bool is_plain = mask & IN_ATTRIB && !(mask & IN_ISDIR);
	if (*name == '.' || is_plain)
		return;
	struct watchdir *dir = watch_source_get(source, name);
	watch_mark_dir(watch, dir, loop_now_ms(watch->loop));
	dir->rewatch = true;
	dir->unfinished = mask & (IN_DELETE | IN_MOVED_FROM);
	if (mask & (IN_CREATE | IN_MOVED_TO))
		watchdir_note(dir, NULL, "");
}

static void on_dir_event(
	struct watch *watch, const struct place *place, uint32_t mask, const char *name)
{
	struct watchdir *dir = place->dir;
	bool has_gone = mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF);
	bool is_open = mask & IN_MODIFY || (mask & IN_CREATE && !(mask & IN_ISDIR));
	bool is_tree = (mask & IN_ISDIR && mask & (IN_CREATE | IN_MOVED_TO)) || has_gone;
	watch_mark_dir(watch, dir, loop_now_ms(watch->loop));
	if (!(mask & IN_ATTRIB))
		dir->unfinished = has_gone || is_open;
	if (is_tree || mask & (IN_IGNORED | IN_UNMOUNT))
		dir->rewatch = true;
	if (mask & IN_ALL_EVENTS)
		watchdir_note(dir, place->text, name);
}

static void on_overflow(struct watch *watch)
{
	watch->stats.lost++;
	for (size_t i = 0; i < watch->count; i++) {
		if (!watch->sources[i])
			continue;
		watch->sources[i]->lost = true;
		watch_mark_source(watch, watch->sources[i], false);
	}
	if (watch->users)
		watch_mark_source(watch, watch->users, false);
}

void watch_hear(void *arg, struct notify_place *notify_place, uint32_t mask, const char *name)
{
	struct watch *watch = arg;
	const struct place *place = (const struct place *)notify_place;
	if (!place)
		on_overflow(watch);
	else if (place->kind == PLACE_STEP)
		on_step_event(watch, place, mask, name);
	else if (place->kind == PLACE_ROOT)
		on_root_event(watch, place, mask, name);
	else
		on_dir_event(watch, place, mask, name);
}
