#include "core/running/executor.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/pool.h"
#include "core/running/program.h"
#include "core/tools/owner.h"

void executor_config_defaults(struct executor_config *config)
{
	*config = (struct executor_config){
		.hosts_max = 16,
		.hosts_per_tool = 8,
		.queue_max = 4096,
		.queue_per_uid = 2048,
		.spares = 1,
		.timeout_ms = 600 * 1000,
		.grace_ms = 1000,
		.idle_ms = 300 * 1000,
		.memory_max = (uint64_t)4 << 30,
		.processes_max = 512,
		.files_max = 1024,
		.result_max = (size_t)64 << 20,
		.output_max = (size_t)4 << 20,
		.progress_max = (size_t)4 << 20,
	};
}

/* ---- making and freeing */

static void free_env(struct executor *executor)
{
	for (char **at = executor->env; at && *at; at++)
		free(*at);
	free(executor->env);
	executor->env = NULL;
}

static void copy_env(struct executor *executor, const char *const *env)
{
	size_t count = 0;
	while (env[count])
		count++;
	executor->env = xcalloc(count + 1, sizeof(*executor->env));
	for (size_t i = 0; i < count; i++)
		executor->env[i] = xstrdup(env[i]);
	executor->config.env = (const char *const *)executor->env;
}

static void copy_config(struct executor *executor, const struct executor_config *given)
{
	struct executor_config defaults;
	executor_config_defaults(&defaults);
	struct executor_config *config = &executor->config;
	*config = *given;
#define DEFAULT(field) config->field = given->field ? given->field : defaults.field
	DEFAULT(hosts_max);
	DEFAULT(hosts_per_tool);
	DEFAULT(queue_max);
	DEFAULT(queue_per_uid);
	DEFAULT(timeout_ms);
	DEFAULT(grace_ms);
	DEFAULT(idle_ms);
	DEFAULT(files_max);
	DEFAULT(result_max);
	DEFAULT(output_max);
	DEFAULT(progress_max);
#undef DEFAULT
	copy_env(executor, given->env);
	config->lib_dir = executor->lib_dir = xstrdup(given->lib_dir);
	config->state_dir = executor->state_dir = xstrdup(given->state_dir);
	if (given->shown_at)
		config->shown_at = executor->shown_at = xstrdup(given->shown_at);
}

void executor_set_env(struct executor *executor, const char *const *env)
{
	free_env(executor);
	copy_env(executor, env);
	for (struct worker *worker = executor->workers; worker; worker = worker->next) {
		worker->outdated = true;
		if (worker_is_free(worker))
			worker_dismiss(worker);
	}
}

void executor_outdate(struct executor *executor, const struct owner *owner)
{
	for (struct worker *worker = executor->workers; worker; worker = worker->next) {
		if (!worker->pool || worker->pool->tool->owner != owner)
			continue;
		worker->outdated = true;
		if (worker_is_free(worker))
			worker_dismiss(worker);
	}
}

const char *const *executor_env_of(
	const struct executor *executor, const struct tool *tool, const struct identity *who)
{
	const struct owner *owner = tool ? tool->owner : NULL;
	if (!owner || !owner->env)
		return executor->config.env;
	bool is_there = elsewhere_is_for(executor, who);
	return (const char *const *)(is_there ? owner->env_there : owner->env);
}

static void find_programs(struct executor *executor)
{
	executor->warden = xasprintf("%s/host/warden/warden", executor->config.lib_dir);
	static const char *const programs[RUNTIMES] = { "node", "python3" };
	static const char *const scripts[RUNTIMES] = { "node/host.mjs", "python/host.py" };
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct fail why = FAIL_INIT; /* told to those who call a tool that needs it */
		executor->programs[i] = program_find(programs[i], executor->config.env, &why);
		executor->scripts[i] =
			xasprintf("%s/host/%s", executor->config.lib_dir, scripts[i]);
	}
}

struct executor *executor_new(
	struct loop *loop, const struct executor_config *config, struct fail *why)
{
	struct executor *executor = xcalloc(1, sizeof(*executor));
	executor->loop = loop;
	executor->ended_last = &executor->ended;
	copy_config(executor, config);
	find_programs(executor);
	if (executor->config.sandbox != SANDBOX_NONE) {
		executor->bwrap = program_find("bwrap", executor->config.env, why);
		if (!executor->bwrap) {
			executor_free(executor);
			return NULL;
		}
	}
	const char *missing = access(executor->warden, X_OK) < 0 ? executor->warden : NULL;
	if (access(executor->scripts[RUNTIME_NODE], R_OK) < 0)
		missing = executor->scripts[RUNTIME_NODE];
	if (missing) {
		fail_errno(why, "cannot use '%s': is pegfs installed completely?", missing);
		executor_free(executor);
		return NULL;
	}
	identity_self(&executor->spare_who);
	if (executor->programs[RUNTIME_NODE])
		worker_keep_spares(executor, 0);
	return executor;
}

