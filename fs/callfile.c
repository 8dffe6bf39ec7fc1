/*
 * The handle of `call`: GATHER -> RUN -> DONE, and an errno that sticks.
 *
 * GATHER collects bytes until one JSON object is complete, over any number of writes at any offset.
 * The write that completes it starts the call. On a descriptor that can only be written, that write
 * is held until the call has ended and carries its outcome; on one that can be read as well, it
 * returns at once and reads are held until there is a result. In DONE, a readable one takes the next
 * document once some of the result was read; a write-only one takes none (H3).
 *
 * Every error but EBUSY sticks to the handle: programs write the same bytes again after an error
 * (H2), and must not run the tool again.
 *
 * A request that is held is parked (parked.h); once there was a signal to its caller, the verdict is
 * asked for again and again until there is an answer (H5).
 *
 * All but the bytes is noted in the state (struct kept), before anything is answered: so the next
 * server goes on where this one was. Bytes that were gathered are lost, and then the file is of no
 * use any more (EIO, which sticks). The write that starts a call is noted with the call's number
 * before the call can begin, so that it starts nothing when it comes again.
 *
 * A tool's `run` writes its words instead of JSON and reads its own kind of answer (arguments.h).
 */
#include "fs/callfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"
#include "core/running/quota.h"
#include "core/tools/arguments.h"
#include "core/tools/document.h"
#include "fs/answer.h"
#include "fs/options.h"
#include "fs/parked.h"
#include "fs/server.h"
#include "fs/session.h"

#define LOOK_EVERY_MS 50

enum phase { PHASE_GATHER, PHASE_RUN, PHASE_DONE };

/* What the next server must know. Plain memory. */
struct kept {
	uint64_t reserved, seq, refused_seq;
	uint64_t start_unique;  /* of the write that started, or was to start, the call seq */
	uint64_t gather_unique; /* of the last write that was gathered */
	int64_t write_end, base;
	uint32_t opener_uid, opener_gid;
	uint64_t opener_caps;
	struct place opener_place;
	int32_t phase, sticky, outcome, show;
	uint32_t gathered; /* writes that were gathered, or are being */
	bool readable, result_read, awaited, detached, is_run, is_help;
};
_Static_assert(sizeof(struct kept) <= STATE_HANDLE_SIZE, "it has to fit into its place");

struct callfile {
	struct server *server; /* borrowed */
	struct tool *tool;     /* a reference */
	struct kept *kept;     /* borrowed, in the state */
	uint64_t reserved;
	fuse_ino_t ino;
	bool lost; /* bytes that an earlier server had gathered */
	bool readable;
	uid_t opener_uid;
	gid_t opener_gid;
	uint64_t opener_caps;
	struct place opener_place;
	struct caller caller; /* who wrote last, for whom the call runs */

	enum phase phase;
	int sticky; /* a positive errno; 0: none */
	struct document document;
	struct arguments *run; /* owned; what `run` was given; NULL: the request is JSON */
	size_t charged;        /* bytes of server->gathering, for the opener */
	size_t last_write_at;  /* in document.bytes: what the last write added */
	uint64_t seq;          /* of the call, in PHASE_RUN */
	uint64_t refused_seq;  /* of what a flush left, in PHASE_GATHER; 0: nothing */

	struct parked *write; /* held; NULL: none */
	struct parked *reads; /* held, newest first */
	bool detached;        /* the held write was let go for a signal; it may come again */
	size_t reattach_at;   /* in document.bytes: up to where it has come again */
	int outcome;          /* of the call, in PHASE_DONE: 0 or a positive errno */

	struct bytes *result; /* PHASE_DONE of a readable one: a reference */
	off_t write_at;       /* the offset of the write at hand */
	off_t write_end;      /* the end offset of the last write that was taken */
	off_t base;           /* the offset at which the result begins; -1: not settled yet */
	bool result_read;     /* at least one byte of it */
	bool awaited;         /* somebody began to wait for the result: leaving cancels (H6) */
	struct fuse_pollhandle *poll; /* owned; the newest */
	struct loop_timer look_timer;
	struct callfile *same_node; /* another readable one of the same node number */
};

/* ---- the size that stat shows of those that can be read: H7 */

static void enter_readable(struct callfile *file)
{
	file->same_node = map_put(&file->server->readable, file->ino, file);
}

static void leave_readable(struct callfile *file)
{
	struct map *readable = &file->server->readable;
	struct callfile *first = map_remove(readable, file->ino);
	for (struct callfile **link = &first; *link; link = &(*link)->same_node)
		if (*link == file) {
			*link = file->same_node;
			break;
		}
	if (first)
		map_put(readable, file->ino, first);
}

