#include "core/tools/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/tools/watchcore.h"

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
#define ENTER_MS 2000 /* and so often while a source is loaded, which is shown whole if it can be */
#define POLL_SHARE 20 /* polling takes at most one part in that many of the time */

static void on_timer(void *arg);

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
	if (!source->is_users)
		registry_tell(watch->registry, source->index, &faults);
	watch_unsettle(watch);
}

/* Each of the sources, the data directory included; NULL at the end. Start with *at 0. */
static struct watch_source *next_source(const struct watch *watch, size_t *at)
{
	while (*at < watch->count) {
		struct watch_source *source = watch->sources[(*at)++];
		if (source)
			return source;
	}
	return (*at)++ == watch->count ? watch->users : NULL;
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
	size_t at = 0;
	const struct watch_source *source;
	while (!is_needed && (source = next_source(watch, &at)))
		is_needed = needs_poll(source);
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
			watch_mark_dir(watch, dir, 0);
		}
}

static void mark_at_once(struct watch_source *source)
{
	source->changed = true;
	source->unfinished = false;
	source->first_ms = source->last_ms = 0;
}

static void on_poll(void *arg)
{
	struct watch *watch = arg;
	watch->poll_all = !watch->poll_all;
	size_t at = 0;
	struct watch_source *source;
	while ((source = next_source(watch, &at))) {
		if (!needs_poll(source))
			continue;
		if (source->blind || source->refused)
			mark_at_once(source);
		if (source->is_users)
			continue;
		if (watch->poll_all && source->blind)
			watch_queue_all(watch, source, true);
		else if (watch->poll_all)
			queue_refused(watch, source);
	}
	loop_arm_timer(watch->loop, &watch->timer, 0, on_timer, watch);
}

/* ---- the work of one turn */

static bool is_due(uint64_t now_ms, uint64_t first_ms, uint64_t last_ms, bool unfinished)
{
	return now_ms >= last_ms + (unfinished ? UNFINISHED_MS : QUIET_MS) ||
	       now_ms >= first_ms + LATEST_MS;
}

static uint64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void check(struct watch *watch, struct watch_source *source)
{
	if (source->is_users)
		watch_check_users(watch);
	else
		watch_check_source(watch, source);
}

/* There may be very many: goes on where it stopped. Returns whether there is more that is due. */
static bool work_on_sources(struct watch *watch, uint64_t until_ms)
{
	uint64_t now = loop_now_ms(watch->loop);
	for (size_t i = 0; i <= watch->count; i++) {
		size_t at = watch->next_source++ % (watch->count + 1);
		struct watch_source *source = at < watch->count ? watch->sources[at] : watch->users;
		if (!source || !source->changed ||
			!is_due(now, source->first_ms, source->last_ms, source->unfinished))
			continue;
		check(watch, source);
		if (clock_ms() >= until_ms)
			return true;
	}
	return false;
}

/* Returns whether there is more that is due. */
static bool work_on_dirs(struct watch *watch, uint64_t until_ms)
{
	uint64_t now = loop_now_ms(watch->loop);
	for (size_t left = watch->due.count; left > 0; left--) {
		struct watchdir *dir = watchqueue_pop(&watch->due);
		if (!is_due(now, dir->first_ms, dir->last_ms, dir->unfinished))
			watchqueue_push(&watch->due, dir);
		else
			watch_look_at(watch, dir);
		if (clock_ms() >= until_ms)
			return left > 1;
	}
	return false;
}

/* After the snapshot: a tool that is told of is the one that is shown, or a hidden one. */
static void tell_files(struct watch *watch)
{
	struct watchdir *dir;
	while ((dir = watchqueue_pop(&watch->told))) {
		const struct tool *tool =
			registry_tool_in(watch->registry, dir->source->index, dir->name);
		for (size_t i = 0; tool && watch->events->on_file && i < dir->file_count; i++)
			watch->events->on_file(watch->arg, tool, dir->files[i]);
		watchdir_forget_files(dir);
	}
}

bool watch_settle(struct watch *watch)
{
	watch->unsettled = watch->is_entering = false;
	bool is_new = registry_renew(watch->registry);
	if (is_new)
		watch->events->on_snapshot(watch->arg);
	tell_files(watch);
	watch->settled_ms = clock_ms();
	return is_new;
}

static bool has_changed_source(const struct watch *watch)
{
	size_t at = 0;
	const struct watch_source *source;
	while ((source = next_source(watch, &at)))
		if (source->changed)
			return true;
	return false;
}

static void on_timer(void *arg)
{
	struct watch *watch = arg;
	uint64_t start = clock_ms();
	if (watch->notify)
		notify_drain(watch->notify);
	bool is_behind = work_on_sources(watch, start + SLICE_MS);
	is_behind = work_on_dirs(watch, start + SLICE_MS) || is_behind;
	uint64_t now = clock_ms();
	size_t at = 0;
	struct watch_source *source;
	while (!is_behind && (source = next_source(watch, &at)))
		tell_refused(watch, source);
	bool is_late = now >= watch->unsettled_ms + (watch->is_entering ? ENTER_MS : SETTLE_MS);
	bool is_spaced = now >= watch->settled_ms + SPACING_MS;
	if (watch->unsettled && is_spaced && (!is_behind || is_late))
		watch_settle(watch);
	watch->busy_ms += clock_ms() - start;
	arm_poll(watch);
	if (watch->due.count > 0 || watch->unsettled || has_changed_source(watch))
		loop_arm_timer(
			watch->loop, &watch->timer, is_behind ? 0 : TICK_MS, on_timer, watch);
	else if (watch->notify)
		notify_resume(watch->notify);
}

