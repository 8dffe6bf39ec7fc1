#include "core/tools/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/tools/mounts.h"
#include "core/tools/source.h"
#include "core/tools/watchsource.h"

/*
 * When something that happened is looked at, in milliseconds: after the last event, when it seems
 * complete; when it does not (a file still open for writing, a name gone); and after the first.
 */
#define QUIET_MS 4
#define UNFINISHED_MS 40
#define LATEST_MS 60

#define TICK_MS 2     /* between two reads of the kernel's queue while something happens */
#define SLICE_MS 5    /* of work in one turn of the loop */
#define SPACING_MS 15 /* between two snapshots at least */
#define SETTLE_MS 50  /* a snapshot is made at least this often while there is more to do */
#define POLL_SHARE 20 /* polling takes at most one part in that many of the time */

struct watch {
	struct loop *loop;          /* borrowed */
	struct registry *registry;  /* borrowed */
	struct watch_config config; /* with the defaults filled in */
	const struct watch_events *events;
	void *arg;
	struct notify *notify; /* owned; NULL: there is no inotify */
	struct mounts *mounts; /* owned; may be NULL */
	struct loop_timer timer, poll_timer;
	struct watch_source *sources; /* owned */
	size_t count;
	struct watchdir *first_due, **last_due; /* the queue: linked by next_due */
	size_t queued;
	bool unsettled; /* something was looked at since the last snapshot */
	uint64_t unsettled_ms, settled_ms;
	bool is_entering; /* a source is another one: its tools are shown when all are loaded */
	uint64_t busy_ms; /* spent since the last poll */
	bool poll_all;    /* each second poll looks at everything */
	struct watch_stats stats;
};

static void on_timer(void *arg);

/* ---- the queue */

static void enqueue(struct watch *watch, struct watchdir *dir)
{
	dir->queued = true;
	dir->next_due = NULL;
	*watch->last_due = dir;
	watch->last_due = &dir->next_due;
	watch->queued++;
}

static struct watchdir *dequeue(struct watch *watch)
{
	struct watchdir *dir = watch->first_due;
	watch->first_due = dir->next_due;
	if (!watch->first_due)
		watch->last_due = &watch->first_due;
	watch->queued--;
	dir->queued = false;
	return dir;
}

/* Something happened in it at that time; 0: it is due at once. */
static void mark_dir(struct watch *watch, struct watchdir *dir, uint64_t at_ms)
{
	if (!dir->queued) {
		dir->first_ms = dir->last_ms = 0;
		enqueue(watch, dir);
	}
	if (dir->first_ms == 0)
		dir->first_ms = at_ms;
	if (at_ms > 0)
		dir->last_ms = at_ms;
	dir->look = true;
}

static void mark_source(struct watch *watch, struct watch_source *source, bool unfinished)
{
	uint64_t now = loop_now_ms(watch->loop);
	if (!source->changed)
		source->first_ms = now;
	source->changed = true;
	source->unfinished = unfinished;
	source->last_ms = now;
}

static bool is_due(uint64_t now_ms, uint64_t first_ms, uint64_t last_ms, bool unfinished)
{
	return now_ms >= last_ms + (unfinished ? UNFINISHED_MS : QUIET_MS) ||
	       now_ms >= first_ms + LATEST_MS;
}

/* ---- what inotify tells */

static void on_step_event(
	struct watch *watch, const struct place *place, uint32_t mask, const char *name)
{
	bool has_gone = mask & (IN_DELETE | IN_MOVED_FROM);
	if (!*name || strcmp(name, place->text) == 0)
		mark_source(watch, place->source, has_gone);
}

