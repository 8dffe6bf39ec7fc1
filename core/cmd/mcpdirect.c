/* Tool directories, watched, with hosts of our own that stay warm as long as the client is there. */
#include <stdlib.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/mcprunner.h"
#include "core/cmd/ownhosts.h"
#include "core/tools/params.h"
#include "core/tools/watch.h"

struct mcprunner {
	struct tree *tree; /* borrowed */
	void (*on_change)(void *arg);
	void *arg;
	struct ownhosts hosts; /* owned */
	struct watch *watch;   /* owned */
	struct mcprun *runs;   /* owned */
	uint64_t last_id;
};

struct mcprun {
	struct mcprun *next, **link; /* of runner->runs */
	const struct mcprun_events *events;
	void *arg;
	struct job *job; /* borrowed from the executor */
};

static void free_run(struct mcprun *run)
{
	*run->link = run->next;
	if (run->next)
		run->next->link = run->link;
	free(run);
}

static void on_start(void *arg, pid_t host_pid)
{
	(void)arg, (void)host_pid;
}

static void on_progress(void *arg, const char *json, size_t len)
{
	struct mcprun *run = arg;
	run->events->on_progress(run->arg, json, len);
}

static void on_output(void *arg, const char *bytes, size_t len)
{
	struct mcprun *run = arg;
	run->events->on_output(run->arg, bytes, len);
}

static void on_end(void *arg, enum job_end end, struct result *result)
{
	struct mcprun *run = arg;
	(void)end; /* the result says it */
	run->events->on_end(run->arg, result);
	free_run(run);
}

static const struct job_events job_events = {
	.on_start = on_start, .on_progress = on_progress, .on_output = on_output, .on_end = on_end
};

static void on_snapshot(void *arg)
{
	const struct mcprunner *runner = arg;
	runner->on_change(runner->arg);
}

static const struct watch_events watch_events = { .on_snapshot = on_snapshot };

static void release(struct mcprunner *runner)
{
	if (!runner)
		return;
	ownhosts_release(&runner->hosts);
	watch_free(runner->watch);
	while (runner->runs)
		free_run(runner->runs);
	free(runner);
}

static struct mcprunner *make(struct loop *loop, struct tree *tree, void (*on_change)(void *arg),
	void *arg, struct fail *why)
{
	struct mcprunner *runner = xcalloc(1, sizeof(*runner));
	*runner = (struct mcprunner){ .tree = tree, .on_change = on_change, .arg = arg };
	if (ownhosts_start(&runner->hosts, loop, "mcp", tree->tools, why) < 0) {
		release(runner);
		return NULL;
	}
	runner->watch = watch_new(loop, tree->registry, NULL, &watch_events, runner);
	return runner;
}

static json_t *list(struct mcprunner *runner, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(runner->tree, TREE_TOOLS_JSON, NULL, &text, why) < 0)
		return NULL;
	return json_loadb(buf_str(&text), text.len, 0, NULL);
}

static json_t *read_params(const struct tool *tool, const struct buf *request,
	const struct mcprun_events *events, void *arg, struct fail *why)
{
	auto_buf struct buf notes = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *given = params_parse(buf_str(request), request->len, why);
	json_t *params = given ? params_check(tool, given, &notes, why) : NULL;
	if (params && notes.len > 0)
		events->on_output(arg, notes.data, notes.len);
	return params;
}

static struct mcprun *start(struct mcprunner *runner, const char *name, const struct buf *request,
	const struct mcprun_events *events, void *arg, struct fail *why)
{
	struct tool *tool = snapshot_find(registry_current(runner->tree->registry), name);
	if (!tool) {
		tree_no_tool(runner->tree, name, why);
		return NULL;
	}
	auto_json json_t *params = read_params(tool, request, events, arg, why);
	if (!params)
		return NULL;
	struct identity self;
	identity_self(&self);
	auto_free char *id = xasprintf("mcp-%ju", (uintmax_t)++runner->last_id);
	const struct job_request order = {
		.call_id = id, .tool = tool, .params = params, .who = &self
	};
	struct mcprun *run = xcalloc(1, sizeof(*run));
	*run = (struct mcprun){
		.next = runner->runs, .link = &runner->runs, .events = events, .arg = arg
	};
	if (run->next)
		run->next->link = &run->next;
	runner->runs = run;
	run->job = executor_submit(runner->hosts.executor, &order, &job_events, run, why);
	if (run->job)
		return run;
	free_run(run);
	return NULL;
}

static void cancel(struct mcprun *run)
{
	executor_cancel(run->job);
}

const struct mcprunner_kind mcpdirect = {
	.make = make, .release = release, .list = list, .start = start, .cancel = cancel
};
