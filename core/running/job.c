#include "core/running/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

struct job_step job_step(enum job_state state, enum job_event event)
{
	/* clang-format off */
#define STAY(state_) { state_, JOB_DO_NOTHING }
#define OVER { JOB_OVER, JOB_DO_END }
	/* clang-format on */
	/* What cannot happen in a state changes nothing. A job that is being stopped is never given to
	   another host, and ends with whatever comes first: an answer, or the end of its host. */
	static const struct job_step table[JOB_STATES][JOB_EVENTS] = {
		[JOB_WAITING] = {
			[JOB_ON_GIVE] = { JOB_RUNNING, JOB_DO_START },
			[JOB_ON_CANCEL] = OVER,
			[JOB_ON_EXPIRY] = STAY(JOB_WAITING),
			[JOB_ON_ANSWER] = STAY(JOB_WAITING),
			[JOB_ON_LOST] = OVER,
			[JOB_ON_RETRY] = STAY(JOB_WAITING),
		},
		[JOB_RUNNING] = {
			[JOB_ON_GIVE] = STAY(JOB_RUNNING),
			[JOB_ON_CANCEL] = { JOB_ABORTING, JOB_DO_ABORT },
			[JOB_ON_EXPIRY] = { JOB_ABORTING, JOB_DO_ABORT },
			[JOB_ON_ANSWER] = OVER,
			[JOB_ON_LOST] = OVER,
			[JOB_ON_RETRY] = { JOB_WAITING, JOB_DO_REQUEUE },
		},
		[JOB_ABORTING] = {
			[JOB_ON_GIVE] = STAY(JOB_ABORTING),
			[JOB_ON_CANCEL] = STAY(JOB_ABORTING),
			[JOB_ON_EXPIRY] = { JOB_TERMINATING, JOB_DO_TERMINATE },
			[JOB_ON_ANSWER] = OVER,
			[JOB_ON_LOST] = OVER,
			[JOB_ON_RETRY] = OVER,
		},
		[JOB_TERMINATING] = {
			[JOB_ON_GIVE] = STAY(JOB_TERMINATING),
			[JOB_ON_CANCEL] = STAY(JOB_TERMINATING),
			[JOB_ON_EXPIRY] = { JOB_KILLING, JOB_DO_KILL },
			[JOB_ON_ANSWER] = OVER,
			[JOB_ON_LOST] = OVER,
			[JOB_ON_RETRY] = OVER,
		},
		[JOB_KILLING] = {
			[JOB_ON_GIVE] = STAY(JOB_KILLING),
			[JOB_ON_CANCEL] = STAY(JOB_KILLING),
			/* Stuck in the kernel: the caller is not kept waiting for that. */
			[JOB_ON_EXPIRY] = OVER,
			[JOB_ON_ANSWER] = OVER,
			[JOB_ON_LOST] = OVER,
			[JOB_ON_RETRY] = OVER,
		},
		[JOB_OVER] = {
			[JOB_ON_GIVE] = STAY(JOB_OVER),
			[JOB_ON_CANCEL] = STAY(JOB_OVER),
			[JOB_ON_EXPIRY] = STAY(JOB_OVER),
			[JOB_ON_ANSWER] = STAY(JOB_OVER),
			[JOB_ON_LOST] = STAY(JOB_OVER),
			[JOB_ON_RETRY] = STAY(JOB_OVER),
		},
	};
#undef STAY
#undef OVER
	_Static_assert(sizeof(table) / sizeof(table[0]) == JOB_STATES, "a row for each state");
	_Static_assert(sizeof(table[0]) / sizeof(table[0][0]) == 6, "a column for each event");
	return table[state][event];
}

/* Those parameters that are sensitive, as JSON; NULL where there are none. */
static char *pick_secrets(const struct tool *tool, const json_t *params)
{
	auto_json json_t *picked = json_object();
	for (size_t i = 0; i < tool->input_count; i++) {
		json_t *value = json_object_get(params, tool->inputs[i].name);
		if (tool->inputs[i].sensitive && value)
			json_object_set(picked, tool->inputs[i].name, value);
	}
	return json_object_size(picked) > 0 ? json_dumps(picked, JSON_COMPACT) : NULL;
}

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

struct job *job_new(const struct job_request *request, const struct job_events *events, void *arg,
	struct fail *why)
{
	char *params = json_dumps(request->params, JSON_COMPACT);
	if (!params) {
		fail_set(why, -ENOMEM, "no memory for the parameters");
		return NULL;
	}
	struct job *job = xcalloc(1, sizeof(*job));
	job->tool = tool_ref(request->tool);
	job->id = xstrdup(request->call_id);
	job->params = params;
	job->tag = request->tag;
	job->tid = request->tid;
	job->secrets = pick_secrets(request->tool, request->params);
	job->scrub = scrub_new(request->tool, request->params);
	job->events = events;
	job->arg = arg;
	job->nested = request->nested;
	job->timeout_ms = request->timeout_ms ? request->timeout_ms : request->tool->timeout_ms;
	return job;
}

#define OUTPUT_STEP_MAX ((size_t)64 * 1024 * 1024) /* far above what comes in one step */

void job_output(struct job *job, const char *bytes, size_t len)
{
	if (!job->scrub) {
		job->events->on_output(job->arg, bytes, len);
		return;
	}
	struct buf out = BUF_INIT(OUTPUT_STEP_MAX);
	scrub_stream(job->scrub, bytes, len, &out);
	if (out.len > 0)
		job->events->on_output(job->arg, out.data, out.len);
	buf_release(&out);
}

void job_flush_output(struct job *job)
{
	struct buf out = BUF_INIT(OUTPUT_STEP_MAX);
	scrub_flush(job->scrub, &out);
	if (out.len > 0)
		job->events->on_output(job->arg, out.data, out.len);
	buf_release(&out);
}

void job_forget_params(struct job *job)
{
	wipe(&job->params);
}

void job_free(struct job *job)
{
	if (!job)
		return;
	loop_cancel_timer(&job->timer);
	job_forget_params(job);
	wipe(&job->secrets);
	scrub_free(job->scrub);
	result_release(&job->result);
	tool_unref(job->tool);
	free(job->id);
	free(job);
}
