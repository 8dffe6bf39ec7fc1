#include "core/running/table.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/xalloc.h"
#include "core/running/record.h"

#define SEQ_SECOND_BITS 20 /* numbers a second that a restart cannot give again */

int64_t table_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Half: what runs needs room as well, and so do others. */
static size_t half_of_disk(int dir_fd)
{
	struct statvfs fs;
	return fstatvfs(dir_fd, &fs) == 0 && fs.f_blocks > 0 ? fs.f_blocks / 2 * fs.f_frsize
							     : SIZE_MAX;
}

struct calls *calls_new(
	struct loop *loop, struct executor *executor, const struct calls_config *config)
{
	struct calls *calls = xcalloc(1, sizeof(*calls));
	calls->loop = loop;
	calls->executor = executor;
	calls->config = *config;
	if (calls->config.keep == 0)
		calls->config.keep = CALLS_KEEP_DEFAULT;
	if (calls->config.bytes_max == 0)
		calls->config.bytes_max = half_of_disk(config->dir_fd);
	quota_init(&calls->pending,
		config->pending_max ? config->pending_max : CALLS_PENDING_MAX_DEFAULT);
	struct caller self;
	caller_load_reader(&self, geteuid(), getegid(), getpid());
	calls->own_pid_ns = self.pid_ns;
	return calls;
}

void table_free_entry(struct entry *entry)
{
	for (int part = 0; part < CALL_PARTS; part++)
		if (entry->growing[part] >= 0)
			close(entry->growing[part]);
	tool_unref(entry->call.tool);
	free(entry->request);
	free(entry);
}

void calls_free(struct calls *calls)
{
	if (!calls)
		return;
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&calls->by_seq, &at)))
		table_free_entry(slot->value);
	map_release(&calls->by_seq);
	shelves_release(&calls->shelves);
	quota_release(&calls->pending);
	free(calls);
}

void calls_listen(struct calls *calls, const struct calls_listener *listener, void *arg)
{
	calls->listener = listener;
	calls->listener_arg = arg;
}

void table_tell_change(const struct entry *entry)
{
	const struct calls *calls = entry->calls;
	if (calls->listener)
		calls->listener->on_change(calls->listener_arg, &entry->call);
}

/* Grows with the clock, so that no number comes again after a restart without being stored. */
static uint64_t next_seq(struct calls *calls)
{
	uint64_t from_clock = (uint64_t)time(NULL) << SEQ_SECOND_BITS;
	calls->last_seq = from_clock > calls->last_seq ? from_clock : calls->last_seq + 1;
	return calls->last_seq;
}

struct entry *table_new_entry(struct calls *calls)
{
	struct entry *entry = xcalloc(1, sizeof(*entry));
	entry->calls = calls;
	for (int part = 0; part < CALL_PARTS; part++)
		entry->growing[part] = -1;
	return entry;
}

void table_place(struct entry *entry, struct tool *tool)
{
	struct calls *calls = entry->calls;
	struct call *call = &entry->call;
	call->tool = tool_ref(tool);
	if (call->seq > calls->last_seq)
		calls->last_seq = call->seq;
	map_put(&calls->by_seq, call->seq, entry);
	shelf_insert(shelves_make(&calls->shelves, tool_key(tool), call->uid), entry);
}

struct entry *table_make_entry(
	struct calls *calls, struct tool *tool, const struct caller *caller, enum call_state state)
{
	struct entry *entry = table_new_entry(calls);
	struct call *call = &entry->call;
	call->seq = next_seq(calls);
	call->uid = caller->who.uid;
	call->gid = caller->who.gid;
	call->pid_ns = caller->pid_ns;
	call->chain = caller->chain;
	call->state = state;
	call->created_ms = call->changed_ms = table_now_ms();
	snprintf(call->id, sizeof(call->id), "%" PRIx64, call->seq);
	table_place(entry, tool);
	return entry;
}

struct entry *table_find(const struct calls *calls, uint64_t seq)
{
	return map_get(&calls->by_seq, seq);
}

void table_count_ended(struct entry *entry)
{
	entry->shelf->finished_count++;
	entry->shelf->bytes += entry_bytes(entry);
	entry->calls->bytes += entry_bytes(entry);
}

void table_forget(struct entry *entry)
{
	struct calls *calls = entry->calls;
	struct shelf *shelf = entry->shelf;
	if (calls->listener)
		calls->listener->on_forget(calls->listener_arg, &entry->call);
	record_remove(calls->config.dir_fd, entry->call.seq);
	if (entry->call.state == CALL_RESERVED)
		shelf->reserved_count--;
	if (call_state_is_final(entry->call.state)) {
		shelf->finished_count--;
		shelf->bytes -= entry_bytes(entry);
		calls->bytes -= entry_bytes(entry);
	}
	map_remove(&calls->by_seq, entry->call.seq);
	shelf_remove(entry);
	shelves_drop_empty(&calls->shelves, shelf);
	table_free_entry(entry);
}

void table_drop_surplus(struct calls *calls, struct shelf *shelf)
{
	struct entry *surplus;
	/* keep is at least 1, so the shelf is never emptied, and freed, in here. */
	while ((surplus = shelf_surplus(shelf, calls->config.keep, table_now_ms())))
		table_forget(surplus);
	/* Whoever holds the most gives way; the last result of each stays. */
	while (calls->bytes > calls->config.bytes_max &&
		(shelf = shelves_heaviest(&calls->shelves)))
		table_forget(shelf_first_ended(shelf));
}
