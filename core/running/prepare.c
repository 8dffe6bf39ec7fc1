/*
 * Tools are prepared one after the other by a host of their own, which goes when none is left. It
 * only parses what a tool's author wrote, but that can still take for ever or crash it: then the
 * tool at hand is left out, and the next one gets a new host.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/running/pool.h"

#define TOOL_TIME_MS 20000 /* for one tool, the start of the host included */

struct preparer {
	struct executor *executor; /* borrowed */
	struct host *host;         /* owned; NULL while there is nothing to do */
	bool is_busy;              /* the host has been given the first tool */
	struct loop_timer timer;   /* of the tool at hand */
	struct tool **tools;       /* owned references; the first one is at hand */
	size_t count, capacity;
	struct tool **done; /* owned references, so that no other tool has the same address */
	size_t done_count, done_capacity;
};

static void start(struct preparer *preparer);

static void drop_first(struct preparer *preparer)
{
	tool_unref(preparer->tools[0]);
	preparer->count--;
	memmove(preparer->tools, preparer->tools + 1, preparer->count * sizeof(*preparer->tools));
}

static void on_timer(void *arg)
{
	struct preparer *preparer = arg;
	host_signal(preparer->host, SIGKILL);
}

static void prepare_first(struct preparer *preparer)
{
	const struct tool *tool = preparer->tools[0];
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
			preparer->tools[0]->dir);
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

static bool contains(struct tool *const *tools, size_t count, const struct tool *tool)
{
	for (size_t i = 0; i < count; i++)
		if (tools[i] == tool)
			return true;
	return false;
}

/* Notes that a tool has had its turn, and forgets those that nobody else knows any more. */
static void note_done(struct preparer *preparer, struct tool *tool)
{
	size_t kept = 0;
	for (size_t i = 0; i < preparer->done_count; i++) {
		if (preparer->done[i]->refs > 1)
			preparer->done[kept++] = preparer->done[i];
		else
			tool_unref(preparer->done[i]);
	}
	preparer->done_count = kept;
	preparer->done = xgrow(preparer->done, preparer->done_count, &preparer->done_capacity,
		sizeof(*preparer->done));
	preparer->done[preparer->done_count++] = tool_ref(tool);
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
	if (contains(preparer->done, preparer->done_count, tool))
		return;
	note_done(preparer, tool);
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
	while (preparer->done_count > 0)
		tool_unref(preparer->done[--preparer->done_count]);
	free(preparer->done);
	free(preparer->tools);
	free(preparer);
}
