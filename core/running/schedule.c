#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/running/pool.h"

/* Calls that calls make may go beyond hosts_max, so that they never wait for each other; this often. */
#define NESTED_FACTOR 4
/* After so long a call may have a host for which others wait too; each change costs a start. */
#define TAKE_AFTER_MS 250

static enum runtime runtime_of(const struct tool *tool)
{
	const char *dot = strrchr(tool->entry, '.');
	return dot && strcmp(dot, ".py") == 0 ? RUNTIME_PYTHON : RUNTIME_NODE;
}

struct pool *schedule_pool(struct executor *executor, struct tool *tool, const struct identity *who)
{
	for (struct pool *pool = executor->pools; pool; pool = pool->next)
		if (strcmp(pool->tool->dir, tool->dir) == 0 &&
			strcmp(pool->tool->entry, tool->entry) == 0 &&
			pool->tool->owner == tool->owner && identity_equal(&pool->who, who))
			return pool;
	struct pool *pool = xcalloc(1, sizeof(*pool));
	pool->executor = executor;
	pool->tool = tool_ref(tool);
	pool->who = *who;
	pool->runtime = runtime_of(tool);
	pool->last = &pool->first;
	pool->next = executor->pools;
	executor->pools = pool;
	return pool;
}

void schedule_drop_empty(struct executor *executor)
{
	for (struct pool **at = &executor->pools; *at;) {
		struct pool *pool = *at;
		if (pool->first || pool->worker_count > 0) {
			at = &pool->next;
			continue;
		}
		*at = pool->next;
		anchor_unref(pool->anchor);
		tool_unref(pool->tool);
		free(pool);
	}
}

void schedule_push(struct job *job, bool at_front)
{
	struct pool *pool = job->pool;
	job->waiting_since_ms = loop_now_ms(job->executor->loop);
	job->next = at_front ? pool->first : NULL;
	if (at_front) {
		if (!pool->first)
			pool->last = &job->next;
		pool->first = job;
	} else {
		*pool->last = job;
		pool->last = &job->next;
	}
	pool->waiting++;
	job->executor->waiting++;
	executor_share(job->executor, &pool->who)->waiting++;
}

void schedule_remove(struct job *job)
{
	struct pool *pool = job->pool;
	struct job **at = &pool->first;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	if (!*at)
		pool->last = at;
	job->next = NULL;
	pool->waiting--;
	job->executor->waiting--;
	executor_share(job->executor, &pool->who)->waiting--;
}

/* ---- a host for a job */

static struct worker *find_free(
	struct executor *executor, const struct pool *pool, const struct pool *bound_to)
{
	for (struct worker *worker = executor->workers; worker; worker = worker->next)
		if (worker->pool == bound_to && worker_is_free(worker) &&
			worker->runtime == pool->runtime &&
			identity_equal(&worker->who, &pool->who))
			return worker;
	return NULL;
}

static unsigned count_of_pool(const struct executor *executor, const struct pool *pool)
{
	unsigned count = 0;
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		count += worker->pool == pool && worker_counts(worker);
	return count;
}

/* Hosts whose call is over: in a moment they are free, or gone. */
static size_t count_settling(const struct executor *executor, const struct pool *pool)
{
	size_t count = 0;
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		count += worker->pool == pool && host_get_state(worker->host) == HOST_SETTLING;
	return count;
}

static bool is_same_user(const struct identity *a, const struct identity *b)
{
	return a->uid == b->uid && a->place.tenant == b->place.tenant;
}

static unsigned count_of_user(const struct executor *executor, const struct identity *who)
{
	unsigned count = 0;
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		count += worker->pool && is_same_user(&worker->pool->who, who) &&
			 worker_counts(worker);
	return count;
}

/*
 * Whether a free host may go for a pool's first job. One that has calls of its own to come goes
 * only where that job would have to wait for all of them, however many there are: it is of a tool
 * without any host, or of a user who has far fewer.
 */