static void on_root_event(
	struct watch *watch, const struct place *place, uint32_t mask, const char *name)
{
	struct watch_source *source = place->source;
	if (!*name) {
		/* Itself: moved, removed, unmounted; or who may read it is another matter now. */
		source->recheck = source->recheck || mask & IN_ATTRIB;
		mark_source(watch, source, false);
		return;
	}
	bool is_plain = mask & IN_ATTRIB && !(mask & IN_ISDIR);
	if (*name == '.' || is_plain)
		return;
	struct watchdir *dir = watch_source_get(source, name);
	mark_dir(watch, dir, loop_now_ms(watch->loop));
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
	mark_dir(watch, dir, loop_now_ms(watch->loop));
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
		watch->sources[i].lost = true;
		mark_source(watch, &watch->sources[i], false);
	}
}

static void on_notify_event(
	void *arg, struct notify_place *notify_place, uint32_t mask, const char *name)
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

static void on_notify_wake(void *arg)
{
	struct watch *watch = arg;
	notify_drain(watch->notify);
	loop_arm_timer(watch->loop, &watch->timer, TICK_MS, on_timer, watch);
}

/* ---- mounts */

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
	mark_dir(check->watch, dir, loop_now_ms(check->watch->loop));
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
		mark_dir(watch, dir, loop_now_ms(watch->loop));
	}
}

static void on_mounts(void *arg)
{
	struct watch *watch = arg;
	for (size_t i = 0; i < watch->count; i++) {
		mark_source(watch, &watch->sources[i], false);
	}
	loop_arm_timer(watch->loop, &watch->timer, TICK_MS, on_timer, watch);
}

/* ---- looking at one directory */

static void note_unsettled(struct watch *watch)
{
	if (!watch->unsettled)
		watch->unsettled_ms = loop_now_ms(watch->loop);
	watch->unsettled = true;
}

static void tell_files(struct watch *watch, struct watchdir *dir)
{
	size_t index = dir->source->index;
	const struct tool *tool = registry_tool_in(watch->registry, index, dir->name);
	for (size_t i = 0; tool && watch->events->on_file && i < dir->file_count; i++)
		watch->events->on_file(watch->arg, tool, dir->files[i]);
	watchdir_forget_files(dir);
}

static void look_at(struct watch *watch, struct watchdir *dir)
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
		note_unsettled(watch);
	}
	tell_files(watch, dir);
	if (!is_there)
		watch_source_forget(source, watch->notify, dir);
}

/* ---- looking at a source */

static void drop_dirs(struct watch *watch, struct watch_source *source)
{
	struct watchdir **link = &watch->first_due;
	while (*link) {
		struct watchdir *dir = *link;
		if (dir->source != source) {
			link = &dir->next_due;
			continue;
		}
		*link = dir->next_due;
		dir->queued = false;
		watch->queued--;
	}
	watch->last_due = link;
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

/* Queues all that is in the source, and what was. is_poll: watches that are in order are left so. */
static void queue_all(struct watch *watch, struct watch_source *source, bool is_poll)
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
		mark_dir(watch, dir, 0);
	}
	size_t at = 0;
	struct watchdir *dir = NULL;
	while ((dir = watch_source_next(source, &at, dir)))
		if (!has_name(&names, dir->name)) {
			dir->rewatch = true;
			mark_dir(watch, dir, 0);
		}
	source_names_release(&names);
	source->lost = source->recheck = false;
}

static void check_source(struct watch *watch, struct watch_source *source)
{
	source->changed = source->unfinished = false;
	int fd = watch_source_follow(source, watch->notify, registry_covered(watch->registry));
	if (fd >= 0)
		close(fd);
	bool is_new = registry_enter_source(watch->registry, source->index);
	note_unsettled(watch);
	if (is_new) {
		drop_dirs(watch, source);
		watch->is_entering = true;
		watch->stats.scans++;
	}
	bool is_watched = source->root_place && source->root_place->notify.inode;
	if (is_new || !is_watched)
		watch_source_enter(
			source, watch->notify, registry_root(watch->registry, source->index));
	check_mounts(watch, source);
	if (is_new || !source->entered || source->lost || source->recheck)
		queue_all(watch, source, !is_new && source->entered && !source->lost);
	source->entered = true;
}

