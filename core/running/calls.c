#include "core/running/calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/base/xalloc.h"
#include "core/running/quota.h"
#include "core/running/record.h"
#include "core/running/shelf.h"
#include "core/tools/params.h"

#define RESERVED_MAX 256   /* ids that one caller may reserve of one tool */
#define SEQ_SECOND_BITS 20 /* numbers a second that a restart cannot give again */

struct calls {
	struct loop *loop;         /* borrowed */
	struct executor *executor; /* borrowed */
	struct calls_config config;
	struct map by_seq; /* seq -> owned struct entry */
	struct shelves shelves;
	size_t bytes;         /* that finished calls hold */
	struct quota pending; /* bytes of requests that wait or run */
	uint64_t last_seq;
	uint64_t own_pid_ns;
	const struct calls_listener *listener;
	void *listener_arg;
	struct calls_stats stats;
};

static int64_t now_ms(void)
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

static void free_entry(struct entry *entry)
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
		free_entry(slot->value);
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

static void tell_change(const struct entry *entry)
{
	const struct calls *calls = entry->calls;
	if (calls->listener)
		calls->listener->on_change(calls->listener_arg, &entry->call);
}

/* ---- entries: made, forgotten, found */

/* Grows with the clock, so that no number comes again after a restart without being stored. */
static uint64_t next_seq(struct calls *calls)
{
	uint64_t from_clock = (uint64_t)time(NULL) << SEQ_SECOND_BITS;
	calls->last_seq = from_clock > calls->last_seq ? from_clock : calls->last_seq + 1;
	return calls->last_seq;
}

static struct entry *new_entry(struct calls *calls)
{
	struct entry *entry = xcalloc(1, sizeof(*entry));
	entry->calls = calls;
	for (int part = 0; part < CALL_PARTS; part++)
		entry->growing[part] = -1;
	return entry;
}

static struct entry *make_entry(
	struct calls *calls, struct tool *tool, const struct caller *caller, enum call_state state)
{
	struct entry *entry = new_entry(calls);
	struct call *call = &entry->call;
	call->seq = next_seq(calls);
	call->tool = tool_ref(tool);
	call->uid = caller->who.uid;
	call->gid = caller->who.gid;
	call->pid_ns = caller->pid_ns;
	call->chain = caller->chain;
	call->state = state;
	call->created_ms = call->changed_ms = now_ms();
	snprintf(call->id, sizeof(call->id), "%" PRIx64, call->seq);
	map_put(&calls->by_seq, call->seq, entry);
	shelf_insert(shelves_make(&calls->shelves, tool->name, call->uid), entry);
	return entry;
}

static struct entry *find_entry(const struct calls *calls, uint64_t seq)
{
	return map_get(&calls->by_seq, seq);
}

static void forget(struct entry *entry)
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
	free_entry(entry);
}

static void drop_surplus(struct calls *calls, struct shelf *shelf)
{
	struct entry *surplus;
	/* keep is at least 1, so the shelf is never emptied, and freed, in here. */
	while ((surplus = shelf_surplus(shelf, calls->config.keep, now_ms())))
		forget(surplus);
	/* Whoever holds the most gives way; the last result of each stays. */
	while (calls->bytes > calls->config.bytes_max &&
		(shelf = shelves_heaviest(&calls->shelves)))
		forget(shelf_first_ended(shelf));
}

/* ---- what a call leaves */

static void complain(struct entry *entry, const char *what, int error)
{
	if (!entry->complained)
		log_msg(LOG_LEVEL_ERROR, "call %s of %s: its %s cannot be kept: %s", entry->call.id,
			entry->call.tool->name, what, strerror(-error));
	entry->complained = true;
}

static void append_growing(struct entry *entry, enum call_part part, const char *bytes, size_t len)
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
	call->changed_ms = now_ms();
}

static void close_growing(struct entry *entry)
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

/* While it runs there is a record with the request alone. */
static void save_request(struct entry *entry)
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