static void free_jobs(struct job *job)
{
	while (job) {
		struct job *next = job->next;
		job_free(job);
		job = next;
	}
}

void executor_free(struct executor *executor)
{
	if (!executor)
		return;
	prepare_free(executor->preparer);
	while (executor->workers) {
		job_free(executor->workers->job);
		worker_free(executor->workers);
	}
	for (struct pool *pool = executor->pools; pool; pool = pool->next) {
		free_jobs(pool->first);
		pool->first = NULL;
	}
	schedule_drop_empty(executor);
	free_jobs(executor->ended);
	loop_cancel_timer(&executor->end_timer);
	loop_cancel_timer(&executor->schedule_timer);
	loop_cancel_timer(&executor->spare_timer);
	for (size_t i = 0; i < RUNTIMES; i++) {
		free(executor->programs[i]);
		free(executor->scripts[i]);
	}
	free_env(executor);
	free(executor->warden);
	free(executor->bwrap);
	free(executor->lib_dir);
	free(executor->state_dir);
	free(executor->shown_at);
	free(executor->shares);
	free(executor);
}

struct share *executor_share(struct executor *executor, const struct identity *who)
{
	struct share *unused = NULL;
	for (size_t i = 0; i < executor->share_count; i++) {
		struct share *share = &executor->shares[i];
		if (share->uid == who->uid && share->tenant == who->place.tenant)
			return share;
		if (share->waiting == 0 && share->running == 0)
			unused = share;
	}
	if (unused) {
		unused->uid = who->uid;
		unused->tenant = who->place.tenant;
		return unused;
	}
	executor->shares = xgrow(executor->shares, executor->share_count, &executor->share_capacity,
		sizeof(*executor->shares));
	executor->shares[executor->share_count] =
		(struct share){ .uid = who->uid, .tenant = who->place.tenant };
	return &executor->shares[executor->share_count++];
}

/* ---- jobs: what their table asks for */

void executor_set_failure(struct job *job, enum job_end end, const char *text)
{
	auto_buf struct buf scrubbed = BUF_INIT((size_t)-1 / 2);
	scrub_text(job->scrub, text, strlen(text), &scrubbed);
	result_release(&job->result);
	result_from_error(&job->result, "%s", buf_str(&scrubbed));
	job->end = end;
}

static void on_timer(void *arg)
{
	executor_post(arg, JOB_ON_EXPIRY);
}

static void arm(struct job *job, unsigned delay_ms)
{
	loop_arm_timer(job->executor->loop, &job->timer, delay_ms, on_timer, job);
}

static void start(struct job *job)
{
	struct executor *executor = job->executor;
	executor->running++;
	executor_share(executor, &job->pool->who)->running++;
	/* A tool's own limit may be lower, never higher. */
	unsigned longest_ms = executor->config.timeout_ms;
	if (job->timeout_ms == 0 || job->timeout_ms > longest_ms)
		job->timeout_ms = longest_ms;
	job->progress_left = executor->config.progress_max;
	arm(job, job->timeout_ms);
	if (worker_give(job->worker, job) == 0)
		return;
	struct worker *worker = job->worker;
	executor_set_failure(job, JOB_CRASHED, "There is no memory to hand the call to its tool.");
	executor_post(job, JOB_ON_LOST);
	host_signal(worker->host, SIGKILL);
}

void executor_begin(struct job *job)
{
	if (job->state == JOB_RUNNING)
		arm(job, job->timeout_ms);
}

void executor_resume(struct job *job)
{
	struct executor *executor = job->pool->executor;
	job->state = JOB_RUNNING;
	executor->running++;
	executor_share(executor, &job->pool->who)->running++;
	arm(job, job->timeout_ms);
}

/* Its host and the job part ways. */
static void leave_host(struct job *job)
{
	struct executor *executor = job->executor;
	if (!job->worker)
		return;
	job->worker->job = NULL;
	job->worker = NULL;
	executor->running--;
	executor_share(executor, &job->pool->who)->running--;
}

static void requeue(struct job *job)
{
	struct executor *executor = job->executor;
	loop_cancel_timer(&job->timer);
	recover_put_by(job);
	if (job->worker)
		worker_forget_call(job->worker);
	leave_host(job);
	schedule_push(job, true);
	schedule_soon(executor);
}

void executor_report_ends(struct executor *executor)
{
	while (executor->ended) {
		struct job *job = executor->ended;
		executor->ended = job->next;
		if (!executor->ended)
			executor->ended_last = &executor->ended;
		struct result result = job->result;
		job->result = (struct result)RESULT_INIT;
		job->events->on_end(job->arg, job->end, &result);
		job_free(job);
	}
}

static void on_end_timer(void *arg)
{
	executor_report_ends(arg);
}