bool callfile_size(const struct server *server, fuse_ino_t ino, size_t *size)
{
	const struct callfile *file = map_get(&server->readable, ino);
	if (!file)
		return false;
	/* Before there is a result: beyond wherever its request may end. */
	size_t after = file->result && file->result->len ? file->result->len
							 : file->document.bytes.max + 1;
	*size = (size_t)(file->base > 0 ? file->base : file->write_end) + after;
	return true;
}

static struct kept *kept_in(struct state_handle *place)
{
	return (void *)place->body;
}

static void note(const struct callfile *file)
{
	struct kept *kept = file->kept;
	kept->reserved = file->reserved;
	kept->seq = file->seq;
	kept->refused_seq = file->refused_seq;
	kept->write_end = file->write_end;
	kept->base = file->base;
	kept->opener_uid = file->opener_uid;
	kept->opener_gid = file->opener_gid;
	kept->opener_caps = file->opener_caps;
	kept->opener_place = file->opener_place;
	kept->sticky = file->sticky;
	kept->outcome = file->outcome;
	kept->readable = file->readable;
	kept->result_read = file->result_read;
	kept->awaited = file->awaited;
	kept->detached = file->detached;
	kept->is_run = file->run != NULL;
	kept->show = file->run ? (int32_t)file->run->show : 0;
	kept->is_help = file->run && file->run->help;
	kept->phase = (int32_t)file->phase;
}

static struct callfile *make(struct server *server, struct tool *tool, struct state_handle *place)
{
	struct callfile *file = xcalloc(1, sizeof(*file));
	file->server = server;
	file->tool = tool_ref(tool);
	file->kept = kept_in(place);
	file->ino = place->ino;
	document_init(&file->document, server->options->request_max);
	return file;
}

struct callfile *callfile_new(struct server *server, struct tool *tool, uint64_t reserved,
	const struct fuse_ctx *ctx, struct state_handle *kept, int flags)
{
	struct callfile *file = make(server, tool, kept);
	file->reserved = reserved;
	file->readable = (flags & O_ACCMODE) == O_RDWR;
	file->opener_uid = ctx->uid;
	file->opener_gid = ctx->gid;
	struct identity opener;
	caller_load_identity(&opener, ctx->uid, ctx->gid, ctx->pid);
	file->opener_caps = opener.caps;
	file->opener_place = opener.place;
	file->base = -1;
	if (file->readable)
		enter_readable(file);
	note(file);
	return file;
}

/* What was gathered is needed no longer. */
static void drop_document(struct callfile *file)
{
	quota_give(&file->server->gathering, file->opener_uid, file->charged);
	file->charged = 0;
	document_reset(&file->document);
}

static void look_at_callers(void *arg);

static struct parked *park(struct callfile *file, fuse_req_t req, size_t size, off_t offset)
{
	return parked_new(
		req, size, offset, file->server->loop, &file->look_timer, look_at_callers, file);
}

static void accept_write(struct callfile *file, fuse_req_t req, size_t size)
{
	file->write_end = file->write_at + (off_t)size;
	note(file);
	fuse_reply_write(req, size);
}

static void answer_write(const struct callfile *file, fuse_req_t req, int error, size_t size)
{
	note(file);
	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_write(req, size);
}

/* ---- signals to a caller that is held: 4.6 */

static void let_write_go(struct callfile *file, enum verdict verdict)
{
	if (verdict == VERDICT_FATAL || verdict == VERDICT_CANCEL) {
		file->sticky = ECANCELED;
		calls_cancel(file->server->calls, file->seq);
	} else {
		file->detached = true;
		file->reattach_at = file->last_write_at;
	}
	note(file);
	fuse_reply_err(parked_take(&file->write), EINTR);
}

static void look_at_callers(void *arg)
{
	struct callfile *file = arg;
	bool again = false;
	enum verdict verdict = file->write ? parked_judge(file->write) : VERDICT_NONE;
	if (verdict != VERDICT_NONE)
		let_write_go(file, verdict);
	else if (file->write)
		again = file->write->interrupted;
	struct parked **slot = &file->reads;
	while (*slot) {
		if (parked_judge(*slot) != VERDICT_NONE) {
			fuse_reply_err(parked_take(slot), EINTR);
			continue;
		}
		again |= (*slot)->interrupted;
		slot = &(*slot)->next;
	}
	if (again)
		loop_arm_timer(file->server->loop, &file->look_timer, LOOK_EVERY_MS,
			look_at_callers, file);
}

/* ---- the result */

