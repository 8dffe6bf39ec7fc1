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

uint64_t recover_code_of(
	const struct executor *executor, const struct tool *tool, const struct identity *who)
{
	uint64_t hash = MAP_HASH_SEED;
	for (const char *const *item = executor_env_of(executor, tool, who); *item; item++)
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

static void lose_call(const struct executor *executor, uint64_t tag,
	const struct executor_heirs *heirs, void *arg, const char *reason)
{
	const struct keeper *keeper = executor->config.keeper;
	if (tag == 0)
		return;
	keeper->let_go(keeper->arg, tag); /* else it would wait there for ever */
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
	worker->has_env = true; /* it was told with the first call, at the latest */
	worker->pool->worker_count++;
	if (!can_hide)
		lose_call(executor, kept->tag, heirs, arg,
			"it has more sensitive values than can be kept");
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
	kept->tool[TOOL_KEY_MAX - 1] = '\0';
	kept->id[CALL_ID_MAX] = '\0';
	if (kept->who.group_count > IDENTITY_GROUPS_MAX)
		kept->who.group_count = 0; /* never more rights than it had */
	const bool is_spare = !kept->tool[0];
	struct tool *tool = is_spare ? NULL : heirs->find_tool(arg, kept->tool);
	struct fail why = FAIL_INIT;
	struct worker *worker = worker_adopt(executor, slot, &why);
	if (!worker) {
		lose_call(executor, tag, heirs, arg, why.text);
		return;
	}
	worker->outdated = kept->code != recover_code_of(executor, tool, &worker->who);
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

/* ---- jobs that wait */

#define PUT_BY_MAX ((size_t)8 << 20)

/* What is put by: this, and behind it the parameters as JSON. */
struct waiting {
	struct identity who;
	pid_t tid; /* it waits still, or its place is another one by now */
	unsigned timeout_ms;
	bool nested;
};

void recover_put_by(const struct job *job)
{
	const struct keeper *keeper = job->executor->config.keeper;
	if (!keeper || !job->params)
		return;
	const struct waiting waiting = { .who = job->pool->who,
		.tid = job->tid,
		.timeout_ms = job->timeout_ms,
		.nested = job->nested };
	auto_buf struct buf bytes = BUF_INIT(PUT_BY_MAX);
	buf_append(&bytes, (const char *)&waiting, sizeof(waiting));
	buf_puts(&bytes, job->params);
	int result = bytes.failed ? bytes.failed
				  : keeper->put_by(keeper->arg, job->tag, bytes.data, bytes.len);
	if (bytes.data)
		explicit_bzero(bytes.data, bytes.len);
	if (result < 0)
		log_msg(LOG_LEVEL_INFO, "a call that waits would not survive the server: %s",
			strerror(-result));
}

void recover_let_go(const struct job *job)
{
	const struct keeper *keeper = job->executor->config.keeper;
	if (keeper && job->tag)
		keeper->let_go(keeper->arg, job->tag);
}

struct job *executor_resubmit(struct executor *executor, uint64_t tag, struct tool *tool,
	const char *call_id, const struct job_events *events, void *arg, struct fail *why)
{
	const struct keeper *keeper = executor->config.keeper;
	struct waiting waiting;
	auto_buf struct buf bytes = BUF_INIT(PUT_BY_MAX);
	int result = keeper ? keeper->fetch(keeper->arg, tag, &bytes) : -ENOENT;
	if (result < 0 || bytes.len < sizeof(waiting)) {
		fail_set(why, result < 0 ? result : -EPROTO, "it was not put by");
		return NULL;
	}
	memcpy(&waiting, bytes.data, sizeof(waiting));
	auto_json json_t *params = json_loadb(
		bytes.data + sizeof(waiting), bytes.len - sizeof(waiting), JSON_ALLOW_NUL, NULL);
	explicit_bzero(bytes.data, bytes.len);
	if (!params) {
		fail_set(why, -EPROTO, "what was put by cannot be read");
		return NULL;
	}
	const struct job_request request = { .call_id = call_id,
		.tool = tool,
		.params = params,
		.who = &waiting.who,
		.tid = waiting.tid,
		.timeout_ms = waiting.timeout_ms,
		.tag = tag,
		.nested = waiting.nested };
	return executor_submit(executor, &request, events, arg, why);
}
