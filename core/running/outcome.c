#include "core/running/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/running/record.h"
#include "core/running/table.h"

static void complain(struct entry *entry, const char *what, int error)
{
	if (!entry->complained)
		log_msg(LOG_LEVEL_ERROR, "call %s of %s: its %s cannot be kept: %s", entry->call.id,
			tool_key(entry->call.tool), what, strerror(-error));
	entry->complained = true;
}

void outcome_append(struct entry *entry, enum call_part part, const char *bytes, size_t len)
{
	struct call *call = &entry->call;
	int *fd = &entry->growing[part];
	if (*fd < 0)
		*fd = record_open_growing(entry->calls->config.dir_fd, call->seq, part);
	int result = *fd < 0 ? *fd : io_write_all(*fd, bytes, len);
	if (result < 0) {
		complain(entry, part == CALL_PART_LOG ? "log" : "progress", result);
		/* What was written of it is in the way of what comes next. */
		if (*fd >= 0 && ftruncate(*fd, (off_t)call->part_len[part]) < 0)
			close(take_fd(fd));
		return;
	}
	call->part_len[part] += len;
	call->changed_ms = table_now_ms();
}

void outcome_close_growing(struct entry *entry)
{
	for (int part = 0; part < CALL_PARTS; part++)
		if (entry->growing[part] >= 0)
			close(take_fd(&entry->growing[part]));
}

/* Returns 0, or a negative errno where nothing was kept. */
static int save_record(struct entry *entry, const struct result *result)
{
	struct call *call = &entry->call;
	call->part_len[CALL_PART_REQUEST] = entry->request ? strlen(entry->request) : 0;
	call->part_len[CALL_PART_RESULT_JSON] = result->json_len;
	call->part_len[CALL_PART_RESULT_TEXT] = result->text_len;
	const struct record_parts parts = { .request = entry->request ? entry->request : "",
		.result_json = result->json,
		.result_text = result->text };
	int saved = record_save(entry->calls->config.dir_fd, call, &parts);
	if (saved == 0)
		return 0;
	complain(entry, call_state_is_final(call->state) ? "result" : "request", saved);
	call->part_len[CALL_PART_REQUEST] = 0;
	call->part_len[CALL_PART_RESULT_JSON] = 0;
	call->part_len[CALL_PART_RESULT_TEXT] = 0;
	return saved;
}

void outcome_save_request(struct entry *entry)
{
	const struct result none = { .json = (char[]){ "" }, .text = (char[]){ "" } };
	save_record(entry, &none);
}

/* The first line of an error's text is the reason that status shows. */
static void set_reason(struct call *call, const char *text)
{
	size_t len = strcspn(text, "\n");
	snprintf(call->reason, sizeof(call->reason), "%.*s",
		(int)(len < CALL_REASON_MAX ? len : CALL_REASON_MAX - 1), text);
	utf8_trim_partial(call->reason);
}

/* A result that nobody can read must not count as one; a short one that says so may have room. */
static void save_failure(struct entry *entry, int error)
{
	struct result result = RESULT_INIT;
	result_from_error(
		&result, "The result of the call could not be kept: %s.", strerror(-error));
	entry->call.state = CALL_FAILED;
	set_reason(&entry->call, result.text);
	free(take_ptr(&entry->request));
	save_record(entry, &result);
	result_release(&result);
}

void outcome_finish(struct entry *entry, enum call_state state, struct result *result)
{
	struct calls *calls = entry->calls;
	struct call *call = &entry->call;
	call->state = state;
	call->changed_ms = table_now_ms();
	if (state != CALL_DONE)
		set_reason(call, result->text);
	outcome_close_growing(entry);
	int saved = save_record(entry, result);
	if (saved < 0)
		save_failure(entry, saved);
	result_release(result);
	free(take_ptr(&entry->request));
	quota_give(&calls->pending, call->uid, entry->pending);
	entry->pending = 0;
	entry->job = NULL;
	calls->stats.ended[call->state]++;
	table_count_ended(entry);
	shelf_supersede(entry);
	void (*on_end)(void *, const struct call *) = entry->on_end;
	entry->on_end = NULL;
	table_tell_change(entry);
	if (on_end)
		on_end(entry->on_end_arg, call);
	if (entry->forgotten)
		table_forget(entry);
	else
		table_drop_surplus(calls, entry->shelf);
}

/* ---- what the executor tells */

static void on_job_start(void *arg, pid_t host_pid)
{
	struct entry *entry = arg;
	(void)host_pid;
	entry->call.state = CALL_RUNNING;
	entry->call.started_ms = entry->call.changed_ms = table_now_ms();
	int result = record_mark(entry->calls->config.dir_fd, &entry->call);
	if (result < 0)
		log_msg(LOG_LEVEL_WARNING, "that call %s runs is not in its record: %s",
			entry->call.id, strerror(-result));
	table_tell_change(entry);
}

static void on_job_progress(void *arg, const char *json, size_t len)
{
	struct entry *entry = arg;
	outcome_append(entry, CALL_PART_PROGRESS, json, len);
	outcome_append(entry, CALL_PART_PROGRESS, "\n", 1);
	table_tell_change(entry);
}

static void on_job_output(void *arg, const char *bytes, size_t len)
{
	struct entry *entry = arg;
	outcome_append(entry, CALL_PART_LOG, bytes, len);
	table_tell_change(entry);
}

static void on_job_end(void *arg, enum job_end end, struct result *result)
{
	static const enum call_state states[] = {
		[JOB_DONE] = CALL_DONE,
		[JOB_FAILED] = CALL_FAILED,
		[JOB_CRASHED] = CALL_FAILED,
		[JOB_TIMED_OUT] = CALL_TIMED_OUT,
		[JOB_CANCELLED] = CALL_CANCELLED,
	};
	outcome_finish(arg, states[end], result);
}

const struct job_events outcome_events = {
	.on_start = on_job_start,
	.on_progress = on_job_progress,
	.on_output = on_job_output,
	.on_end = on_job_end,
};