/* What it was stopped for is how it ended, whatever its tool still answered. */
static void set_stopped(struct job *job, enum job_state from)
{
	if (from == JOB_RUNNING || (from == JOB_WAITING && job->end == JOB_CRASHED))
		return;
	result_release(&job->result);
	job->end = job->stop_is_late ? JOB_TIMED_OUT : JOB_CANCELLED;
	if (job->stop_is_late)
		result_from_error(&job->result,
			"%s did not finish within %g seconds and was stopped. Ask for less in one "
			"call%s",
			job->tool->name, job->timeout_ms / 1000.0,
			job->timeout_ms < job->executor->config.timeout_ms
				? ", or raise `timeout` (seconds) in its TOOL.md."
				: "; no call may take longer here (`--timeout` of pegfs mount).");
	else
		result_from_error(&job->result, "The call of %s was cancelled.", job->tool->name);
}

static void end(struct job *job, enum job_state from)
{
	struct executor *executor = job->executor;
	loop_cancel_timer(&job->timer);
	recover_let_go(job);
	job_flush_output(job);
	set_stopped(job, from);
	if (from == JOB_WAITING)
		schedule_remove(job);
	else if (from > JOB_ABORTING)
		host_dismiss(
			job->worker->host); /* it has been told to end: no further call there */
	leave_host(job);
	job->next = NULL;
	job->pool = NULL;
	*executor->ended_last = job;
	executor->ended_last = &job->next;
	loop_arm_timer(executor->loop, &executor->end_timer, 0, on_end_timer, executor);
}

void executor_post(struct job *job, enum job_event event)
{
	enum job_state from = job->state;
	struct job_step step = job_step(from, event);
	job->state = step.next;
	unsigned grace_ms = job->executor->config.grace_ms;
	switch (step.action) {
	case JOB_DO_NOTHING:
		break;
	case JOB_DO_START:
		start(job);
		break;
	case JOB_DO_ABORT:
		job->stop_is_late = event == JOB_ON_EXPIRY;
		if (host_kept(job->worker->host))
			host_kept(job->worker->host)->aborted = 1;
		host_abort(job->worker->host, job->id,
			job->stop_is_late ? "The call has timed out" : "The call was cancelled");
		arm(job, grace_ms);
		break;
	case JOB_DO_TERMINATE:
		host_signal(job->worker->host, SIGTERM);
		arm(job, grace_ms);
		break;
	case JOB_DO_KILL:
		host_signal(job->worker->host, SIGKILL);
		arm(job, grace_ms);
		break;
	case JOB_DO_REQUEUE:
		requeue(job);
		break;
	case JOB_DO_END:
		end(job, from);
		break;
	}
}

/* ---- the interface */

static int check_room(struct executor *executor, const struct identity *who, struct fail *why)
{
	const struct share *share = executor_share(executor, who);
	if (share->waiting + share->running >= executor->config.queue_per_uid)
		return fail_set(why, -EBUSY,
			"%u calls of uid %u wait or run already; try again when some have finished",
			share->waiting + share->running, (unsigned)who->uid);
	if (executor->waiting >= executor->config.queue_max)
		return fail_set(why, -EBUSY,
			"%u calls wait already; try again when some have finished",
			executor->waiting);
	return 0;
}

struct job *executor_submit(struct executor *executor, const struct job_request *request,
	const struct job_events *events, void *arg, struct fail *why)
{
	struct identity who;
	if (identity_resolve(request->who, &executor->config.rules, &who, why) < 0 ||
		spawn_check_identity(&who, why) < 0 ||
		(!request->nested && check_room(executor, &who, why) < 0))
		return NULL;
	struct pool *pool = schedule_pool(executor, request->tool, &who);
	struct job *job = NULL;
	if (elsewhere_hold(pool, request->tid, why) == 0)
		job = job_new(request, events, arg, why);
	if (!job) {
		schedule_drop_empty(executor);
		return NULL;
	}
	job->executor = executor;
	job->serial = executor->next_serial++;
	job->pool = pool;
	/* Before those that are not nested: it must not wait for a host behind them. */
	schedule_push(job, job->nested);
	schedule_run(executor);
	if (job->state == JOB_WAITING)
		recover_put_by(job);
	return job;
}

void executor_cancel(struct job *job)
{
	executor_post(job, JOB_ON_CANCEL);
}

bool executor_owns_pid(const struct executor *executor, pid_t pid)
{
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		if (host_get_pid(worker->host) == pid)
			return true;
	return false;
}

void executor_get_stats(const struct executor *executor, struct executor_stats *stats)
{
	*stats = (struct executor_stats){ .jobs_running = executor->running,
		.jobs_waiting = executor->waiting,
		.hosts_started = executor->hosts_started,
		.hosts_crashed = executor->hosts_crashed };
	for (const struct worker *worker = executor->workers; worker; worker = worker->next) {
		stats->hosts++;
		stats->spares += !worker->pool && worker_counts(worker);
		stats->hosts_idle += worker->pool && worker_is_free(worker);
	}
}