/* Where the result begins: at 0 for who seeks back, else where the writing has ended. 4.4, READ. */
static void settle_base(struct callfile *file, off_t offset)
{
	if (file->base < 0)
		file->base = offset >= file->write_end ? offset : 0;
}

static void answer_read(struct callfile *file, fuse_req_t req, size_t size, off_t offset)
{
	size_t len = file->result ? file->result->len : 0;
	if (len == 0) { /* it could not be kept, and an empty answer would be a lie */
		fuse_reply_err(req, EIO);
		return;
	}
	settle_base(file, offset);
	off_t at = offset - file->base;
	if (at < 0 || (uint64_t)at >= len) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	if (size > len - (size_t)at)
		size = len - (size_t)at;
	file->result_read |= size > 0;
	note(file);
	fuse_reply_buf(req, file->result->data + at, size);
}

static void answer_waiting(struct callfile *file)
{
	if (file->write) {
		size_t size = file->write->size;
		file->sticky = file->outcome;
		answer_write(file, parked_take(&file->write), file->outcome, size);
	}
	while (file->reads) {
		size_t size = file->reads->size;
		off_t offset = file->reads->offset;
		answer_read(file, parked_take(&file->reads), size, offset);
	}
	if (file->poll) {
		fuse_lowlevel_notify_poll(file->poll);
		fuse_pollhandle_destroy(file->poll);
		file->poll = NULL;
	}
}

static void on_call_end(void *arg, const struct call *call)
{
	struct callfile *file = arg;
	file->phase = PHASE_DONE;
	file->outcome = -call_outcome(call);
	if (file->readable)
		file->result = answer_of_call(file->server->calls, call, file->run);
	/* Its bytes are needed once more where its writer was let go and may come again. */
	if (!file->detached)
		drop_document(file);
	loop_cancel_timer(&file->look_timer);
	note(file);
	answer_waiting(file);
}

/* ---- writing */

static void free_run(struct callfile *file)
{
	if (file->run)
		arguments_release(file->run);
	free(file->run);
	file->run = NULL;
}

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
		file->result =
			answer_of_refusal(calls, calls_get(calls, seq), file->tool, file->run, why);
	drop_document(file);
	note(file);
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
	server_refresh_environment(file->server);
	/* Its number goes into the state before it can begin: whatever happens, it starts once. */
	file->kept->seq = 0;
	file->kept->start_unique = session_unique(file->server->session);
	int result =
		calls_start(file->server->calls, &order, on_call_end, file, &file->kept->seq, &why);
	seq = file->kept->seq;
	if (result < 0) {
		refuse_write(file, req, seq, &why);
		return;
	}
	file->seq = seq;
	file->phase = PHASE_RUN;
	file->awaited = false;
	note(file);
	if (!file->readable) {
		file->write = park(file, req, size, 0);
		return;
	}
	drop_document(file);
	accept_write(file, req, size);
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
	file->result = answer_of_help(file->tool, file->run);
	drop_document(file);
	accept_write(file, req, size);
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
	struct tool *now = snapshot_find(file->server->snapshot, file->tool->name);
	if (!now)
		return fail_set(why, -ENODEV, "the tool '%s' was removed; nothing was run",
			file->tool->name);
	tool_ref(now);
	tool_unref(file->tool);
	file->tool = now;
	return 0;
}

static void write_gather(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
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
		accept_write(file, req, size);
}

/* The writer was let go for a signal and writes the same bytes again, perhaps in pieces. 4.4, 3. */
static void write_again(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	const struct buf *document = &file->document.bytes;
	size_t left = document->len - file->reattach_at;
	if (size > left || memcmp(document->data + file->reattach_at, bytes, size) != 0) {
		fuse_reply_err(req, EBUSY);
		return;
	}
	file->reattach_at += size;
	if (size < left) {
		accept_write(file, req, size);
		return;
	}
	file->detached = false;
	/* Who is let go once more has only this piece to write again. */
	file->last_write_at = file->reattach_at - size;
	if (file->phase == PHASE_RUN) {
		file->write = park(file, req, size, 0);
		return;
	}
	drop_document(file);
	file->sticky = file->outcome;
	answer_write(file, req, file->outcome, size);
}

static void write_run(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	if (file->detached)
		write_again(file, req, bytes, size);
	else if (file->readable && document_is_blank(bytes, size))
		accept_write(file, req, size);
	else
		fuse_reply_err(req, EBUSY);
}