/* ---- too few watches */

static void tell_refused(struct watch *watch, struct watch_source *source)
{
	struct faults faults = FAULTS_INIT;
	bool is_refused = source->refused_count > 0;
	if (is_refused == source->told)
		return;
	source->told = is_refused;
	char text[512];
	snprintf(text, sizeof(text),
		"there are more directories than can be watched, so changes are seen up to %u ms "
		"late; raise fs.inotify.max_user_watches (sysctl), or have fewer directories in "
		"the tools",
		watch->config.poll_ms);
	if (is_refused) {
		struct faults one = FAULTS_INIT;
		faults_add(&one, FAULT_WARNING, "not-watched", 0, 0, "%s", text);
		faults_move(&faults, &one, source->path);
		log_msg(LOG_LEVEL_WARNING, "%s: %s", source->path, text);
	} else {
		log_msg(LOG_LEVEL_INFO, "%s: all directories are watched again", source->path);
	}
	registry_tell(watch->registry, source->index, &faults);
	note_unsettled(watch);
}

/* ---- polling */

static void on_poll(void *arg);

static bool needs_poll(const struct watch_source *source)
{
	return source->blind || source->refused_count > 0;
}

static void arm_poll(struct watch *watch)
{
	bool is_needed = false;
	for (size_t i = 0; i < watch->count; i++)
		is_needed = is_needed || needs_poll(&watch->sources[i]);
	if (!is_needed || watch->poll_timer.slot > 0)
		return;
	/* The path twice as often as what is in it. */
	uint64_t delay = watch->config.poll_ms / 2, least = watch->busy_ms * POLL_SHARE;
	watch->busy_ms = 0;
	loop_arm_timer(
		watch->loop, &watch->poll_timer, delay > least ? delay : least, on_poll, watch);
}

/* What could not be watched, perhaps can be now. */
static void queue_refused(struct watch *watch, struct watch_source *source)
{
	size_t at = 0;
	struct watchdir *dir = NULL;
	while ((dir = watch_source_next(source, &at, dir)))
		if (dir->refused) {
			dir->rewatch = true;
			mark_dir(watch, dir, 0);
		}
}

static void on_poll(void *arg)
{
	struct watch *watch = arg;
	watch->poll_all = !watch->poll_all;
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_source *source = &watch->sources[i];
		if (!needs_poll(source))
			continue;
		if (source->blind || source->refused)
			check_source(watch, source);
		if (watch->poll_all && source->blind)
			queue_all(watch, source, true);
		else if (watch->poll_all)
			queue_refused(watch, source);
	}
	loop_arm_timer(watch->loop, &watch->timer, 0, on_timer, watch);
}

/* ---- the work of one turn */

static uint64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void work_on_sources(struct watch *watch)
{
	uint64_t now = loop_now_ms(watch->loop);
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_source *source = &watch->sources[i];
		if (source->changed &&
			is_due(now, source->first_ms, source->last_ms, source->unfinished))
			check_source(watch, source);
	}
}

/* Returns whether there is more that is due. */
static bool work_on_dirs(struct watch *watch, uint64_t until_ms)
{
	uint64_t now = loop_now_ms(watch->loop);
	for (size_t left = watch->queued; left > 0; left--) {
		struct watchdir *dir = dequeue(watch);
		if (!is_due(now, dir->first_ms, dir->last_ms, dir->unfinished))
			enqueue(watch, dir);
		else
			look_at(watch, dir);
		if (clock_ms() >= until_ms)
			return left > 1;
	}
	return false;
}

static void settle(struct watch *watch)
{
	watch->unsettled = watch->is_entering = false;
	if (registry_renew(watch->registry))
		watch->events->on_snapshot(watch->arg);
	watch->settled_ms = clock_ms();
}

