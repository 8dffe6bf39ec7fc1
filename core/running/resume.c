#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/running/outcome.h"
#include "core/running/record.h"
#include "core/running/table.h"

struct recovery {
	struct calls *calls;
	struct tool *(*find_tool)(void *arg, const char *key);
	void *arg;
};

/* The redacted request, which the record of the end holds as well. */
static void reload_request(struct entry *entry)
{
	struct fail why = FAIL_INIT;
	size_t len = entry->call.part_len[CALL_PART_REQUEST];
	auto_buf struct buf text = BUF_INIT(len);
	int result = record_read(
		entry->calls->config.dir_fd, &entry->call, CALL_PART_REQUEST, 0, len, &text, &why);
	if (result < 0 || len == 0)
		return;
	entry->request = xcalloc(len + 1, 1);
	memcpy(entry->request, text.data, len);
}

static void recover_record(const struct recovery *recovery, const char *name)
{
	struct calls *calls = recovery->calls;
	struct entry *entry = table_new_entry(calls);
	struct call *call = &entry->call;
	char key[TOOL_KEY_MAX];
	int result = record_load(calls->config.dir_fd, name, call, key);
	struct tool *tool = result == 0 ? recovery->find_tool(recovery->arg, key) : NULL;
	if (!tool || map_get(&calls->by_seq, call->seq)) {
		if (call->seq && !map_get(&calls->by_seq, call->seq))
			record_remove(calls->config.dir_fd, call->seq);
		table_free_entry(entry);
		return;
	}
	table_place(entry, tool);
	char own_id[CALL_ID_MAX + 1];
	snprintf(own_id, sizeof(own_id), "%" PRIx64, call->seq);
	entry->named = strcmp(own_id, call->id) != 0;
	entry->shelf->reserved_count += call->state == CALL_RESERVED;
	if (call_state_is_final(call->state))
		table_count_ended(entry);
	else
		reload_request(entry);
}

static bool is_record_name(const char *name)
{
	return name[0] && name[strspn(name, "0123456789abcdef")] == '\0';
}

static void recover_records(const struct recovery *recovery)
{
	auto_close int fd =
		openat(recovery->calls->config.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		log_errno(LOG_LEVEL_ERROR, "cannot look for what calls have left");
		return;
	}
	take_fd(&fd); /* the stream's */
	const struct dirent *item;
	while ((item = readdir(stream)))
		if (is_record_name(item->d_name))
			recover_record(recovery, item->d_name);
}

static struct tool *find_tool(void *arg, const char *key)
{
	const struct recovery *recovery = arg;
	return recovery->find_tool(recovery->arg, key);
}

static bool find_job(void *arg, uint64_t tag, const struct job_events **events, void **job_arg)
{
	const struct recovery *recovery = arg;
	struct entry *entry = table_find(recovery->calls, tag);
	if (!entry || call_state_is_final(entry->call.state) || entry->job)
		return false;
	*events = &outcome_events;
	*job_arg = entry;
	return true;
}

static void on_recovered_job(void *job_arg, struct job *job)
{
	struct entry *entry = job_arg;
	entry->job = job;
	entry->call.state = CALL_RUNNING;
	entry->calls->stats.resumed++;
}

static void end_recovered(struct entry *entry, const char *text)
{
	struct result result = RESULT_INIT;
	result_from_error(&result, "%s", text);
	outcome_finish(entry, CALL_FAILED, &result);
}

static void on_lost_job(void *arg, uint64_t tag)
{
	const struct recovery *recovery = arg;
	struct entry *entry = table_find(recovery->calls, tag);
	if (!entry || call_state_is_final(entry->call.state))
		return;
	recovery->calls->stats.unknown++;
	end_recovered(entry,
		"The outcome of this call is unknown: pegfs was restarted while the tool was being "
		"started, and it may have begun. Look whether it had an effect before you call again.");
}

/* The oldest that has neither ended nor is with a host. */
static struct entry *find_left(const struct calls *calls)
{
	struct entry *found = NULL;
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&calls->by_seq, &at))) {
		struct entry *entry = slot->value;
		if (!entry->job && !call_state_is_final(entry->call.state) &&
			entry->call.state != CALL_RESERVED &&
			(!found || entry->call.seq < found->call.seq))
			found = entry;
	}
	return found;
}

/* It waited for a host, and does so again. */
static bool wait_again(struct entry *entry)
{
	struct fail why = FAIL_INIT;
	if (entry->call.state != CALL_QUEUED)
		return false;
	entry->job = executor_resubmit(entry->calls->executor, entry->call.seq, entry->call.tool,
		entry->call.id, &outcome_events, entry, &why);
	return entry->job != NULL;
}

static void settle_what_is_left(struct calls *calls)
{
	struct entry *entry;
	while ((entry = find_left(calls))) {
		if (wait_again(entry))
			continue;
		if (entry->call.state == CALL_QUEUED) {
			entry->call.not_run = true;
			end_recovered(entry,
				"The call was not run: pegfs was restarted while it waited for its "
				"turn. Call again.");
			continue;
		}
		calls->stats.unknown++;
		end_recovered(entry,
			"The outcome of this call is unknown: pegfs was restarted while the tool ran, "
			"and the tool's process was lost. Look whether it had an effect before you "
			"call again.");
	}
}

void calls_recover(struct calls *calls, struct tool *(*find)(void *arg, const char *key), void *arg)
{
	static const struct executor_heirs heirs = { .find_tool = find_tool,
		.find_job = find_job,
		.on_job = on_recovered_job,
		.on_lost = on_lost_job };
	struct recovery recovery = { .calls = calls, .find_tool = find, .arg = arg };
	recover_records(&recovery);
	executor_recover(calls->executor, &heirs, &recovery);
	settle_what_is_left(calls);
}
