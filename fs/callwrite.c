#include "fs/callwrite.h"

#include <errno.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "fs/answer.h"
#include "fs/callkept.h"
#include "fs/callopen.h"
#include "fs/callwait.h"
#include "fs/options.h"
#include "fs/server.h"
#include "fs/session.h"

/* Nothing runs: the reason is in result.*, and the error sticks. */
static void refuse_write(
	struct callfile *file, fuse_req_t req, uint64_t seq, const struct fail *why)
{
	const struct calls *calls = file->server->calls;
	file->sticky = -why->code;
	file->outcome = file->sticky;
	file->phase = PHASE_DONE;
	file->seq = seq;
	if (file->readable)
		file->result = answer_of_refusal(file->server, file->opener_uid,
			calls_get(calls, seq), file->tool, file->run, why);
	callopen_drop_document(file);
	callkept_note(file);
	fuse_reply_err(req, file->sticky);
}

/*
 * For whom the call runs: the one who opened the file. Bytes may come from another process: one of
 * root's that somebody else's shell has redirected here must not run anything as root, nor must
 * what somebody writes to a file that root has opened. The same holds for containers: who is out of
 * one may be given a descriptor that was opened in there.
 */
static int load_caller(struct callfile *file, const struct fuse_ctx *ctx, struct fail *why)
{
	struct caller *caller = &file->caller;
	/* At each write: the thread of an earlier one may have ended, and its number be another's. */
	caller_load(caller, ctx->uid, ctx->gid, ctx->pid);
	caller_confine(caller, file->opener_caps, &file->opener_place);
	if (ctx->uid == file->opener_uid || file->opener_uid == 0)
		return 0;
	if (ctx->uid != 0)
		return fail_set(why, -EACCES,
			"the call file was opened by uid %u and written to by uid %u: open it as "
			"the user who calls",
			(unsigned)file->opener_uid, (unsigned)ctx->uid);
	caller_demote(caller, file->opener_uid, file->opener_gid);
	return 0;
}

/* What `run` has handed over becomes a request, or a request for help. 0, 1 for help, or *why. */
static int read_run(struct callfile *file, struct fail *why)
{
	file->run = xcalloc(1, sizeof(*file->run));
	int result = arguments_read(
		file->run, file->tool, &file->document, file->server->options->request_max, why);
	return result == 0 && file->run->help ? 1 : result;
}

static void start_call(struct callfile *file, fuse_req_t req, size_t size)
{
	struct fail why = FAIL_INIT;
	uint64_t seq = 0;
	const struct buf *document = file->run ? &file->run->request : &file->document.bytes;
	const struct call_order order = { .tool = file->tool,
		.caller = &file->caller,
		.reserved = file->reserved,
		.document = document->data,
		.len = document->len };
	server_refresh_environment(file->server, file->tool);
	/* Its number goes into the state before it can begin: whatever happens, it starts once. */
	file->kept->seq = 0;
	file->kept->start_unique = session_unique(file->server->session);
	int result = calls_start(
		file->server->calls, &order, callwait_on_end, file, &file->kept->seq, &why);
	seq = file->kept->seq;
	if (result < 0) {
		refuse_write(file, req, seq, &why);
		return;
	}
	file->seq = seq;
	file->phase = PHASE_RUN;
	file->awaited = false;
	callkept_note(file);
	server_note_start(file->server, seq);
	if (!file->readable) {
		file->write = callwait_park(file, req, size, 0);
		return;
	}
	callopen_drop_document(file);
	callwait_accept_write(file, req, size);
}

static void refuse_document(struct callfile *file, fuse_req_t req, const struct fail *why)
{
	if (file->document.kind == DOCUMENT_RUN && !file->run) {
		file->run = xcalloc(1, sizeof(*file->run));
		arguments_init(file->run, file->tool);
	}
	uint64_t seq =
		calls_refuse(file->server->calls, file->tool, &file->caller, file->reserved, why);
	refuse_write(file, req, seq, why);
}

static void show_help(struct callfile *file, fuse_req_t req, size_t size)
{
	file->phase = PHASE_DONE;
	file->result = answer_of_help(file->server, file->opener_uid, file->tool, file->run);
	callopen_drop_document(file);
	callwait_accept_write(file, req, size);
}

/* What is gathered lies in memory, and anybody can open very many files. */
static int charge(struct callfile *file, size_t bytes, struct fail *why)
{
	struct quota *quota = &file->server->gathering;
	if (!quota_take(quota, file->opener_uid, bytes))
		return fail_set(why, -EBUSY,
			"uid %u has open call files with more than %zu bytes written; close some",
			(unsigned)file->opener_uid, quota->max);
	file->charged += bytes;
	return 0;
}

/* The tool as it is now: it may have been edited, or removed, since the file was opened. */
static int refresh_tool(struct callfile *file, struct fail *why)
{
	struct tool *now = forest_find_tool(file->server->forest, tool_key(file->tool));
	/* Or its owner is another one of that name, who has come since. */
	if (!now || now->owner != file->tool->owner)
		return fail_set(why, -ENODEV, "the tool '%s' was removed; nothing was run",
			file->tool->name);
	tool_ref(now);
	tool_unref(file->tool);
	file->tool = now;
	return 0;
}

void callwrite_gather(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	struct fail why = FAIL_INIT;
	int help = 0;
	file->kept->gathered++;
	file->kept->gather_unique = session_unique(file->server->session);
	file->last_write_at = file->document.bytes.len;
	if (file->refused_seq)
		calls_forget(file->server->calls, file->refused_seq);
	file->refused_seq = 0;
	if (load_caller(file, fuse_req_ctx(req), &why) == 0 && refresh_tool(file, &why) == 0 &&
		charge(file, size, &why) == 0 &&
		document_add(&file->document, bytes, size, &why) == 0 &&
		file->document.state == DOCUMENT_COMPLETE && file->document.kind == DOCUMENT_RUN)
		help = read_run(file, &why);
	if (why.code)
		refuse_document(file, req, &why);
	else if (help)
		show_help(file, req, size);
	else if (file->document.state == DOCUMENT_COMPLETE)
		start_call(file, req, size);
	else
		callwait_accept_write(file, req, size);
}

uint64_t callwrite_refuse_partial(struct callfile *file)
{
	struct fail why = FAIL_INIT;
	fail_set(&why, -EINVAL,
		"the request ends before its JSON object is closed (after %zu bytes): a '}' or a quote "
		"is missing; nothing was run",
		file->document.bytes.len);
	return calls_refuse(file->server->calls, file->tool, &file->caller, file->reserved, &why);
}