static void write_done(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	if (file->detached) {
		write_again(file, req, bytes, size);
	} else if (document_is_blank(bytes, size)) {
		accept_write(file, req, size);
	} else if (!file->readable) {
		file->sticky = EINVAL;
		fuse_reply_err(req, EINVAL);
	} else if (!file->result_read) {
		fuse_reply_err(req, EBUSY);
	} else {
		file->phase = PHASE_GATHER;
		file->seq = 0;
		file->kept->start_unique = 0;
		file->kept->gathered = 0;
		file->base = -1;
		file->result_read = false;
		bytes_unref(file->result);
		file->result = NULL;
		free_run(file);
		write_gather(file, req, bytes, size);
	}
}

/*
 * It was an earlier server's, which died before it could answer. What it did of it is not done again;
 * a call that has certainly not begun is started anew. False where it is a write like any other.
 */
static bool write_repeated(struct callfile *file, fuse_req_t req, size_t size)
{
	struct kept *kept = file->kept;
	struct calls *calls = file->server->calls;
	uint64_t unique = session_unique(file->server->session);
	if (kept->gather_unique == unique && kept->gathered == 1) {
		file->lost = false; /* there were no bytes but these */
		kept->gathered = 0;
	}
	if (kept->start_unique != unique)
		return false;
	const struct call *call = calls_get(calls, kept->seq);
	bool is_whole = !file->lost && !session_has_lost_data(file->server->session);
	const bool is_reserved = call && call->state == CALL_RESERVED;
	if (!call || is_reserved || (call->not_run && is_whole && !file->reserved)) {
		calls_unwatch(calls, kept->seq);
		if (call && !is_reserved)
			calls_forget(calls, kept->seq);
		file->phase = PHASE_GATHER;
		file->sticky = 0;
		file->seq = 0;
		return false;
	}
	if (file->readable && call->state != CALL_REFUSED) {
		accept_write(file, req, size);
	} else if (call_state_is_final(call->state)) {
		file->sticky = file->outcome;
		answer_write(file, req, file->outcome, size);
	} else {
		file->write = park(file, req, size, 0);
	}
	return true;
}

void callfile_write(
	struct callfile *file, fuse_req_t req, const char *bytes, size_t size, off_t offset)
{
	file->write_at = offset;
	if (session_is_repeat(file->server->session) && write_repeated(file, req, size))
		return;
	if (file->lost || session_has_lost_data(file->server->session))
		file->sticky = EIO;
	if (file->sticky) {
		note(file);
		fuse_reply_err(req, file->sticky);
		return;
	}
	static void (*const steps[])(struct callfile *, fuse_req_t, const char *, size_t) = {
		[PHASE_GATHER] = write_gather, [PHASE_RUN] = write_run, [PHASE_DONE] = write_done
	};
	steps[file->phase](file, req, bytes, size);
}

void callfile_truncate(struct callfile *file)
{
	if (file->phase != PHASE_GATHER)
		return;
	drop_document(file);
	file->kept->gathered = 0;
	file->lost = false;
}

/* ---- reading, flush, poll, release */

void callfile_read(struct callfile *file, fuse_req_t req, size_t size, off_t offset,
	const struct fuse_file_info *fi)
{
	if (fi->lock_owner == 0) { /* through the page cache: H7 */
		fuse_reply_err(req, EINVAL);
		return;
	}
	switch (file->phase) {
	case PHASE_GATHER:
		if (file->lost)
			fuse_reply_err(req, EIO);
		else if (file->document.state == DOCUMENT_EMPTY)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_err(req, EINVAL);
		break;
	case PHASE_RUN:
		file->awaited = true;
		note(file);
		if (fi->flags & O_NONBLOCK) {
			fuse_reply_err(req, EAGAIN);
			break;
		}
		struct parked *parked = park(file, req, size, offset);
		parked->next = file->reads;
		file->reads = parked;
		break;
	case PHASE_DONE:
		answer_read(file, req, size, offset);
		break;
	}
}

/* What was written and never became a request has an answer as well: in result.*. */
static uint64_t refuse_partial(struct callfile *file)
{
	struct fail why = FAIL_INIT;
	fail_set(&why, -EINVAL,
		"the request ends before its JSON object is closed (after %zu bytes): a '}' or a quote "
		"is missing; nothing was run",
		file->document.bytes.len);
	return calls_refuse(file->server->calls, file->tool, &file->caller, file->reserved, &why);
}

/*
 * Comes with every close of every duplicate, and the bytes may go on behind it: the refusal that it
 * leaves is taken back then. It has to be there now, for a release comes at some time after close().
 */
