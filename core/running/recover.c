/* Taking up what an earlier process of this program has left with the keeper: hosts, and their jobs. */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/map.h"
#include "core/running/keeper.h"
#include "core/running/pool.h"

uint64_t recover_code_of(const struct executor *executor, const struct tool *tool)
{
	uint64_t hash = MAP_HASH_SEED;
	for (const char *const *item = executor->config.env; *item; item++)
		hash = map_hash(hash, *item, strlen(*item) + 1);
	if (!tool)
		return hash;
	hash = map_hash(hash, tool->dir, strlen(tool->dir) + 1);
	return map_hash(hash, tool->entry, strlen(tool->entry) + 1);
}

/* The job of a host, as it was; NULL where it cannot be made, or nobody wants it. */
static struct job *make_job(struct executor *executor, const struct kept_host *kept,
	struct tool *tool, const struct executor_heirs *heirs, void *arg)
{
	const struct job_events *events;
	void *job_arg;
	if (!heirs->find_job(arg, kept->tag, &events, &job_arg))
		return NULL;
	auto_json json_t *secrets = kept->secrets_len
					    ? json_loadb(kept->secrets, kept->secrets_len, 0, NULL)
					    : json_object();
	struct fail why = FAIL_INIT;
	const struct job_request request = { .call_id = kept->id,
		.tool = tool,
		.params = secrets,
		.who = &kept->who,
		.tag = kept->tag };
	struct job *job = secrets ? job_new(&request, events, job_arg, &why) : NULL;
	if (!job)
		return NULL;
	job_forget_params(job); /* these are only the sensitive ones */
	job->serial = executor->next_serial++;
	job->executor = executor;
	job->pool = schedule_pool(executor, tool, &kept->who);
	job->started = kept->started;
	job->progress_left = (size_t)kept->progress_left;
	heirs->on_job(job_arg, job);
	return job;
}

static void lose_call(
	uint64_t tag, const struct executor_heirs *heirs, void *arg, const char *reason)
{
	if (tag == 0)
		return;
	log_msg(LOG_LEVEL_WARNING, "what became of a call cannot be known: %s", reason);
	heirs->on_lost(arg, tag);
}

static void end_host(struct worker *worker)
{
	worker_dismiss(worker);
	host_signal(worker->host, SIGKILL);
}

/* The call goes on, with the time that it has left. */
static void resume_job(struct worker *worker, struct job *job)
{
	const struct kept_host *kept = host_kept(worker->host);
	int64_t left_ms = kept->due_ms - (int64_t)loop_now_ms(job->pool->executor->loop);
	bool aborted = kept->aborted;
	job->worker = worker;
	worker->job = job;
	job->timeout_ms = left_ms > 0 ? (unsigned)left_ms : 1;
	executor_resume(job);
	if (aborted)
		executor_cancel(job);
}

/* Gives a host of a tool its place, and its job, if somebody still wants it. */
static void take_up_of_tool(struct executor *executor, struct worker *worker, struct tool *tool,
	const struct executor_heirs *heirs, void *arg)
{
	const struct kept_host *kept = host_kept(worker->host);
	bool can_hide = kept->secrets_len <= KEEPER_SECRETS_MAX;
	struct job *job = kept->tag && can_hide ? make_job(executor, kept, tool, heirs, arg) : NULL;
	worker->pool = schedule_pool(executor, tool, &worker->who);
	worker->pool->worker_count++;
	if (!can_hide)
		lose_call(kept->tag, heirs, arg, "it has more sensitive values than can be kept");
	if (job)
		resume_job(worker, job);
	else if (host_get_state(worker->host) == HOST_BUSY)
		end_host(worker);
}

static void take_up(
	struct executor *executor, size_t slot, const struct executor_heirs *heirs, void *arg)
{
	const struct keeper *keeper = executor->config.keeper;
	bool used;
	struct kept_host *kept = keeper->get(keeper->arg, slot, &used);
	const uint64_t tag = kept->tag;
	kept->tool[KEEPER_NAME_MAX - 1] = '\0';
	kept->id[CALL_ID_MAX] = '\0';
	const bool is_spare = !kept->tool[0];
	struct tool *tool = is_spare ? NULL : heirs->find_tool(arg, kept->tool);
	struct fail why = FAIL_INIT;
	struct worker *worker = worker_adopt(executor, slot, &why);
	if (!worker) {
		lose_call(tag, heirs, arg, why.text);
		return;
	}
	worker->outdated = kept->code != recover_code_of(executor, tool);
	if (tool)
		take_up_of_tool(executor, worker, tool, heirs, arg);
	if ((!is_spare && !tool) || (worker->outdated && !worker->job))
		end_host(worker); /* its tool is gone, or another one */
}

void executor_recover(struct executor *executor, const struct executor_heirs *heirs, void *arg)
{
	const struct keeper *keeper = executor->config.keeper;
	for (size_t slot = 0; keeper && slot < keeper->count; slot++) {
		bool used;
		keeper->get(keeper->arg, slot, &used);
		if (used)
			take_up(executor, slot, heirs, arg);
	}
}
