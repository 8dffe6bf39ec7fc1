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
 * A request that is held ("parked") has one owner, a struct parked; it is answered once and gone
 * with that. FUSE tells of a signal to its caller once; from then on the verdict is asked for again
 * and again until there is an answer (H5). The callback of libfuse only takes a note: it runs with
 * a lock of the request held (H17).
 */
#include "fs/callfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bytes.h"
#include "core/base/xalloc.h"
#include "core/running/verdict.h"
#include "core/tools/document.h"
#include "fs/options.h"
#include "fs/server.h"
#include "fs/session.h"

#define LOOK_EVERY_MS 50
#define FAR_OFFSET (UINT64_C(1) << 30) /* beyond any position in a call file: H7 */

enum phase { PHASE_GATHER, PHASE_RUN, PHASE_DONE };

struct parked {
	fuse_req_t req;
	struct callfile *file; /* borrowed: it holds this */
	pid_t tid;             /* of the caller, which is blocked in this request */
	size_t size;
	off_t offset;
	bool interrupted; /* a signal came: look at the caller */
	struct parked *next;
};

struct callfile {
	struct server *server; /* borrowed */
	struct tool *tool;     /* a reference */
	uint64_t reserved;
	fuse_ino_t ino;
	bool readable;
	uid_t opener_uid;
	gid_t opener_gid;
	struct caller caller; /* who wrote last, for whom the call runs */

	enum phase phase;
	int sticky; /* a positive errno; 0: none */
	struct document document;
	size_t last_write_at; /* in document.bytes: what the last write added */
	uint64_t seq;         /* of the call, in PHASE_RUN */
	uint64_t refused_seq; /* of what a flush left, in PHASE_GATHER; 0: nothing */

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
};

struct callfile *callfile_new(struct server *server, struct tool *tool, uint64_t reserved,
	const struct fuse_ctx *ctx, fuse_ino_t ino, int flags)
{
	struct callfile *file = xcalloc(1, sizeof(*file));
	file->server = server;
	file->tool = tool_ref(tool);
	file->reserved = reserved;
	file->ino = ino;
	file->readable = (flags & O_ACCMODE) == O_RDWR;
	file->opener_uid = ctx->uid;
	file->opener_gid = ctx->gid;
	file->base = -1;
	document_init(&file->document, server->options->request_max);
	return file;
}

/* ---- parked requests */

static void look_at_callers(void *arg);

/* Runs in libfuse's hands: note it, and act from the loop. */
static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	struct parked *parked = data;
	parked->interrupted = true;
	loop_arm_timer(parked->file->server->loop, &parked->file->look_timer, 0, look_at_callers,
		parked->file);
}

static struct parked *park(struct callfile *file, fuse_req_t req, size_t size, off_t offset)
{
	struct parked *parked = xcalloc(1, sizeof(*parked));
	*parked = (struct parked){ .req = req,
		.file = file,
		.tid = fuse_req_ctx(req)->pid,
		.size = size,
		.offset = offset };
	fuse_req_interrupt_func(req, on_interrupt, parked);
	return parked;
}

/* The request is the caller's to answer; its owner is gone. */
static fuse_req_t unpark(struct parked **slot)
{
	struct parked *parked = *slot;
	fuse_req_t req = parked->req;
	*slot = parked->next;
	fuse_req_interrupt_func(req, NULL, NULL);
	free(parked);
	return req;
}

static void accept_write(struct callfile *file, fuse_req_t req, size_t size)
{
	file->write_end = file->write_at + (off_t)size;
	fuse_reply_write(req, size);
}

static void answer_write(fuse_req_t req, int error, size_t size)
{
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
	fuse_reply_err(unpark(&file->write), EINTR);
}

/* What the signal to a parked caller means by now. */
static enum verdict judge(const struct parked *parked)
{
	return parked->interrupted ? verdict_load(parked->tid) : VERDICT_NONE;
}

