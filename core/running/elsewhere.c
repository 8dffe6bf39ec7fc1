/* Hosts that run where their callers live: with places that are held, and with names as they are there. */
#include <errno.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/enter.h"
#include "core/running/pool.h"
#include "core/tools/listing.h"

#define PLACES_MAX 256       /* each takes up to ten descriptors */
#define PLACES_OF_ONE_MAX 32 /* of one container, which may have as many as it likes */

bool elsewhere_is_for(const struct executor *executor, const struct identity *who)
{
	return executor->config.rules.runs_there && !place_is_here(&who->place);
}

/* A place that another pool holds already; else how many are held, and how many of its container. */
static struct anchor *find_held(
	struct executor *executor, const struct place *place, unsigned *count, unsigned *of_one)
{
	const uint64_t round = ++executor->round;
	*count = *of_one = 0;
	for (struct pool *pool = executor->pools; pool; pool = pool->next) {
		if (!pool->anchor)
			continue;
		if (place_equal(&pool->anchor->place, place))
			return anchor_ref(pool->anchor);
		bool is_first = pool->anchor->round != round;
		*count += is_first;
		*of_one += is_first && pool->anchor->place.tenant == place->tenant;
		pool->anchor->round = round;
	}
	return NULL;
}

int elsewhere_hold(struct pool *pool, pid_t tid, struct fail *why)
{
	unsigned count, of_one;
	if (pool->anchor || !elsewhere_is_for(pool->executor, &pool->who))
		return 0;
	pool->anchor = find_held(pool->executor, &pool->who.place, &count, &of_one);
	if (!pool->anchor && (count >= PLACES_MAX || of_one >= PLACES_OF_ONE_MAX))
		return fail_set(why, -EBUSY,
			"calls from %u containers or namespaces (%u of this container) wait or run "
			"already; try again when some have finished",
			count, of_one);
	if (!pool->anchor)
		pool->anchor = anchor_open(tid, &pool->who, why);
	return why->code;
}

bool elsewhere_has_its_share(const struct pool *pool)
{
	const struct executor *executor = pool->executor;
	const uint64_t tenant = pool->who.place.tenant;
	unsigned count = 0, share = (executor->config.hosts_max + 1) / 2;
	if (!elsewhere_is_for(executor, &pool->who))
		return false;
	for (const struct worker *worker = executor->workers; worker; worker = worker->next)
		count += worker_counts(worker) && worker->who.place.tenant == tenant;
	return count >= share;
}

char *elsewhere_tool_dir(const struct executor *executor, const struct tool *tool)
{
	return xasprintf("%s/%s", executor->config.shown_at, tool->name);
}

json_t *elsewhere_generated(void)
{
	json_t *names = json_array();
	for (int name = LISTING_HIDDEN_FIRST; name < LISTING_COUNT; name++)
		json_array_append_new(names, json_string(listing_text((enum listing_name)name)));
	return names;
}

struct host *elsewhere_start_host(
	const struct pool *pool, struct host_setup *setup, const char *heap, struct fail *why)
{
	struct executor *executor = pool->executor;
	if (!pool->anchor) {
		fail_set(why, -ESTALE,
			"The call was not run: pegfs was restarted, and has lost sight of where its "
			"caller lives. Call again.");
		return NULL;
	}
	auto_free char *dir = elsewhere_tool_dir(executor, pool->tool);
	const struct enter_setup how = { .lib_dir = executor->config.lib_dir,
		.who = &pool->who,
		.anchor = pool->anchor,
		.tool_dir = dir,
		.is_python = pool->runtime == RUNTIME_PYTHON,
		.heap = heap };
	struct enter enter;
	enter_make(&enter, &how);
	setup->spawn.argv = enter.words;
	setup->spawn.wrappers = 2;
	setup->spawn.keeps_rights = true;
	setup->spawn.fds = enter.fds;
	setup->spawn.fd_count = enter.fd_count;
	struct host *host = host_start(setup, why);
	enter_release(&enter);
	executor->hosts_started += host != NULL;
	return host;
}
