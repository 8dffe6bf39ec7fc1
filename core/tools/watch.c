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
	registry_tell(watch->registry, source->index, &faults);
	watch_unsettle(watch);
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
			watch_mark_dir(watch, dir, 0);
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
			watch_check_source(watch, source);
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

static void work_on_sources(struct watch *watch)
{
	uint64_t now = loop_now_ms(watch->loop);
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_source *source = &watch->sources[i];
		if (source->changed &&
			is_due(now, source->first_ms, source->last_ms, source->unfinished))
			watch_check_source(watch, source);
	}
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

void watch_settle(struct watch *watch)
{
	watch->unsettled = watch->is_entering = false;
	if (registry_renew(watch->registry))
		watch->events->on_snapshot(watch->arg);
	tell_files(watch);
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
	for (size_t i = 0; i < watch->count; i++) {
		watch_mark_source(watch, &watch->sources[i], false);
	}
	loop_arm_timer(watch->loop, &watch->timer, TICK_MS, on_timer, watch);
}

/* ---- life */

static const struct notify_events notify_events = { on_wake, watch_hear };

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
	watchqueue_init(&watch->due, WATCHQUEUE_DUE);
	watchqueue_init(&watch->told, WATCHQUEUE_TOLD);
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