static bool may_take(
	const struct executor *executor, const struct pool *pool, const struct worker *worker)
{
	const struct pool *other = worker->pool;
	if (!other || !other->first)
		return true;
	if (loop_now_ms(executor->loop) - pool->first->waiting_since_ms < TAKE_AFTER_MS)
		return false;
	if (is_same_user(&other->who, &pool->who))
		return count_of_pool(executor, pool) == 0;
	unsigned own = count_of_user(executor, &pool->who);
	return own == 0 || own + 1 < count_of_user(executor, &other->who);
}

/*
 * Lets go the host that has been idle longest, spares of others included, for a pool's first job; or
 * one of the same container only. Whether there was one.
 */
static bool make_room(struct executor *executor, const struct pool *pool, bool of_its_own)
{
	struct worker *oldest = NULL;
	for (struct worker *worker = executor->workers; worker; worker = worker->next)
		if (worker_is_free(worker) && may_take(executor, pool, worker) &&
			(!of_its_own || worker->who.place.tenant == pool->who.place.tenant) &&
			(!oldest || worker->idle_since_ms < oldest->idle_since_ms))
			oldest = worker;
	if (oldest)
		worker_dismiss(oldest);
	return oldest != NULL;
}

/* A host for the pool's first job: NULL where none is free, with *why where none can be. */
static struct worker *get_worker(struct executor *executor, struct pool *pool, struct fail *why)
{
	const struct executor_config *config = &executor->config;
	bool nested = pool->first->nested;
	struct worker *worker = find_free(executor, pool, pool);
	if (worker)
		return worker;
	if (!nested && (count_of_pool(executor, pool) >= config->hosts_per_tool ||
			       count_settling(executor, pool) >= pool->waiting))
		return NULL;
	worker = find_free(executor, pool, NULL);
	if (!worker) {
		unsigned count = worker_count(executor);
		if (nested && count >= config->hosts_max * (1 + NESTED_FACTOR)) {
			fail_set(why, -EBUSY,
				"Calls that tools make of tools are nested too deeply: %u run already. "
				"Does a tool call itself?",
				count);
			return NULL;
		}
		bool has_its_share = elsewhere_has_its_share(pool);
		if (!nested && (count >= config->hosts_max || has_its_share) &&
			!make_room(executor, pool, has_its_share))
			return NULL;
		worker = worker_start(executor, &pool->who, pool->runtime, pool, why);
	}
	if (worker)
		worker_bind(worker, pool);
	return worker;
}

/*
 * Whether a job of pool goes before one of other: a nested one first, since somebody holds a host
 * for it; then the uid that has the fewest running, so that nobody's many calls keep out another's
 * few; then the older.
 */
static bool goes_before(
	struct executor *executor, const struct pool *pool, const struct pool *other)
{
	if (pool->first->nested != other->first->nested)
		return pool->first->nested;
	unsigned running = executor_share(executor, &pool->who)->running;
	unsigned other_running = executor_share(executor, &other->who)->running;
	if (running != other_running)
		return running < other_running;
	return pool->first->serial < other->first->serial;
}

/* The next pool to serve, of those that were not tried in vain in this round. */
static struct pool *pick_pool(struct executor *executor, uint64_t round)
{
	struct pool *best = NULL;
	for (struct pool *pool = executor->pools; pool; pool = pool->next)
		if (pool->first && pool->round != round &&
			(!best || goes_before(executor, pool, best)))
			best = pool;
	return best;
}

void schedule_run(struct executor *executor)
{
	uint64_t round = ++executor->round;
	struct pool *pool;
	while ((pool = pick_pool(executor, round))) {
		struct job *job = pool->first;
		struct fail why = FAIL_INIT;
		struct worker *worker = get_worker(executor, pool, &why);
		if (worker) {
			schedule_remove(job);
			job->worker = worker;
			executor_post(job, JOB_ON_GIVE);
		} else if (why.code < 0) {
			executor_set_failure(job, JOB_CRASHED, why.text);
			executor_post(job, JOB_ON_LOST);
		} else {
			pool->round = round;
		}
	}
	schedule_drop_empty(executor);
}

static void on_schedule_timer(void *arg)
{
	schedule_run(arg);
}

void schedule_soon(struct executor *executor)
{
	if (executor->schedule_timer.slot == 0)
		loop_arm_timer(
			executor->loop, &executor->schedule_timer, 0, on_schedule_timer, executor);
}
