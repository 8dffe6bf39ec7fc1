#include "core/running/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/outcome.h"
#include "core/running/table.h"
#include "core/tools/owner.h"
#include "core/tools/params.h"

#define RESERVED_MAX 256 /* ids that one caller may reserve of one tool */

static void refuse(struct entry *entry, const struct fail *why)
{
	struct result result = RESULT_INIT;
	result_from_error(&result, "%s", why->text);
	outcome_finish(entry, CALL_REFUSED, &result);
}

/* The entry for a request: the reserved one; or a new one, with *why where that cannot be had. */
static struct entry *entry_for(struct calls *calls, struct tool *tool, const struct caller *caller,
	uint64_t reserved, struct fail *why)
{
	struct entry *entry = reserved ? table_find(calls, reserved) : NULL;
	if (reserved && (!entry || entry->forgotten))
		fail_set(why, -ECANCELED, "the id was given up: its directory has been removed");
	else if (entry && entry->call.uid != caller->who.uid)
		fail_set(why, -EACCES, "the id '%s' was reserved by another user", entry->call.id);
	else if (entry && entry->call.state != CALL_RESERVED)
		fail_set(why, -EBUSY, "the id '%s' has been used: each is for one call",
			entry->call.id);
	else if (entry) {
		entry->shelf->reserved_count--;
		entry->call.state = CALL_QUEUED;
		entry->call.chain = caller->chain;
		return entry;
	}
	return table_make_entry(calls, tool, caller, CALL_QUEUED);
}

static bool is_nested(const struct calls *calls, const struct caller *caller)
{
	for (size_t i = 0; i < caller->chain.count; i++)
		if (executor_owns_pid(calls->executor, caller->chain.links[i].pid))
			return true;
	return false;
}

static int keep_request(struct entry *entry, const json_t *params)
{
	auto_json json_t *redacted = params_redact(entry->call.tool, params);
	char *text = redacted ? json_dumps(redacted, JSON_COMPACT) : NULL;
	if (!text)
		return -ENOMEM;
	size_t len = strlen(text);
	entry->request = xcalloc(len + 2, 1);
	memcpy(entry->request, text, len);
	entry->request[len] = '\n';
	free(text);
	return 0;
}

/* What waits and runs is held in memory, a few times over. */
static int take_pending(struct entry *entry, size_t len, struct fail *why)
{
	struct quota *pending = &entry->calls->pending;
	if (!quota_take(pending, entry->call.uid, len))
		return fail_set(why, -EBUSY,
			"the requests of uid %u that wait or run would be larger than %zu bytes in "
			"all; try again when some have finished",
			(unsigned)entry->call.uid, pending->max);
	entry->pending = len;
	return 0;
}

/* Checks the document; the complete parameters, a new reference, or NULL and *why. */
static json_t *check_request(struct entry *entry, const struct call_order *order, struct fail *why)
{
	auto_json json_t *request = params_parse(order->document, order->len, why);
	if (!request)
		return NULL;
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *params = params_check(entry->call.tool, request, &warnings, why);
	if (keep_request(entry, params ? params : request) < 0) {
		fail_set(why, -ENOMEM, "no memory for the request");
		return NULL;
	}
	if (warnings.len > 0)
		outcome_append(entry, CALL_PART_LOG, warnings.data, warnings.len);
	outcome_close_growing(entry); /* very many may wait */
	return take_ptr(&params);
}

int calls_start(struct calls *calls, const struct call_order *order, call_on_end *on_end, void *arg,
	uint64_t *seq, struct fail *why)
{
	struct entry *entry = entry_for(calls, order->tool, order->caller, order->reserved, why);
	*seq = entry->call.seq;
	auto_json json_t *params = NULL;
	if (!why->code && take_pending(entry, order->len, why) == 0)
		params = check_request(entry, order, why);
	if (params) {
		const struct job_request request = {
			.call_id = entry->call.id,
			.tool = entry->call.tool,
			.params = params,
			.who = &order->caller->who,
			.tid = order->caller->tid,
			.timeout_ms = calls->config.timeout_ms,
			.tag = entry->call.seq,
			.nested = is_nested(calls, order->caller),
		};
		/* Before it can begin: what has no record has not run. */
		outcome_save_request(entry);
		entry->job =
			executor_submit(calls->executor, &request, &outcome_events, entry, why);
	}
	if (why->code) {
		refuse(entry, why);
		return why->code;
	}
	entry->on_end = on_end;
	entry->on_end_arg = arg;
	table_tell_change(entry);
	return 0;
}

