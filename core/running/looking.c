#include <string.h>

#include "core/base/auto.h"
#include "core/running/record.h"
#include "core/running/table.h"

static bool same_namespace(const struct call *call, const struct caller *caller)
{
	return call->pid_ns == caller->pid_ns || call->pid_ns == 0 || caller->pid_ns == 0;
}

static bool is_own(const struct call *call, const struct caller *caller)
{
	return call->uid == caller->who.uid && same_namespace(call, caller);
}

bool calls_may_see(const struct calls *calls, const struct call *call, const struct caller *caller)
{
	/* The root of another pid namespace is some container's, not the one who runs the machine. */
	bool is_root = caller->who.uid == 0 && caller->pid_ns == calls->own_pid_ns;
	return is_root || is_own(call, caller);
}

const struct call *calls_get(const struct calls *calls, uint64_t seq)
{
	const struct entry *entry = table_find(calls, seq);
	return entry && !entry->forgotten ? &entry->call : NULL;
}

const struct call *calls_nearest(const struct calls *calls, const struct tool *tool,
	const struct caller *reader, bool finished)
{
	const struct shelf *shelf = shelves_find(&calls->shelves, tool_key(tool), reader->who.uid);
	const struct call *best = NULL;
	size_t best_distance = CALLER_CHAIN_MAX + 1;
	for (const struct entry *entry = shelf ? shelf->last : NULL; entry; entry = entry->prev) {
		const struct call *call = &entry->call;
		if (entry->forgotten || call->state == CALL_RESERVED ||
			(finished && !call_state_is_final(call->state)) || !is_own(call, reader))
			continue;
		size_t distance = chain_distance_below(&reader->chain, &call->chain, best_distance);
		if (distance < best_distance) {
			best = call;
			best_distance = distance;
		}
	}
	return best;
}

bool calls_may_be_seen(const struct calls *calls, const struct tool *tool, uid_t uid)
{
	if (shelves_find(&calls->shelves, tool_key(tool), uid))
		return true;
	size_t at = 0;
	const struct map_slot *slot;
	while (uid == 0 && (slot = map_next(&calls->shelves.by_key, &at)))
		for (const struct shelf *shelf = slot->value; shelf; shelf = shelf->next)
			if (strcmp(shelf->tool_key, tool_key(tool)) == 0)
				return true;
	return false;
}

static void visit_shelf(const struct calls *calls, const struct shelf *shelf,
	const struct caller *caller, calls_visit *visit, void *arg)
{
	for (const struct entry *entry = shelf->first; entry; entry = entry->next)
		if (!entry->forgotten && calls_may_see(calls, &entry->call, caller))
			visit(arg, &entry->call);
}

void calls_each(const struct calls *calls, const struct tool *tool, const struct caller *caller,
	calls_visit *visit, void *arg)
{
	const struct shelf *own = shelves_find(&calls->shelves, tool_key(tool), caller->who.uid);
	if (own)
		visit_shelf(calls, own, caller, visit, arg);
	/* Nobody else sees what others have. */
	size_t at = 0;
	const struct map_slot *slot;
	while (caller->who.uid == 0 && (slot = map_next(&calls->shelves.by_key, &at)))
		for (const struct shelf *shelf = slot->value; shelf; shelf = shelf->next)
			if (shelf != own && strcmp(shelf->tool_key, tool_key(tool)) == 0)
				visit_shelf(calls, shelf, caller, visit, arg);
}

struct wanted {
	const char *id;
	const struct call *call;
};

static void compare_id(void *arg, const struct call *call)
{
	struct wanted *wanted = arg;
	if (!wanted->call && strcmp(call->id, wanted->id) == 0)
		wanted->call = call;
}

const struct call *calls_find(const struct calls *calls, const struct tool *tool,
	const struct caller *caller, const char *id)
{
	struct wanted wanted = { .id = id };
	calls_each(calls, tool, caller, compare_id, &wanted);
	return wanted.call;
}

int calls_read(const struct calls *calls, const struct call *call, enum call_part part,
	size_t offset, size_t size, struct buf *out, struct fail *why)
{
	return record_read(calls->config.dir_fd, call, part, offset, size, out, why);
}

int calls_open(
	const struct calls *calls, const struct call *call, enum call_part part, off_t *offset)
{
	return record_open(calls->config.dir_fd, call, part, offset);
}

struct bytes *calls_load(
	const struct calls *calls, const struct call *call, enum call_part part, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(call->part_len[part]);
	if (calls_read(calls, call, part, 0, call->part_len[part], &text, why) < 0)
		return NULL;
	return bytes_take(&text);
}

void calls_get_stats(const struct calls *calls, struct calls_stats *stats)
{
	*stats = calls->stats;
	stats->kept = calls->by_seq.count;
}