/* result becomes ours. */
static void finish(struct entry *entry, enum call_state state, struct result *result)
{
	struct calls *calls = entry->calls;
	struct call *call = &entry->call;
	call->state = state;
	call->changed_ms = now_ms();
	if (state != CALL_DONE)
		set_reason(call, result->text);
	close_growing(entry);
	int saved = save_record(entry, result);
	if (saved < 0)
		save_failure(entry, saved);
	result_release(result);
	free(take_ptr(&entry->request));
	quota_give(&calls->pending, call->uid, entry->pending);
	entry->pending = 0;
	entry->job = NULL;
	calls->stats.ended[call->state]++;
	entry->shelf->finished_count++;
	entry->shelf->bytes += entry_bytes(entry);
	calls->bytes += entry_bytes(entry);
	shelf_supersede(entry);
	void (*on_end)(void *, const struct call *) = entry->on_end;
	entry->on_end = NULL;
	tell_change(entry);
	if (on_end)
		on_end(entry->on_end_arg, call);
	if (entry->forgotten)
		forget(entry);
	else
		drop_surplus(calls, entry->shelf);
}

/* ---- what the executor tells */

static void on_job_start(void *arg, pid_t host_pid)
{
	struct entry *entry = arg;
	(void)host_pid;
	entry->call.state = CALL_RUNNING;
	entry->call.started_ms = entry->call.changed_ms = now_ms();
	int result = record_mark(entry->calls->config.dir_fd, &entry->call);
	if (result < 0)
		log_msg(LOG_LEVEL_WARNING, "that call %s runs is not in its record: %s",
			entry->call.id, strerror(-result));
	tell_change(entry);
}

static void on_job_progress(void *arg, const char *json, size_t len)
{
	struct entry *entry = arg;
	append_growing(entry, CALL_PART_PROGRESS, json, len);
	append_growing(entry, CALL_PART_PROGRESS, "\n", 1);
	tell_change(entry);
}

static void on_job_output(void *arg, const char *bytes, size_t len)
{
	struct entry *entry = arg;
	append_growing(entry, CALL_PART_LOG, bytes, len);
	tell_change(entry);
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
	finish(arg, states[end], result);
}

static const struct job_events job_events = {
	.on_start = on_job_start,
	.on_progress = on_job_progress,
	.on_output = on_job_output,
	.on_end = on_job_end,
};

/* ---- starting */

static void refuse(struct entry *entry, const struct fail *why)
{
	struct result result = RESULT_INIT;
	result_from_error(&result, "%s", why->text);
	finish(entry, CALL_REFUSED, &result);
}

/* The entry for a request: the reserved one; or a new one, with *why where that cannot be had. */
static struct entry *entry_for(struct calls *calls, struct tool *tool, const struct caller *caller,
	uint64_t reserved, struct fail *why)
{
	struct entry *entry = reserved ? find_entry(calls, reserved) : NULL;
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
	return make_entry(calls, tool, caller, CALL_QUEUED);
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
		append_growing(entry, CALL_PART_LOG, warnings.data, warnings.len);
	close_growing(entry); /* very many may wait */
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
			.timeout_ms = calls->config.timeout_ms,
			.tag = entry->call.seq,
			.nested = is_nested(calls, order->caller),
		};
		/* Before it can begin: what has no record has not run. */
		save_request(entry);
		entry->job = executor_submit(calls->executor, &request, &job_events, entry, why);
	}
	if (why->code) {
		refuse(entry, why);
		return why->code;
	}
	entry->on_end = on_end;
	entry->on_end_arg = arg;
	tell_change(entry);
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
	struct entry *entry = find_entry(calls, seq);
	if (!entry || call_state_is_final(entry->call.state))
		return;
	entry->on_end = on_end;
	entry->on_end_arg = arg;
}

void calls_cancel(struct calls *calls, uint64_t seq)
{
	struct entry *entry = find_entry(calls, seq);
	if (entry && entry->job)
		executor_cancel(entry->job);
}

void calls_unwatch(struct calls *calls, uint64_t seq)
{
	struct entry *entry = find_entry(calls, seq);
	if (entry)
		entry->on_end = NULL;
}

