#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/running/cache.h"
#include "core/running/pool.h"
#include "core/tools/owner.h"
#include "core/tools/xjson.h"

#define SPARE_FAILURES_MAX 3
#define RETRIES_MAX 1   /* of a job whose host ended before it had begun with it */
#define HEAP_PERCENT 75 /* of memory_max: V8 gives up with a message before the kernel refuses */

/* ---- what hosts say */

static void end_progress(struct job *job)
{
	static const char notice[] = "{\"content\":[{\"type\":\"text\",\"text\":"
				     "\"[pegfs: this call's progress has reached its limit; "
				     "the rest is left out]\"}]}";
	job->progress_left = 0;
	job->events->on_progress(job->arg, notice, sizeof(notice) - 1);
}

static void on_progress(struct job *job, const json_t *partial)
{
	if (job->progress_left == 0 || !partial)
		return;
	auto_json json_t *scrubbed = scrub_value(job->scrub, partial);
	auto_free char *json =
		scrubbed ? json_dumps(scrubbed, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	size_t len = json ? strlen(json) : 0;
	if (!json || len >= job->progress_left) {
		end_progress(job);
		return;
	}
	job->progress_left -= len;
	if (host_kept(job->worker->host))
		host_kept(job->worker->host)->progress_left = job->progress_left;
	job->events->on_progress(job->arg, json, len);
}

static void on_started(struct worker *worker, struct job *job)
{
	if (job->started)
		return;
	job->started = true;
	executor_begin(job);
	job_forget_params(job);
	if (host_kept(worker->host))
		host_kept(worker->host)->started = 1;
	job->events->on_start(job->arg, host_get_pid(worker->host));
}

static void on_result(struct job *job, const json_t *value)
{
	/* Where memory is short there is no result rather than one that holds a secret. */
	bool has_secrets = value && job->scrub;
	auto_json json_t *scrubbed = has_secrets ? scrub_value(job->scrub, value) : NULL;
	result_from_value(&job->result, has_secrets ? scrubbed : value);
	job->end = job->result.is_error ? JOB_FAILED : JOB_DONE;
	executor_post(job, JOB_ON_ANSWER);
}

/* It was taken over without its parameters, and no other host can be given them. */
static void fail_not_run(struct job *job)
{
	executor_set_failure(job, JOB_CRASHED,
		"The call was not run: pegfs was restarted before the tool had begun. Call again.");
	executor_post(job, JOB_ON_LOST);
}

/* Before its message counts as dealt with, the end of a call is told and can be read. */
static void report_end(struct worker *worker)
{
	executor_report_ends(worker->executor);
	worker_forget_call(worker);
}

static void on_message(void *arg, const struct wire_message *message)
{
	struct worker *worker = arg;
	struct job *job = worker->job;
	/* Of a call that is over, or of none that there ever was. */
	if (!job || strcmp(message->id, job->id) != 0)
		return;
	switch (message->type) {
	case WIRE_STARTED:
		on_started(worker, job);
		break;
	case WIRE_STALE:
		if (!job->started && job->params)
			executor_post(job, JOB_ON_RETRY);
		else if (!job->started)
			fail_not_run(job);
		break;
	case WIRE_PROGRESS:
		on_progress(job, message->value);
		break;
	case WIRE_RESULT:
		on_result(job, message->value);
		report_end(worker);
		break;
	case WIRE_FAILED:
		executor_set_failure(job,
			strcmp(message->kind, "exit") == 0 ? JOB_CRASHED : JOB_FAILED,
			message->text);
		executor_post(job, JOB_ON_ANSWER);
		report_end(worker);
		break;
	case WIRE_READY:
	case WIRE_IDLE:
	case WIRE_PREPARED:
		break;
	}
}

static void on_output(void *arg, const char *bytes, size_t len)
{
	struct worker *worker = arg;
	if (worker->job)
		job_output(worker->job, bytes, len);
}

static void on_idle_timer(void *arg)
{
	worker_dismiss(arg);
}

static void on_idle(void *arg)
{
	struct worker *worker = arg;
	struct executor *executor = worker->executor;
	worker->idle_since_ms = loop_now_ms(executor->loop);
	worker_forget_call(worker);
	/* One too many was started for a nested call. */
	if (worker->outdated || worker_count(executor) > executor->config.hosts_max)
		worker_dismiss(worker);
	else if (worker->pool)
		loop_arm_timer(executor->loop, &worker->idle_timer, executor->config.idle_ms,
			on_idle_timer, worker);
	else
		executor->spare_failures = 0;
	schedule_run(executor);
}

/* A host that ended before it had begun with a job has done nothing of it: another one may. */
static void lose_job(struct worker *worker)
{
	struct job *job = worker->job;
	if (!job->started && job->params && host_has_booted(worker->host) &&
		host_has_ended(worker->host) && job->retries++ < RETRIES_MAX) {
		executor_post(job, JOB_ON_RETRY);
		return;
	}
	auto_buf struct buf text = BUF_INIT(FAIL_TEXT_MAX * 2);
	if (!host_has_booted(worker->host))
		buf_puts(&text, "The tool's host could not be started. ");
	host_describe_end(worker->host, &text);
	executor_set_failure(job, JOB_CRASHED, buf_str(&text));
	executor_post(job, JOB_ON_LOST);
}

static void on_gone(void *arg)
{
	struct worker *worker = arg;
	struct executor *executor = worker->executor;
	bool booted = host_has_booted(worker->host);
	if (worker->job) {
		executor->hosts_crashed++;
		lose_job(worker);
		/* Before the next server can no longer see that it had the call. */
		executor_report_ends(executor);
	} else if (!worker->pool && !booted && ++executor->spare_failures == SPARE_FAILURES_MAX) {
		auto_buf struct buf text = BUF_INIT(FAIL_TEXT_MAX * 2);
		host_describe_end(worker->host, &text);
		log_msg(LOG_LEVEL_WARNING, "tool hosts do not start, so none is kept ready: %s",
			buf_str(&text));
	}
	worker_free(worker);
	worker_keep_spares(executor, SPARE_DELAY_MS);
	schedule_run(executor);
}

/* ---- starting */

static json_t *make_settings(const struct executor *executor, const struct identity *who)
{
	const struct executor_config *config = &executor->config;
	struct fail why = FAIL_INIT;
	bool is_here = !elsewhere_is_for(executor, who); /* else nobody there can see the cache */
	auto_free char *cache_dir = is_here ? cache_make_dir(config->state_dir, who, &why) : NULL;
	if (is_here && !cache_dir)
		log_msg(LOG_LEVEL_WARNING, "tools start more slowly, there is no cache: %s",
			why.text);
	return json_pack("{s:s?,s:I,s:I,s:o}", "cacheDir", cache_dir, "resultMax",
		(json_int_t)config->result_max, "progressMax", (json_int_t)config->progress_max,
		"generated", is_here ? json_array() : elsewhere_generated());
}

static const struct host_events host_events = {
	.on_message = on_message,
	.on_output = on_output,
	.on_idle = on_idle,
	.on_gone = on_gone,
};

static struct host_setup make_setup(
	struct executor *executor, const struct host_events *events, void *arg)
{
	const struct executor_config *config = &executor->config;
	return (struct host_setup){
		.loop = executor->loop,
		.events = events,
		.arg = arg,
		.spawn = { .env = config->env,
			.warden = executor->warden,
			.files_max = config->files_max,
			.processes_max = config->processes_max,
			.memory_max = config->memory_max },
		.message_max = config->result_max,
		.output_max = config->output_max,
		.grace_ms = config->grace_ms,
	};
}

struct host *worker_start_host(struct executor *executor, const struct identity *who,
	enum runtime runtime, const struct pool *pool, const struct host_events *events, void *arg,
	struct fail *why)
{
	const struct executor_config *config = &executor->config;
	const bool is_here = !elsewhere_is_for(executor, who);
	if (is_here && !executor->programs[runtime]) {
		fail_set(why, -ENOENT, "%s is required to run this tool but is not installed",
			runtime == RUNTIME_NODE ? "Node.js (node)" : "Python (python3)");
		return NULL;
	}
	auto_free char *heap = NULL;
	const char *argv[8] = { executor->programs[runtime] };
	size_t argc = 1;
	if (runtime == RUNTIME_NODE && config->memory_max > 0) {
		heap = xasprintf("--max-old-space-size=%llu",
			(unsigned long long)(config->memory_max / 100 * HEAP_PERCENT >> 20));
		argv[argc++] = heap;
	}
	if (runtime == RUNTIME_PYTHON)
		argv[argc++] = "-u"; /* what a tool prints is out when print() returns */
	argv[argc++] = executor->scripts[runtime];
	auto_json json_t *settings = make_settings(executor, who);
	struct host_setup setup = make_setup(executor, events, arg);
	setup.spawn.argv = argv;
	setup.spawn.who = who;
	setup.spawn.env = executor_env_of(executor, pool ? pool->tool : NULL, who);
	setup.settings = settings;
	if (events == &host_events)
		setup.keeper = config->keeper;
	if (!is_here)
		return elsewhere_start_host(pool, &setup, heap, why);
	struct sandbox sandbox = { .count = 0 };
	if (executor->bwrap && pool) {
		const struct sandbox_setup how = { .kind = config->sandbox,
			.bwrap = executor->bwrap,
			.program = argv[0],
			.lib_dir = config->lib_dir,
			.tool_dir = pool->tool->dir,
			.cache_dir = json_string_value(json_object_get(settings, "cacheDir")),
			.env = setup.spawn.env,
			.argv = argv };
		sandbox_make(&sandbox, &how);
		setup.spawn.argv = sandbox.words;
		setup.spawn.wrappers = 1;
	}
	struct host *host = host_start(&setup, why);
	sandbox_release(&sandbox);
	executor->hosts_started += host != NULL;
	return host;
}

static void enlist(struct worker *worker)
{
	struct executor *executor = worker->executor;
	worker->idle_since_ms = loop_now_ms(executor->loop);
	worker->next = executor->workers;
	executor->workers = worker;
}

/* Whose code it has, or will have. */
static void note_code(const struct worker *worker, const struct tool *tool)
{
	struct kept_host *kept = host_kept(worker->host);
	if (!kept)
		return;
	kept->runtime = (uint32_t)worker->runtime;
	kept->code = recover_code_of(worker->executor, tool, &worker->who);
	snprintf(kept->tool, sizeof(kept->tool), "%s", tool ? tool_key(tool) : "");
}

struct worker *worker_start(struct executor *executor, const struct identity *who,
	enum runtime runtime, const struct pool *pool, struct fail *why)
{
	struct worker *worker = xcalloc(1, sizeof(*worker));
	*worker = (struct worker){
		.executor = executor, .who = *who, .runtime = runtime, .has_env = pool != NULL
	};
	worker->host = worker_start_host(executor, who, runtime, pool, &host_events, worker, why);
	if (!worker->host) {
		free(worker);
		return NULL;
	}
	note_code(worker, NULL);
	enlist(worker);
	return worker;
}

struct worker *worker_adopt(struct executor *executor, size_t slot, struct fail *why)
{
	const struct keeper *keeper = executor->config.keeper;
	bool used;
	const struct kept_host *kept = keeper->get(keeper->arg, slot, &used);
	struct worker *worker = xcalloc(1, sizeof(*worker));
	*worker = (struct worker){
		.executor = executor, .who = kept->who, .runtime = (enum runtime)kept->runtime
	};
	struct host_setup setup = make_setup(executor, &host_events, worker);
	auto_json json_t *settings = make_settings(executor, &worker->who);
	setup.settings = settings;
	setup.keeper = keeper;
	worker->host = host_adopt(&setup, slot, why);
	if (!worker->host) {
		free(worker);
		return NULL;
	}
	enlist(worker);
	return worker;
}

void worker_forget_call(struct worker *worker)
{
	struct kept_host *kept = host_kept(worker->host);
	if (!kept || kept->tag == 0)
		return;
	kept->tag = 0;
	explicit_bzero(kept->secrets, sizeof(kept->secrets));
}

/* The keeper's next process finds the call there, whatever happens from here on. */
static void note_call(const struct worker *worker, const struct job *job)
{
	struct kept_host *kept = host_kept(worker->host);
	if (!kept)
		return;
	kept->delivered = kept->started = kept->aborted = 0;
	kept->due_ms = (int64_t)job->timer.due_ms;
	kept->progress_left = job->progress_left;
	snprintf(kept->id, sizeof(kept->id), "%s", job->id);
	size_t len = job->secrets ? strlen(job->secrets) : 0;
	kept->secrets_len = (uint32_t)(len < KEEPER_SECRETS_MAX ? len : KEEPER_SECRETS_MAX + 1);
	if (job->secrets && len < KEEPER_SECRETS_MAX)
		memcpy(kept->secrets, job->secrets, len);
	kept->tag = job->tag;
	recover_let_go(job);
}

void worker_bind(struct worker *worker, struct pool *pool)
{
	worker->pool = pool;
	pool->worker_count++;
	note_code(worker, pool->tool);
	if (pool->runtime == RUNTIME_NODE && !elsewhere_is_for(worker->executor, &pool->who)) {
		worker->executor->spare_who = pool->who;
		worker_keep_spares(worker->executor, SPARE_DELAY_MS);
	}
}

/* What a host that waited for any tool is to run in; NULL where it does so already. */
static json_t *env_to_tell(struct worker *worker, const struct tool *tool)
{
	bool is_own = tool->owner && tool->owner->env;
	if (worker->has_env || !is_own)
		return NULL;
	worker->has_env = true;
	json_t *env = json_object();
	for (char **item = tool->owner->env; *item; item++) {
		size_t name_len = strcspn(*item, "=");
		auto_free char *name = xstrndup(*item, name_len);
		/* Names and values need not be UTF-8 for exec; in JSON they must be. */
		json_object_set_new(env, name, xjson_string(*item + name_len + 1));
	}
	return env;
}

int worker_give(struct worker *worker, struct job *job)
{
	loop_cancel_timer(&worker->idle_timer);
	worker->job = job;
	note_call(worker, job);
	auto_json json_t *secrets = json_array();
	for (size_t i = 0; i < job->tool->input_count; i++)
		if (job->tool->inputs[i].sensitive)
			json_array_append_new(secrets, json_string(job->tool->inputs[i].name));
	auto_free char *dir = elsewhere_is_for(worker->executor, &worker->who)
				      ? elsewhere_tool_dir(worker->executor, job->tool)
				      : NULL;
	auto_json json_t *env = env_to_tell(worker, job->tool);
	struct wire_call call = { .id = job->id,
		.name = job->tool->name,
		.dir = dir ? dir : job->tool->dir,
		.entry = job->tool->entry,
		.secrets = secrets,
		.env = env,
		.params = job->params };
	return host_give(worker->host, &call);
}

void worker_dismiss(struct worker *worker)
{
	loop_cancel_timer(&worker->idle_timer);
	host_dismiss(worker->host);
}

bool worker_is_free(const struct worker *worker)
{
	/* A spare that is still booting is given its call at once: that is no later than waiting. */
	enum host_state state = host_get_state(worker->host);
	return !worker->job && (state == HOST_IDLE || (state == HOST_BOOTING && !worker->pool));
}

bool worker_counts(const struct worker *worker)
{
	return host_get_state(worker->host) < HOST_ENDING;
}

unsigned worker_count(const struct executor *executor)
{
	unsigned count = 0;
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		count += worker_counts(worker);
	return count;
}

void worker_free(struct worker *worker)
{
	struct worker **at = &worker->executor->workers;
	while (*at != worker)
		at = &(*at)->next;
	*at = worker->next;
	loop_cancel_timer(&worker->idle_timer);
	if (worker->pool)
		worker->pool->worker_count--;
	host_free(worker->host);
	free(worker);
}

/* ---- spares */

static bool is_spare(const struct worker *worker)
{
	return !worker->pool && worker_counts(worker);
}

/* Spares of who called last; those of others go. */
static void on_spare_timer(void *arg)
{
	struct executor *executor = arg;
	unsigned spares = 0, count = 0;
	for (struct worker *worker = executor->workers; worker; worker = worker->next) {
		if (is_spare(worker) && !identity_equal(&worker->who, &executor->spare_who))
			worker_dismiss(worker);
		spares += is_spare(worker);
		count += worker_counts(worker);
	}
	struct fail why = FAIL_INIT;
	while (spares < executor->config.spares && count < executor->config.hosts_max &&
		executor->spare_failures < SPARE_FAILURES_MAX) {
		if (!worker_start(executor, &executor->spare_who, RUNTIME_NODE, NULL, &why)) {
			executor->spare_failures = SPARE_FAILURES_MAX;
			log_msg(LOG_LEVEL_WARNING, "no tool host is kept ready: %s", why.text);
			return;
		}
		spares++;
		count++;
	}
}

void worker_keep_spares(struct executor *executor, unsigned delay_ms)
{
	/* What a sandbox shows is a tool's own, so a host in one cannot wait for any tool. */
	if (executor->spare_timer.slot == 0 && !executor->bwrap)
		loop_arm_timer(
			executor->loop, &executor->spare_timer, delay_ms, on_spare_timer, executor);
}