static void look_at_callers(void *arg)
{
	struct callfile *file = arg;
	bool again = false;
	enum verdict verdict = file->write ? judge(file->write) : VERDICT_NONE;
	if (verdict != VERDICT_NONE)
		let_write_go(file, verdict);
	else if (file->write)
		again = file->write->interrupted;
	struct parked **slot = &file->reads;
	while (*slot) {
		if (judge(*slot) != VERDICT_NONE) {
			fuse_reply_err(unpark(slot), EINTR);
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
	settle_base(file, offset);
	off_t at = offset - file->base;
	size_t len = file->result ? file->result->len : 0;
	if (at < 0 || (uint64_t)at >= len) {
		fuse_reply_buf(req, NULL, 0);
		return;
	}
	if (size > len - (size_t)at)
		size = len - (size_t)at;
	file->result_read |= size > 0;
	fuse_reply_buf(req, file->result->data + at, size);
}

static void answer_waiting(struct callfile *file)
{
	if (file->write) {
		size_t size = file->write->size;
		file->sticky = file->outcome;
		answer_write(unpark(&file->write), file->outcome, size);
	}
	while (file->reads) {
		size_t size = file->reads->size;
		off_t offset = file->reads->offset;
		answer_read(file, unpark(&file->reads), size, offset);
	}
	if (file->poll) {
		fuse_lowlevel_notify_poll(file->poll);
		fuse_pollhandle_destroy(file->poll);
		file->poll = NULL;
	}
}

static void load_result(struct callfile *file, const struct call *call)
{
	struct fail why = FAIL_INIT;
	if (file->readable && call)
		file->result = calls_load(file->server->calls, call, CALL_PART_RESULT_JSON, &why);
}

static void on_call_end(void *arg, const struct call *call)
{
	struct callfile *file = arg;
	file->phase = PHASE_DONE;
	file->outcome = -call_outcome(call);
	load_result(file, call);
	/* Its bytes are needed once more where its writer was let go and may come again. */
	if (!file->detached)
		document_reset(&file->document);
	loop_cancel_timer(&file->look_timer);
	answer_waiting(file);
}

/* ---- writing */

/* Nothing runs: the reason is in result.*, and the error sticks. */
static int fail_document(struct callfile *file, uint64_t seq, const struct fail *why)
{
	file->sticky = -why->code;
	file->phase = PHASE_DONE;
	load_result(file, calls_get(file->server->calls, seq));
	document_reset(&file->document);
	return file->sticky;
}

/*
 * For whom the call runs: the one who opened the file. Bytes may come from another process: one of
 * root's that somebody else's shell has redirected here must not run anything as root, nor must
 * what somebody writes to a file that root has opened.
 */
static int load_caller(struct callfile *file, const struct fuse_ctx *ctx, struct fail *why)
{
	struct caller *caller = &file->caller;
	if (caller->tid != ctx->pid || caller->who.uid != ctx->uid || caller->tid == 0)
		caller_load(caller, ctx->uid, ctx->gid, ctx->pid);
	if (ctx->uid == file->opener_uid || file->opener_uid == 0)
		return 0;
	if (ctx->uid != 0)
		return fail_set(why, -EACCES,
			"the call file was opened by uid %u and written to by uid %u: open it as "
			"the user who calls",
			(unsigned)file->opener_uid, (unsigned)ctx->uid);
	caller->who = (struct identity){ .uid = file->opener_uid, .gid = file->opener_gid };
	return 0;
}

/* sendfile and splice read through the page cache, up to i_size: make it lie behind all (H7). */
static void stretch_size(struct callfile *file)
{
	struct fuse_bufvec byte = FUSE_BUFVEC_INIT(1);
	char zero = 0;
	byte.buf[0].mem = &zero;
	fuse_lowlevel_notify_store(session_fuse(file->server->session), file->ino, FAR_OFFSET,
		&byte, (enum fuse_buf_copy_flags)0);
}

static void start_call(struct callfile *file, fuse_req_t req, size_t size)
{
	struct fail why = FAIL_INIT;
	uint64_t seq = 0;
	const struct call_order order = { .tool = file->tool,
		.caller = &file->caller,
		.reserved = file->reserved,
		.document = file->document.bytes.data,
		.len = file->document.bytes.len };
	if (calls_start(file->server->calls, &order, on_call_end, file, &seq, &why) < 0) {
		fuse_reply_err(req, fail_document(file, seq, &why));
		return;
	}
	file->seq = seq;
	file->phase = PHASE_RUN;
	file->awaited = false;
	if (!file->readable) {
		file->write = park(file, req, size, 0);
		return;
	}
	document_reset(&file->document);
	stretch_size(file);
	accept_write(file, req, size);
}

static void write_gather(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	struct fail why = FAIL_INIT;
	file->last_write_at = file->document.bytes.len;
	if (file->refused_seq)
		calls_forget(file->server->calls, file->refused_seq);
	file->refused_seq = 0;
	if (load_caller(file, fuse_req_ctx(req), &why) < 0 ||
		document_add(&file->document, bytes, size, &why) < 0) {
		uint64_t seq = calls_refuse(
			file->server->calls, file->tool, &file->caller, file->reserved, &why);
		fuse_reply_err(req, fail_document(file, seq, &why));
	} else if (file->document.state == DOCUMENT_COMPLETE) {
		start_call(file, req, size);
	} else {
		accept_write(file, req, size);
	}
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
	if (file->phase == PHASE_RUN) {
		file->write = park(file, req, size, 0);
		return;
	}
	document_reset(&file->document);
	file->sticky = file->outcome;
	answer_write(req, file->outcome, size);
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
		file->base = -1;
		file->result_read = false;
		bytes_unref(file->result);
		file->result = NULL;
		write_gather(file, req, bytes, size);
	}
}

void callfile_write(
	struct callfile *file, fuse_req_t req, const char *bytes, size_t size, off_t offset)
{
	file->write_at = offset;
	if (file->sticky) {
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
	if (file->phase == PHASE_GATHER)
		document_reset(&file->document);
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
		if (file->document.state == DOCUMENT_EMPTY)
			fuse_reply_buf(req, NULL, 0);
		else
			fuse_reply_err(req, EINVAL);
		break;
	case PHASE_RUN:
		file->awaited = true;
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
		"the request ends in the middle: %zu bytes came, and the JSON object is not closed; "
		"nothing was run",
		file->document.bytes.len);
	return calls_refuse(file->server->calls, file->tool, &file->caller, file->reserved, &why);
}

/*
 * Comes with every close of every duplicate, and the bytes may go on behind it: the refusal that it
 * leaves is taken back then. It has to be there now, for a release comes at some time after close().
 */
void callfile_flush(struct callfile *file, fuse_req_t req)
{
	bool partial = file->phase == PHASE_GATHER && file->document.state == DOCUMENT_OPEN;
	if (partial && !file->reserved && !file->refused_seq)
		file->refused_seq = refuse_partial(file);
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
		fuse_reply_err(unpark(&file->write), EIO);
	while (file->reads)
		fuse_reply_err(unpark(&file->reads), EIO);
	if (file->poll)
		fuse_pollhandle_destroy(file->poll);
	loop_cancel_timer(&file->look_timer);
	document_release(&file->document);
	bytes_unref(file->result);
	tool_unref(file->tool);
	free(file);
}