/* ---- what an earlier process has left */

struct recovery {
	struct calls *calls;
	struct tool *(*find_tool)(void *arg, const char *name);
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
	struct entry *entry = new_entry(calls);
	struct call *call = &entry->call;
	char tool_name[256];
	int result = record_load(calls->config.dir_fd, name, call, tool_name);
	struct tool *tool = result == 0 ? recovery->find_tool(recovery->arg, tool_name) : NULL;
	if (!tool || map_get(&calls->by_seq, call->seq)) {
		if (call->seq && !map_get(&calls->by_seq, call->seq))
			record_remove(calls->config.dir_fd, call->seq);
		free_entry(entry);
		return;
	}
	call->tool = tool_ref(tool);
	if (call->seq > calls->last_seq)
		calls->last_seq = call->seq;
	map_put(&calls->by_seq, call->seq, entry);
	shelf_insert(shelves_make(&calls->shelves, tool->name, call->uid), entry);
	char own_id[CALL_ID_MAX + 1];
	snprintf(own_id, sizeof(own_id), "%" PRIx64, call->seq);
	entry->named = strcmp(own_id, call->id) != 0;
	entry->shelf->reserved_count += call->state == CALL_RESERVED;
	if (call_state_is_final(call->state)) {
		entry->shelf->finished_count++;
		entry->shelf->bytes += entry_bytes(entry);
		calls->bytes += entry_bytes(entry);
	}
	if (!call_state_is_final(call->state))
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

static struct tool *find_tool(void *arg, const char *name)
{
	const struct recovery *recovery = arg;
	return recovery->find_tool(recovery->arg, name);
}

static bool find_job(void *arg, uint64_t tag, const struct job_events **events, void **job_arg)
{
	const struct recovery *recovery = arg;
	struct entry *entry = find_entry(recovery->calls, tag);
	if (!entry || call_state_is_final(entry->call.state) || entry->job)
		return false;
	*events = &job_events;
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
	finish(entry, CALL_FAILED, &result);
}

static void on_lost_job(void *arg, uint64_t tag)
{
	const struct recovery *recovery = arg;
	struct entry *entry = find_entry(recovery->calls, tag);
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
		entry->call.id, &job_events, entry, &why);
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

void calls_recover(
	struct calls *calls, struct tool *(*find)(void *arg, const char *name), void *arg)
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
	const struct shelf *shelf = shelves_find(&calls->shelves, tool->name, caller->who.uid);
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
	struct entry *entry = make_entry(calls, tool, caller, CALL_RESERVED);
	snprintf(entry->call.id, sizeof(entry->call.id), "%s", id);
	entry->named = true;
	entry->shelf->reserved_count++;
	save_request(entry);
	tell_change(entry);
	return entry->call.seq;
}

void calls_forget(struct calls *calls, uint64_t seq)
{
	struct entry *entry = find_entry(calls, seq);
	if (!entry)
		return;
	if (!entry->job) {
		forget(entry);
		return;
	}
	/* It goes when it has ended: until then its host works for it. */
	entry->forgotten = true;
	executor_cancel(entry->job);
}

/* ---- looking */

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
	const struct entry *entry = find_entry(calls, seq);
	return entry && !entry->forgotten ? &entry->call : NULL;
}

const struct call *calls_nearest(const struct calls *calls, const struct tool *tool,
	const struct caller *reader, bool finished)
{
	const struct shelf *shelf = shelves_find(&calls->shelves, tool->name, reader->who.uid);
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
	const struct shelf *own = shelves_find(&calls->shelves, tool->name, caller->who.uid);
	if (own)
		visit_shelf(calls, own, caller, visit, arg);
	/* Nobody else sees what others have. */
	size_t at = 0;
	const struct map_slot *slot;
	while (caller->who.uid == 0 && (slot = map_next(&calls->shelves.by_key, &at)))
		for (const struct shelf *shelf = slot->value; shelf; shelf = shelf->next)
			if (shelf != own && strcmp(shelf->tool_name, tool->name) == 0)
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