static bool has_changed_source(const struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->sources[i].changed)
			return true;
	return false;
}

static void on_timer(void *arg)
{
	struct watch *watch = arg;
	uint64_t start = clock_ms();
	if (watch->notify)
		notify_drain(watch->notify);
	work_on_sources(watch);
	bool is_behind = work_on_dirs(watch, start + SLICE_MS);
	uint64_t now = clock_ms();
	for (size_t i = 0; i < watch->count && !is_behind; i++)
		tell_refused(watch, &watch->sources[i]);
	bool is_late = now >= watch->unsettled_ms + SETTLE_MS && !watch->is_entering;
	bool is_spaced = now >= watch->settled_ms + SPACING_MS;
	if (watch->unsettled && is_spaced && (!is_behind || is_late))
		settle(watch);
	watch->busy_ms += clock_ms() - start;
	arm_poll(watch);
	if (watch->queued > 0 || watch->unsettled || has_changed_source(watch))
		loop_arm_timer(
			watch->loop, &watch->timer, is_behind ? 0 : TICK_MS, on_timer, watch);
	else if (watch->notify)
		notify_resume(watch->notify);
}

/* ---- life */

static const struct notify_events notify_events = { on_notify_wake, on_notify_event };

static size_t count_sources(const struct registry *registry)
{
	const char *const *sources = registry_sources(registry);
	size_t count = 0;
	while (sources[count])
		count++;
	return count;
}

struct watch *watch_new(struct loop *loop, struct registry *registry,
	const struct watch_config *config, const struct watch_events *events, void *arg)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));
	*watch = (struct watch){ .loop = loop,
		.registry = registry,
		.config = config ? *config : (struct watch_config){ 0 },
		.events = events,
		.arg = arg,
		.count = count_sources(registry) };
	if (!watch->config.max)
		watch->config.max = WATCH_MAX;
	if (!watch->config.poll_ms)
		watch->config.poll_ms = WATCH_POLL_MS;
	watch->last_due = &watch->first_due;
	struct fail why = FAIL_INIT;
	watch->notify = notify_new(loop, watch->config.max, &notify_events, watch, &why);
	if (!watch->notify)
		log_msg(LOG_LEVEL_WARNING, "%s; changes are seen up to %u ms late", why.text,
			watch->config.poll_ms);
	watch->mounts = mounts_new(loop, on_mounts, watch);
	watch->sources = xcalloc(watch->count, sizeof(*watch->sources));
	for (size_t i = 0; i < watch->count; i++)
		watch->sources[i] = (struct watch_source){
			.index = i, .path = registry_sources(registry)[i], .changed = true
		};
	loop_arm_timer(loop, &watch->timer, 0, on_timer, watch);
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	loop_cancel_timer(&watch->timer);
	loop_cancel_timer(&watch->poll_timer);
	for (size_t i = 0; i < watch->count; i++)
		watch_source_release(&watch->sources[i], watch->notify);
	free(watch->sources);
	mounts_free(watch->mounts);
	notify_free(watch->notify);
	free(watch);
}

/* ---- questions */

bool watch_sees(const struct watch *watch, const struct tool *tool)
{
	for (size_t i = 0; i < watch->count; i++) {
		const struct watch_source *source = &watch->sources[i];
		if (tool->root != registry_root(watch->registry, i))
			continue;
		const struct watchdir *dir = watch_source_find(source, tool->dir_name);
		return dir && dir->complete && !dir->rewatch && !source->blind && !source->changed;
	}
	return false;
}

struct watch_stats watch_stats(const struct watch *watch)
{
	struct watch_stats stats = watch->stats;
	stats.watches = watch->notify ? notify_count(watch->notify) : 0;
	for (size_t i = 0; i < watch->count; i++) {
		stats.dirs += watch->sources[i].dir_count;
		stats.refused += watch->sources[i].refused_count;
		stats.polled += watch->sources[i].blind;
	}
	return stats;
}