uint64_t calls_refuse(struct calls *calls, struct tool *tool, const struct caller *caller,
	uint64_t reserved, const struct fail *why)
{
	struct fail gone = FAIL_INIT; /* then it stands under an id of its own */
	struct entry *entry = entry_for(calls, tool, caller, reserved, &gone);
	uint64_t seq = entry->call.seq;
	refuse(entry, why);
	return seq;
}

void calls_watch(struct calls *calls, uint64_t seq, call_on_end *on_end, void *arg)
{
	struct entry *entry = table_find(calls, seq);
	if (!entry || call_state_is_final(entry->call.state))
		return;
	entry->on_end = on_end;
	entry->on_end_arg = arg;
}

void calls_cancel(struct calls *calls, uint64_t seq)
{
	struct entry *entry = table_find(calls, seq);
	if (entry && entry->job)
		executor_cancel(entry->job);
}

void calls_unwatch(struct calls *calls, uint64_t seq)
{
	struct entry *entry = table_find(calls, seq);
	if (entry)
		entry->on_end = NULL;
}

/* ---- ids */

/* Of the form of those that calls get by themselves: seq in 52 bits. */
static bool is_automatic(const char *id)
{
	return strlen(id) == 13 && strspn(id, "0123456789abcdef") == 13;
}

uint64_t calls_reserve(struct calls *calls, struct tool *tool, const struct caller *caller,
	const char *id, struct fail *why)
{
	if (!call_id_is_valid(id)) {
		fail_set(why, -EINVAL,
			"'%s' is no id: use 1 to %d letters, digits, '.', '_' and '-', the first "
			"a letter or a digit",
			id, CALL_ID_MAX);
		return 0;
	}
	const struct shelf *shelf = shelves_find(&calls->shelves, tool_key(tool), caller->who.uid);
	for (const struct entry *entry = shelf ? shelf->first : NULL; entry; entry = entry->next)
		if (!entry->forgotten && strcmp(entry->call.id, id) == 0) {
			fail_set(why, -EEXIST, "there is a call '%s' already", id);
			return 0;
		}
	if (is_automatic(id)) {
		fail_set(why, -EEXIST, "ids of 13 hexadecimal digits are for calls without one");
		return 0;
	}
	if (shelf && shelf->reserved_count >= RESERVED_MAX) {
		fail_set(
			why, -EBUSY, "%d ids are reserved and not used: remove some", RESERVED_MAX);
		return 0;
	}
	struct entry *entry = table_make_entry(calls, tool, caller, CALL_RESERVED);
	snprintf(entry->call.id, sizeof(entry->call.id), "%s", id);
	entry->named = true;
	entry->shelf->reserved_count++;
	outcome_save_request(entry);
	table_tell_change(entry);
	return entry->call.seq;
}

void calls_forget(struct calls *calls, uint64_t seq)
{
	struct entry *entry = table_find(calls, seq);
	if (!entry)
		return;
	if (!entry->job) {
		table_forget(entry);
		return;
	}
	/* It goes when it has ended: until then its host works for it. */
	entry->forgotten = true;
	executor_cancel(entry->job);
}

void calls_forget_owner(struct calls *calls, const char *name)
{
	auto_free uint64_t *found = xcalloc(calls->by_seq.count, sizeof(*found));
	size_t count = 0, at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&calls->by_seq, &at))) {
		const struct entry *entry = slot->value;
		const struct owner *owner = entry->call.tool->owner;
		if (owner && strcmp(owner->name, name) == 0 && !entry->forgotten)
			found[count++] = slot->key;
	}
	for (size_t i = 0; i < count; i++)
		calls_forget(calls, found[i]);
}
