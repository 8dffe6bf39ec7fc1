/*
 * A call without a mount: an executor of our own, for one job, with the limits that a mount has
 * unless it is told others.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/cmd/callorder.h"
#include "core/cmd/ownhosts.h"
#include "core/tools/params.h"

struct directcall {
	const struct callorder *order;   /* borrowed */
	struct callorder_answer *answer; /* borrowed */
	struct loop *loop;               /* owned */
	struct ownhosts hosts;           /* owned */
	struct job *job; /* borrowed from the executor; NULL: none, or it has ended */
	int signal;
};

/* ---- events of the job */

static void on_start(void *arg, pid_t host_pid)
{
	(void)arg, (void)host_pid;
}

static void on_progress(void *arg, const char *json, size_t len)
{
	struct directcall *call = arg;
	if (call->order->on_progress)
		call->order->on_progress(call->order->arg, json, len);
}

static void on_output(void *arg, const char *bytes, size_t len)
{
	struct directcall *call = arg;
	if (call->order->on_output)
		call->order->on_output(call->order->arg, bytes, len);
}

static void on_end(void *arg, enum job_end end, struct result *result)
{
	struct directcall *call = arg;
	call->job = NULL;
	call->answer->result = *result;
	call->answer->end = end == JOB_DONE ? CALLORDER_DONE : CALLORDER_FAILED;
	loop_stop(call->loop, 0);
}

static const struct job_events job_events = {
	.on_start = on_start, .on_progress = on_progress, .on_output = on_output, .on_end = on_end
};

static void on_signal(void *arg, int signal)
{
	struct directcall *call = arg;
	bool again = call->signal != 0;
	call->signal = signal;
	if (again || !call->job)
		loop_stop(call->loop, -ECANCELED);
	else
		executor_cancel(call->job);
}

/* ---- making it */

static void refuse(struct directcall *call, const struct fail *refused)
{
	result_from_error(&call->answer->result, "%s", refused->text);
	call->answer->end = CALLORDER_REFUSED;
}

/* The parameters, a new reference; NULL where they were refused, which is an answer. */
static json_t *read_params(struct directcall *call, const struct tool *tool)
{
	struct fail refused = FAIL_INIT;
	const struct buf *request = call->order->request;
	auto_buf struct buf notes = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *given = params_parse(buf_str(request), request->len, &refused);
	json_t *params = given ? params_check(tool, given, &notes, &refused) : NULL;
	if (!params)
		refuse(call, &refused);
	else if (call->order->on_output && notes.len > 0)
		call->order->on_output(call->order->arg, notes.data, notes.len);
	return params;
}

static int run_job(
	struct directcall *call, struct tool *tool, const json_t *params, struct fail *why)
{
	struct identity self;
	identity_self(&self);
	const struct job_request request = {
		.call_id = "call", .tool = tool, .params = params, .who = &self
	};
	call->loop = loop_new(why);
	if (!call->loop ||
		ownhosts_start(&call->hosts, call->loop, "call", call->order->tree->tools, why) <
			0 ||
		callorder_watch_signals(call->loop, on_signal, call, why) < 0)
		return why->code;
	call->job = executor_submit(call->hosts.executor, &request, &job_events, call, why);
	if (!call->job)
		return why->code;
	int result = loop_run(call->loop);
	if (result == -ECANCELED)
		return fail_set(why, result, "the call was left before its end");
	return result < 0 ? fail_set(why, result, "waiting for the tool: %s", strerror(-result))
			  : 0;
}

static void release(struct directcall *call)
{
	ownhosts_release(&call->hosts);
	loop_free(call->loop);
}

int calldirect_run(const struct callorder *order, struct callorder_answer *answer, struct fail *why)
{
	struct directcall call = { .order = order, .answer = answer };
	struct snapshot *all = registry_current(order->tree->registry);
	struct tool *tool = snapshot_find(all, order->tool);
	if (!tool)
		return tree_no_tool(order->tree, order->tool, why);
	auto_json json_t *params = read_params(&call, tool);
	if (params)
		run_job(&call, tool, params, why);
	answer->signal = call.signal;
	release(&call);
	return why->code;
}
