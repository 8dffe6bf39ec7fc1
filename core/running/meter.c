#include "core/running/meter.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

const uint32_t meter_bounds_ms[METER_CLASSES] = { 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000,
	10000, 30000, 60000, 300000, 600000 };

static void free_tool(struct meter_tool *tool)
{
	free(tool->name);
	free(tool);
}

void meter_release(struct meter *meter)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&meter->by_name, &at)))
		free_tool(slot->value);
	map_release(&meter->by_name);
}

static struct meter_tool *tool_of(struct meter *meter, const char *name)
{
	uint64_t key = map_hash(MAP_HASH_SEED, name, strlen(name));
	struct meter_tool *tool = map_get(&meter->by_name, key);
	if (tool && strcmp(tool->name, name) == 0)
		return tool;
	/* Full, or another name of the same hash. The place of the others is there beyond the limit. */
	if (strcmp(name, METER_OTHERS) != 0 && (tool || meter->by_name.count >= METER_TOOLS_MAX))
		return tool_of(meter, METER_OTHERS);
	tool = xcalloc(1, sizeof(*tool));
	tool->name = xstrdup(name);
	map_put(&meter->by_name, key, tool);
	return tool;
}

/* The clock may have been set back meanwhile. */
static uint64_t span(int64_t from_ms, int64_t to_ms)
{
	return to_ms > from_ms ? (uint64_t)(to_ms - from_ms) : 0;
}

static void add(struct meter_times *times, uint64_t ms)
{
	for (size_t i = 0; i < METER_CLASSES; i++)
		if (ms <= meter_bounds_ms[i]) {
			times->in_class[i]++;
			break;
		}
	times->count++;
	times->sum_ms += ms;
}

void meter_note(struct meter *meter, const struct call *call)
{
	struct meter_tool *tool = tool_of(meter, call->tool->name);
	tool->ended[call->state]++;
	if (call->started_ms == 0)
		return;
	add(&tool->took, span(call->created_ms, call->changed_ms));
	add(&meter->waited, span(call->created_ms, call->started_ms));
}

const struct meter_tool *meter_next(const struct meter *meter, size_t *at)
{
	const struct map_slot *slot = map_next(&meter->by_name, at);
	return slot ? slot->value : NULL;
}