void callfile_flush(struct callfile *file, fuse_req_t req)
{
	/* `run` has more than one process write, and each closes the file that it has inherited. */
	if (file->lost) {
		fuse_reply_err(req, EIO);
		return;
	}
	bool partial = file->phase == PHASE_GATHER && file->document.state == DOCUMENT_OPEN &&
		       file->document.kind == DOCUMENT_JSON;
	if (partial && !file->reserved && !file->refused_seq)
		file->refused_seq = refuse_partial(file);
	note(file);
	fuse_reply_err(req, partial ? EINVAL : 0);
}

void callfile_poll(struct callfile *file, fuse_req_t req, const struct fuse_file_info *fi,
	struct fuse_pollhandle *poll)
{
	if (poll) {
		if (file->poll)
			fuse_pollhandle_destroy(file->poll);
		file->poll = poll;
	}
	unsigned events = POLLOUT | POLLWRNORM;
	if (file->readable && file->phase != PHASE_RUN)
		events |= POLLIN | POLLRDNORM;
	if (file->phase == PHASE_RUN && fi->poll_events & (POLLIN | POLLRDNORM))
		file->awaited = true;
	note(file);
	fuse_reply_poll(req, events);
}

static void leave_call(struct callfile *file)
{
	struct calls *calls = file->server->calls;
	calls_unwatch(calls, file->seq);
	if (!file->readable || file->awaited)
		calls_cancel(calls, file->seq);
}

void callfile_free(struct callfile *file)
{
	if (!file)
		return;
	if (file->phase == PHASE_RUN)
		leave_call(file);
	else if (file->phase == PHASE_GATHER && file->document.state == DOCUMENT_OPEN &&
		 !file->refused_seq)
		refuse_partial(file);
	/* Only a mount that ends leaves anything parked. */
	if (file->write)
		fuse_reply_err(parked_take(&file->write), EIO);
	while (file->reads)
		fuse_reply_err(parked_take(&file->reads), EIO);
	if (file->poll)
		fuse_pollhandle_destroy(file->poll);
	loop_cancel_timer(&file->look_timer);
	if (file->readable)
		leave_readable(file);
	drop_document(file);
	quota_give(&file->server->open_calls, file->opener_uid, 1);
	document_release(&file->document);
	free_run(file);
	bytes_unref(file->result);
	tool_unref(file->tool);
	free(file);
}

/* ---- of an earlier server */

static void revive_run(struct callfile *file)
{
	file->run = xcalloc(1, sizeof(*file->run));
	arguments_init(file->run, file->tool);
	file->run->show = (enum arguments_show)file->kept->show;
	file->run->help = file->kept->is_help;
}

/* Its call runs on, has ended meanwhile, or is gone. */
static void revive_call(struct callfile *file)
{
	struct calls *calls = file->server->calls;
	const struct call *call = calls_get(calls, file->seq);
	if (call && !call_state_is_final(call->state)) {
		file->phase = PHASE_RUN;
		calls_watch(calls, file->seq, on_call_end, file);
		return;
	}
	file->phase = PHASE_DONE;
	file->outcome = call ? -call_outcome(call) : EIO;
	if (!call)
		file->sticky = EIO;
	else if (file->readable)
		file->result = answer_of_call(calls, call, file->run);
}

struct callfile *callfile_revive(
	struct server *server, struct tool *tool, struct state_handle *place)
{
	struct callfile *file = make(server, tool, place);
	const struct kept *kept = file->kept;
	quota_take(&server->open_calls, kept->opener_uid, 1);
	file->reserved = kept->reserved;
	file->seq = kept->seq;
	file->refused_seq = kept->refused_seq;
	file->readable = kept->readable;
	file->opener_uid = kept->opener_uid;
	file->opener_gid = kept->opener_gid;
	file->opener_caps = kept->opener_caps;
	file->opener_place = kept->opener_place;
	file->sticky = kept->sticky;
	file->outcome = kept->outcome;
	file->write_end = kept->write_end;
	file->base = kept->base;
	file->result_read = kept->result_read;
	file->awaited = kept->awaited;
	file->phase = (enum phase)kept->phase;
	if (kept->is_run)
		revive_run(file);
	if (file->readable)
		enter_readable(file);
	/* A call was being started: whether it was can be told from its number. */
	bool has_call = file->seq && (file->phase != PHASE_GATHER || kept->start_unique);
	if (has_call)
		revive_call(file);
	else if (file->phase == PHASE_DONE && kept->is_help)
		file->result = answer_of_help(tool, file->run);
	else
		file->lost = kept->gathered > 0;
	/* The bytes that a writer would have to repeat are gone. */
	if (kept->detached)
		file->sticky = EIO;
	return file;
}
