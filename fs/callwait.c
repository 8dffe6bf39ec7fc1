#include "fs/callwait.h"

#include <errno.h>

#include "core/base/auto.h"
#include "fs/answer.h"
#include "fs/callkept.h"
#include "fs/callopen.h"
#include "fs/parked.h"
#include "fs/server.h"

#define LOOK_EVERY_MS 50

static void look_at_callers(void *arg);

struct parked *callwait_park(struct callfile *file, fuse_req_t req, size_t size, off_t offset)
{
	return parked_new(
		req, size, offset, file->server->loop, &file->look_timer, look_at_callers, file);
}

void callwait_accept_write(struct callfile *file, fuse_req_t req, size_t size)
{
	file->write_end = file->write_at + (off_t)size;
	callkept_note(file);
	fuse_reply_write(req, size);
}

void callwait_answer_write(const struct callfile *file, fuse_req_t req, int error, size_t size)
{
	callkept_note(file);
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
	callkept_note(file);
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

void callwait_answer_read(struct callfile *file, fuse_req_t req, size_t size, off_t offset)
{
	const struct answer *result = file->result;
	if (!result || result->error) {
		fuse_reply_err(req, result ? result->error : EIO);
		return;
	}
	settle_base(file, offset);
	off_t at = offset - file->base;
	auto_buf struct buf bytes = BUF_INIT(size);
	int error = at < 0 ? 0 : answer_read(result, size, (size_t)at, &bytes);
	if (error < 0) {
		fuse_reply_err(req, -error);
		return;
	}
	file->result_read |= bytes.len > 0;
	callkept_note(file);
	fuse_reply_buf(req, bytes.data, bytes.len);
}

static void answer_waiting(struct callfile *file)
{
	if (file->write) {
		size_t size = file->write->size;
		file->sticky = file->outcome;
		callwait_answer_write(file, parked_take(&file->write), file->outcome, size);
	}
	while (file->reads) {
		size_t size = file->reads->size;
		off_t offset = file->reads->offset;
		callwait_answer_read(file, parked_take(&file->reads), size, offset);
	}
	if (file->poll) {
		fuse_lowlevel_notify_poll(file->poll);
		fuse_pollhandle_destroy(file->poll);
		file->poll = NULL;
	}
}

void callwait_on_end(void *arg, const struct call *call)
{
	struct callfile *file = arg;
	file->phase = PHASE_DONE;
	file->outcome = -call_outcome(call);
	if (file->readable)
		file->result = answer_of_call(file->server, file->opener_uid, call, file->run);
	/* Its bytes are needed once more where its writer was let go and may come again. */
	if (!file->detached)
		callopen_drop_document(file);
	loop_cancel_timer(&file->look_timer);
	callkept_note(file);
	answer_waiting(file);
}