/* ---- what wakes it */

static void on_wake(void *arg)
{
	struct watch *watch = arg;
	notify_drain(watch->notify);
	loop_arm_timer(watch->loop, &watch->timer, TICK_MS, on_timer, watch);
}

static void on_mounts(void *arg)
{
	struct watch *watch = arg;
	bool is_inside = watch->users && watch_users_have_other_mounts(watch);
	size_t at = 0;
	struct watch_source *source;
	while ((source = next_source(watch, &at))) {
		if (source->is_own && !is_inside)
			continue;
		source->look_for_mounts = true;
		watch_mark_source(watch, source, false);
	}
	loop_arm_timer(watch->loop, &watch->timer, TICK_MS, on_timer, watch);
}

/* ---- life */

static const struct notify_events notify_events = { on_wake, watch_hear };

void watch_add_source(struct watch *watch, size_t index)
{
	while (watch->count <= index) {
		watch->sources = xgrow(watch->sources, watch->count, &watch->capacity,
			sizeof(struct watch_source *));
		watch->sources[watch->count++] = NULL;
	}
	struct watch_source *source = xcalloc(1, sizeof(*source));
	*source = (struct watch_source){ .index = index,
		.path = registry_source_path(watch->registry, index),
		.is_own = registry_covered(watch->registry, index).plain > 0,
		.look_for_mounts = watch->users_mounts != 0,
		.changed = true };
	watch->sources[index] = source;
	loop_arm_timer(watch->loop, &watch->timer, 0, on_timer, watch);
}

static void free_source(struct watch *watch, struct watch_source *source)
{
	watch_source_release(source, watch->notify);
	free(source);
}

void watch_remove_source(struct watch *watch, size_t index)
{
	struct watch_source *source = watch->sources[index];
	const struct root *root = registry_root(watch->registry, index);
	if (root)
		map_remove(&watch->by_root, (uint64_t)(uintptr_t)root);
	watch_drop_dirs(watch, source);
	free_source(watch, source);
	watch->sources[index] = NULL;
}

static void watch_data_directory(struct watch *watch)
{
	watch->users = xcalloc(1, sizeof(*watch->users));
	*watch->users = (struct watch_source){
		.path = watch->config.users, .is_users = true, .changed = true
	};
}

struct watch *watch_new(struct loop *loop, struct registry *registry,
	const struct watch_config *config, const struct watch_events *events, void *arg)
{
	struct watch *watch = xcalloc(1, sizeof(*watch));
	*watch = (struct watch){ .loop = loop,
		.registry = registry,
		.config = config ? *config : (struct watch_config){ 0 },
		.events = events,
		.arg = arg };
	if (!watch->config.max)
		watch->config.max = WATCH_MAX;
	if (!watch->config.poll_ms)
		watch->config.poll_ms = WATCH_POLL_MS;
	watchqueue_init(&watch->due, WATCHQUEUE_DUE);
	watchqueue_init(&watch->told, WATCHQUEUE_TOLD);
	struct fail why = FAIL_INIT;
	watch->notify = notify_new(loop, watch->config.max, &notify_events, watch, &why);
	if (!watch->notify)
		log_msg(LOG_LEVEL_WARNING, "%s; changes are seen up to %u ms late", why.text,
			watch->config.poll_ms);
	watch->mounts = mounts_new(loop, on_mounts, watch);
	for (size_t i = 0; i < registry_source_count(registry); i++)
		if (registry_source_path(registry, i))
			watch_add_source(watch, i);
	if (watch->config.users)
		watch_data_directory(watch);
	loop_arm_timer(loop, &watch->timer, 0, on_timer, watch);
	return watch;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	loop_cancel_timer(&watch->timer);
	loop_cancel_timer(&watch->poll_timer);
	size_t at = 0;
	struct watch_source *source;
	while ((source = next_source(watch, &at)))
		free_source(watch, source);
	free(watch->sources);
	map_release(&watch->by_root);
	root_unref(watch->users_root);
	mounts_free(watch->mounts);
	notify_free(watch->notify);
	free(watch);
}

/* ---- questions */

bool watch_sees(const struct watch *watch, const struct tool *tool)
{
	const struct watch_source *source =
		map_get(&watch->by_root, (uint64_t)(uintptr_t)tool->root);
	const struct watchdir *dir = source ? watch_source_find(source, tool->dir_name) : NULL;
	return dir && dir->complete && !dir->rewatch && !source->blind && !source->changed;
}

struct watch_stats watch_stats(const struct watch *watch)
{
	struct watch_stats stats = watch->stats;
	stats.watches = watch->notify ? notify_count(watch->notify) : 0;
	size_t at = 0;
	const struct watch_source *source;
	while ((source = next_source(watch, &at))) {
		stats.dirs += source->dir_count;
		stats.refused += source->refused_count;
		stats.polled += source->blind;
	}
	return stats;
}
