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
#include <string.h>

#include "fs/answer.h"
#include "fs/callkept.h"
#include "fs/callopen.h"
#include "fs/callwait.h"
#include "fs/callwrite.h"
#include "fs/parked.h"
#include "fs/server.h"
#include "fs/session.h"

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
		callwait_accept_write(file, req, size);
		return;
	}
	file->detached = false;
	/* Who is let go once more has only this piece to write again. */
	file->last_write_at = file->reattach_at - size;
	if (file->phase == PHASE_RUN) {
		file->write = callwait_park(file, req, size, 0);
		return;
	}
	callopen_drop_document(file);
	file->sticky = file->outcome;
	callwait_answer_write(file, req, file->outcome, size);
}

static void write_run(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	if (file->detached)
		write_again(file, req, bytes, size);
	else if (file->readable && document_is_blank(bytes, size))
		callwait_accept_write(file, req, size);
	else
		fuse_reply_err(req, EBUSY);
}

static void write_done(struct callfile *file, fuse_req_t req, const char *bytes, size_t size)
{
	if (file->detached) {
		write_again(file, req, bytes, size);
	} else if (document_is_blank(bytes, size)) {
		callwait_accept_write(file, req, size);
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
		answer_free(file->result);
		file->result = NULL;
		callopen_free_run(file);
		callwrite_gather(file, req, bytes, size);
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
		callwait_accept_write(file, req, size);
	} else if (call_state_is_final(call->state)) {
		file->sticky = file->outcome;
		callwait_answer_write(file, req, file->outcome, size);
	} else {
		file->write = callwait_park(file, req, size, 0);
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
		callkept_note(file);
		fuse_reply_err(req, file->sticky);
		return;
	}
	static void (*const steps[])(struct callfile *, fuse_req_t, const char *,
		size_t) = { [PHASE_GATHER] = callwrite_gather,
		[PHASE_RUN] = write_run,
		[PHASE_DONE] = write_done };
	steps[file->phase](file, req, bytes, size);
}

void callfile_truncate(struct callfile *file)
{
	if (file->phase != PHASE_GATHER)
		return;
	callopen_drop_document(file);
	file->kept->gathered = 0;
	file->lost = false;
}

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
		callkept_note(file);
		if (fi->flags & O_NONBLOCK) {
			fuse_reply_err(req, EAGAIN);
			break;
		}
		struct parked *parked = callwait_park(file, req, size, offset);
		parked->next = file->reads;
		file->reads = parked;
		break;
	case PHASE_DONE:
		callwait_answer_read(file, req, size, offset);
		break;
	}
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
		file->refused_seq = callwrite_refuse_partial(file);
	callkept_note(file);
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
	callkept_note(file);
	fuse_reply_poll(req, events);
}
