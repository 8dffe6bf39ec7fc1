/*
 * Tools are prepared one after the other by a host of their own, which goes when none is left. It
 * only parses what a tool's author wrote, but that can still take for ever or crash it: then the
 * tool at hand is left out, and the next one gets a new host.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"
#include "core/running/pool.h"

#define DONE_LOOK_LEAST 64
#define TOOL_TIME_MS 20000 /* for one tool, the start of the host included */

struct preparer {
	struct executor *executor; /* borrowed */
	struct host *host;         /* owned; NULL while there is nothing to do */
	bool is_busy;              /* the host has been given the first tool */
	struct loop_timer timer;   /* of the tool at hand */
	struct tool **tools;       /* owned references, from first to count; that one is at hand */
	size_t first, count, capacity;
	struct map
		done; /* address -> owned reference, so that no other tool has the same address */
	size_t done_look; /* with so many, those that are gone are looked for */
};

static void start(struct preparer *preparer);

static void drop_first(struct preparer *preparer)
{
	tool_unref(preparer->tools[preparer->first++]);
	if (preparer->first < preparer->count)
		return;
	preparer->first = preparer->count = 0;
}

static void on_timer(void *arg)
{
	struct preparer *preparer = arg;
	host_signal(preparer->host, SIGKILL);
}

static void prepare_first(struct preparer *preparer)
{
	const struct tool *tool = preparer->tools[preparer->first];
	preparer->is_busy = true;
	host_prepare(preparer->host, tool->dir, tool->entry);
	loop_arm_timer(
		preparer->executor->loop, &preparer->timer, TOOL_TIME_MS, on_timer, preparer);
}

static void on_message(void *arg, const struct wire_message *message)
{
	struct preparer *preparer = arg;
	if (message->type != WIRE_PREPARED || !preparer->is_busy)
		return;
	preparer->is_busy = false;
	loop_cancel_timer(&preparer->timer);
	drop_first(preparer);
	if (preparer->count > 0)
		prepare_first(preparer);
	else
		host_dismiss(preparer->host);
}

static void on_output(void *arg, const char *bytes, size_t len)
{
	(void)arg, (void)bytes, (void)len;
}

static void on_idle(void *arg)
{
	(void)arg;
}

static void on_gone(void *arg)
{
	struct preparer *preparer = arg;
	loop_cancel_timer(&preparer->timer);
	host_free(preparer->host);
	preparer->host = NULL;
	if (preparer->is_busy) {
		preparer->is_busy = false;
		log_msg(LOG_LEVEL_INFO, "'%s' could not be prepared; its first call takes longer",
			preparer->tools[preparer->first]->dir);
		drop_first(preparer);
	}
	start(preparer);
}

static const struct host_events events = {
	.on_message = on_message, .on_output = on_output, .on_idle = on_idle, .on_gone = on_gone
};

static void start(struct preparer *preparer)
{
	if (preparer->host || preparer->count == 0)
		return;
	struct identity self;
	identity_self(&self);
	struct fail why = FAIL_INIT;
	preparer->host = worker_start_host(
		preparer->executor, &self, RUNTIME_NODE, NULL, &events, preparer, &why);
	if (preparer->host) {
		prepare_first(preparer);
		return;
	}
	log_msg(LOG_LEVEL_WARNING, "tools are not prepared for their first call: %s", why.text);
	while (preparer->count > 0)
		drop_first(preparer);
}

/* Lets go of those that have at most refs_max references. */
static void forget_done(struct map *done, size_t refs_max)
{
	struct map kept = MAP_INIT;
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(done, &at))) {
		struct tool *tool = slot->value;
		if (tool->refs > refs_max)
			map_put(&kept, slot->key, tool);
		else
			tool_unref(tool);
	}
	map_release(done);
	*done = kept;
}

/* Whether it has had its turn. Forgets those that nobody else knows any more, once there are many. */
static bool is_done(struct preparer *preparer, struct tool *tool)
{
	struct map *done = &preparer->done;
	if (map_get(done, (uintptr_t)tool))
		return true;
	if (done->count >= preparer->done_look) {
		forget_done(done, 1);
		preparer->done_look = done->count * 2 + DONE_LOOK_LEAST;
	}
	map_put(done, (uintptr_t)tool, tool_ref(tool));
	return false;
}

static bool is_translated(const struct tool *tool)
{
	const char *dot = strrchr(tool->entry, '.');
	return dot && (strcmp(dot, ".ts") == 0 || strcmp(dot, ".js") == 0);
}

void executor_prepare(struct executor *executor, struct tool *tool)
{
	if (!is_translated(tool))
		return;
	if (!executor->preparer) {
		executor->preparer = xcalloc(1, sizeof(*executor->preparer));
		executor->preparer->executor = executor;
	}
	struct preparer *preparer = executor->preparer;
	if (is_done(preparer, tool))
		return;
	preparer->tools = xgrow(
		preparer->tools, preparer->count, &preparer->capacity, sizeof(*preparer->tools));
	preparer->tools[preparer->count++] = tool_ref(tool);
	start(preparer);
}

void prepare_free(struct preparer *preparer)
{
	if (!preparer)
		return;
	loop_cancel_timer(&preparer->timer);
	host_free(preparer->host);
	while (preparer->count > 0)
		drop_first(preparer);
	forget_done(&preparer->done, SIZE_MAX);
	map_release(&preparer->done); /* empty */
	free(preparer->tools);
	free(preparer);
}
