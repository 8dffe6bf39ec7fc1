/*
 * How a request survives the server (survival.md A2, A3, A5).
 *
 * The kernel keeps a request until it is answered. When a server has died, either the kernel is
 * asked to hand out anew what was not answered (FUSE_NOTIFY_RESEND, Linux 6.9), or, where it cannot,
 * the next server repeats it itself, from what is kept in the state: the request that was received
 * last lies in the receive buffer until it has been dealt with; one that waits for its answer beyond
 * that is noted in state->requests. Never both, for then a request would run twice. It is done once,
 * after the old server has gone for good and before the first read: earlier it would miss one that
 * the old one still took, later it would repeat our own.
 *
 * A request has a number, `unique`; resent, it has RESEND_BIT set in it, and its answer must too.
 */
#include "fs/session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"

/* Requests served before timers and other descriptors have their turn. */
#define REQUESTS_A_TURN 64

/* The newest of them, where it is not known which wait: the kernel counts them up for ever. */
#define POLLS_WOKEN_MAX (UINT64_C(1) << 20)

/* Not in the header of a 6.1 kernel; the values are ABI. */
#define NOTIFY_RESEND 7
#define NOTIFY_INC_EPOCH 8
#define RESEND_BIT (UINT64_C(1) << 63)
#define INIT_EXT (1u << 30)        /* FUSE_INIT_EXT: flags2 is there */
#define INIT2_HAS_RESEND (1u << 7) /* FUSE_HAS_RESEND, bit 39, in flags2 */

struct session {
	struct fuse_session *fuse;
	struct loop *loop;
	struct state *state;
	int fd;
	struct loop_fd *entry;
	bool can_resend; /* the kernel does it */
	bool replaying_init;
	struct fail *init_fault;              /* where handling FUSE_INIT puts what is wrong */
	uint64_t unique;                      /* of the request at hand, without RESEND_BIT */
	uint64_t answered;                    /* the request that was answered last, as it came */
	bool repeats, lost_data;              /* of the request at hand */
	struct map kept;                      /* unique -> its place in state->requests */
	struct state_request **free_requests; /* owned; a stack of places, and its count */
	size_t free_count;
	void (*on_end)(void *arg);
	void *arg;
};

/* ---- requests that wait for their answers, where the kernel does not repeat them */

static struct state_request *find_request(const struct session *session, uint64_t unique)
{
	return map_get(&session->kept, unique);
}

static void keep_request(struct session *session, const struct fuse_in_header *in)
{
	if (session->free_count == 0)
		return; /* not let in: see has_room() */
	struct state_request *request = session->free_requests[--session->free_count];
	size_t len = in->len < STATE_HEAD_MAX ? in->len : STATE_HEAD_MAX;
	memcpy(request->head, in, len);
	request->len = in->len;
	request->interrupted = 0;
	request->unique = in->unique;
	map_put(&session->kept, in->unique, request);
}

static void release_request(struct session *session, uint64_t unique)
{
	struct state_request *request = map_remove(&session->kept, unique);
	if (!request)
		return;
	request->unique = 0;
	session->free_requests[session->free_count++] = request;
}

static void list_requests(struct session *session)
{
	if (session->can_resend)
		return;
	session->free_requests = xcalloc(STATE_REQUESTS, sizeof(struct state_request *));
	for (size_t i = STATE_REQUESTS; i-- > 0;) {
		struct state_request *request = &session->state->requests[i];
		if (request->unique)
			map_put(&session->kept, request->unique, request);
		else
			session->free_requests[session->free_count++] = request;
	}
}

static bool may_wait(uint32_t opcode)
{
	return opcode == FUSE_READ || opcode == FUSE_WRITE;
}

/* Where a request that waits could not be kept, it is not let in. */
static bool has_room(const struct session *session, uint32_t opcode)
{
	return session->can_resend || session->free_count > 0 || !may_wait(opcode);
}

/* ---- the device */

static ssize_t read_device(int fd, void *buf, size_t len, void *userdata)
{
	(void)userdata;
	return read(fd, buf, len < STATE_RECEIVE_SIZE ? len : STATE_RECEIVE_SIZE);
}

static ssize_t take_init_reply(struct session *session, const struct iovec *iov, int count)
{
	struct state *state = session->state;
	unsigned char reply[STATE_INIT_MAX];
	size_t len = 0;
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > sizeof(reply) - len)
			return fail_set(
				session->init_fault, -EIO, "the answer to FUSE_INIT is too long");
		memcpy(reply + len, iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	if (state->reply_len == 0) {
		memcpy(state->reply, reply, len);
		state->reply_len = (uint32_t)len;
	} else if (len != state->reply_len || memcmp(reply, state->reply, len) != 0) {
		fail_set(session->init_fault, -EPROTO,
			"this version wants other terms from the kernel than the mount has: unmount "
			"and mount again");
	}
	return (ssize_t)len;
}

static ssize_t write_device(int fd, struct iovec *iov, int count, void *userdata)
{
	struct session *session = userdata;
	if (session->replaying_init)
		return take_init_reply(session, iov, count);
	const struct fuse_out_header *out = iov[0].iov_base;
	ssize_t done = writev(fd, iov, count);
	if (out->unique != 0) {
		session->answered = out->unique;
		if (!session->can_resend)
			release_request(session, out->unique & ~RESEND_BIT);
	}
	return done;
}

static int notify(const struct session *session, int code, const void *body, size_t size)
{
	const struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + size), .error = code, .unique = 0
	};
	unsigned char bytes[sizeof(header) + 16];
	memcpy(bytes, &header, sizeof(header));
	if (size > 0)
		memcpy(bytes + sizeof(header), body, size);
	return write(session->fd, bytes, sizeof(header) + size) < 0 ? -errno : 0;
}

static void refuse(struct session *session, uint64_t raw_unique, int error)
{
	const struct fuse_out_header header = {
		.len = sizeof(header), .error = -error, .unique = raw_unique
	};
	/* It may have been interrupted meanwhile, and then nobody wants an answer. */
	if (write(session->fd, &header, sizeof(header)) < 0 && errno != ENOENT)
		log_errno(LOG_LEVEL_ERROR, "cannot refuse a request");
	session->answered = raw_unique;
	if (!session->can_resend)
		release_request(session, raw_unique & ~RESEND_BIT);
}

/* ---- one request */

static void note_poll(struct state *state, const struct fuse_in_header *in)
{
	struct fuse_poll_in body;
	if (in->len < sizeof(*in) + sizeof(body))
		return;
	memcpy(&body, in + 1, sizeof(body));
	if (!(body.flags & FUSE_POLL_SCHEDULE_NOTIFY))
		return;
	uint64_t *place = &state->polls[body.kh % STATE_POLLS];
	if (*place && *place != body.kh)
		state->polls_overflow = 1;
	*place = body.kh;
	if (body.kh > state->polls_max)
		state->polls_max = body.kh;
}

/* The kernel tells of a signal once: the next server must know as well. */
static void note_interrupt(const struct session *session, const struct fuse_in_header *in)
{
	struct fuse_interrupt_in body;
	if (session->can_resend || in->len < sizeof(*in) + sizeof(body))
		return;
	memcpy(&body, in + 1, sizeof(body));
	struct state_request *request = find_request(session, body.unique & ~RESEND_BIT);
	if (request)
		request->interrupted = 1;
}

static bool wants_answer(uint32_t opcode)
{
	return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

/* The request in the receive buffer. */
static void process(struct session *session, size_t size, bool repeats)
{
	struct state *state = session->state;
	const struct fuse_in_header *in = (const void *)state->receive;
	const uint64_t raw = in->unique;
	const uint32_t opcode = in->opcode;
	session->unique = raw & ~RESEND_BIT;
	session->repeats = repeats || raw & RESEND_BIT;
	state->current = (struct state_current){
		.opcode = opcode, .since_ms = state_now_ms(), .unique = session->unique
	};
	if (session->repeats)
		state->counters.resends++;
	if (session->repeats && wants_answer(opcode) && state_is_poison(state, session->unique)) {
		log_msg(LOG_LEVEL_WARNING,
			"a request (opcode %u) with which servers end each time is answered with EIO",
			opcode);
		state->counters.quarantined++;
		refuse(session, raw, EIO);
	} else if (!has_room(session, opcode)) {
		refuse(session, raw, EAGAIN);
	} else {
		struct fuse_buf buf = { .mem = state->receive, .size = size };
		if (opcode == FUSE_POLL)
			note_poll(state, in);
		else if (opcode == FUSE_INTERRUPT)
			note_interrupt(session, in);
		session->answered = 0;
		fuse_session_process_buf(session->fuse, &buf);
		if (!session->can_resend && may_wait(opcode) && session->answered != raw &&
			!find_request(session, session->unique))
			keep_request(session, in);
	}
	state->received = raw;
	state->current = (struct state_current){ .unique = 0 };
	session->repeats = session->lost_data = false;
}

static void on_readable(void *arg, uint32_t events)
{
	struct session *session = arg;
	(void)events;
	struct fuse_buf buf = { .mem = session->state->receive };
	for (int i = 0; i < REQUESTS_A_TURN; i++) {
		int got = fuse_session_receive_buf(session->fuse, &buf);
		if (got == -EAGAIN)
			return;
		/* ENOENT: the request was interrupted before it could be read. */
		if (got == -EINTR || got == -ENOENT)
			continue;
		if (got <= 0) {
			if (got < 0 && got != -ENODEV)
				log_msg(LOG_LEVEL_ERROR, "reading /dev/fuse: %s", strerror(-got));
			loop_remove_fd(&session->entry);
			session->on_end(session->arg);
			return;
		}
		process(session, (size_t)got, false);
	}
}

/* ---- what an earlier server has left */

static bool is_length(uint32_t len)
{
	return len >= sizeof(struct fuse_in_header) && len <= STATE_RECEIVE_SIZE;
}

/* The one that was at hand when it died. */
static void repeat_received(struct session *session)
{
	const struct fuse_in_header *in = (const void *)session->state->receive;
	if (is_length(in->len) && in->unique != session->state->received &&
		!find_request(session, in->unique) && wants_answer(in->opcode))
		process(session, in->len, true);
}

static void repeat_interrupt(struct session *session, uint64_t unique)
{
	struct {
		struct fuse_in_header header;
		struct fuse_interrupt_in body;
	} message = { .header = { .len = sizeof(message),
			      .opcode = FUSE_INTERRUPT,
			      .unique = unique | 1 },
		.body = { .unique = unique } };
	struct fuse_buf buf = { .mem = &message, .size = sizeof(message) };
	fuse_session_process_buf(session->fuse, &buf);
}

static void repeat_kept(struct session *session)
{
	struct state *state = session->state;
	for (size_t i = 0; i < STATE_REQUESTS; i++) {
		const struct state_request *request = &state->requests[i];
		if (request->unique == 0 || !is_length(request->len))
			continue;
		size_t kept = request->len < STATE_HEAD_MAX ? request->len : STATE_HEAD_MAX;
		memcpy(state->receive, request->head, kept);
		session->lost_data = kept < request->len;
		/* libfuse keeps it until the request itself comes, which is next. */
		if (request->interrupted)
			repeat_interrupt(session, request->unique);
		process(session, request->len, true);
	}
}

static void wake_pollers(const struct session *session)
{
	struct state *state = session->state;
	struct fuse_notify_poll_wakeup_out body = { .kh = 0 };
	if (state->polls_overflow) {
		uint64_t first =
			state->polls_max > POLLS_WOKEN_MAX ? state->polls_max - POLLS_WOKEN_MAX : 0;
		for (body.kh = first + 1; body.kh <= state->polls_max && body.kh; body.kh++)
			notify(session, FUSE_NOTIFY_POLL, &body, sizeof(body));
	} else {
		for (size_t i = 0; i < STATE_POLLS; i++) {
			body.kh = state->polls[i];
			if (body.kh)
				notify(session, FUSE_NOTIFY_POLL, &body, sizeof(body));
		}
	}
	memset(state->polls, 0, sizeof(state->polls));
	state->polls_overflow = 0;
}

static void take_over(struct session *session)
{
	int result = session->can_resend ? notify(session, NOTIFY_RESEND, NULL, 0) : 0;
	if (result < 0)
		log_msg(LOG_LEVEL_ERROR, "the kernel does not repeat requests: %s",
			strerror(-result));
	result = session_drop_names(session);
	if (result < 0 && result != -EINVAL)
		log_msg(LOG_LEVEL_WARNING, "the kernel keeps cached names: %s", strerror(-result));
	if (!session->can_resend) {
		repeat_received(session);
		repeat_kept(session);
	}
	wake_pollers(session);
}

/* ---- the session */

/* The kernel's FUSE_INIT, once more; the answer is kept, or compared. */
static int handle_init(struct session *session, struct fail *why)
{
	struct state *state = session->state;
	struct fuse_buf buf = { .mem = state->init, .size = state->init_len };
	session->replaying_init = true;
	session->init_fault = why;
	fuse_session_process_buf(session->fuse, &buf);
	session->replaying_init = false;
	if (why->code == 0 && (fuse_session_exited(session->fuse) || state->reply_len == 0))
		fail_set(why, -EPROTO, "libfuse does not come to terms with this kernel");
	return why->code;
}

static void find_out_resend(struct session *session, bool replays)
{
	struct fuse_init_in init;
	const unsigned char *body = session->state->init + sizeof(struct fuse_in_header);
	if (replays || session->state->init_len < sizeof(struct fuse_in_header) + sizeof(init))
		return;
	memcpy(&init, body, sizeof(init));
	session->can_resend = init.flags & INIT_EXT && init.flags2 & INIT2_HAS_RESEND;
}

static int attach(struct session *session, struct fail *why)
{
	static const struct fuse_custom_io io = { .writev = write_device, .read = read_device };
	int result = io_set_nonblock(session->fd, true);
	if (result == 0)
		result = fuse_session_custom_io(session->fuse, &io, session->fd);
	if (result != 0)
		return fail_set(why, -EIO, "libfuse does not take the FUSE device: %s",
			strerror(result < 0 ? -result : result));
	return handle_init(session, why);
}

struct session *session_new(const struct session_setup *setup, struct fail *why)
{
	char name[] = "pegfs";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct session *session = xcalloc(1, sizeof(*session));
	*session = (struct session){ .loop = setup->loop,
		.fd = setup->fuse_fd,
		.state = setup->state,
		.on_end = setup->on_end,
		.arg = setup->arg };
	find_out_resend(session, setup->replays);
	session->fuse = fuse_session_new(&args, setup->ops, sizeof(*setup->ops), session);
	fuse_opt_free_args(&args); /* parsing made a copy of it */
	if (!session->fuse)
		fail_set(why, -EIO, "libfuse makes no session");
	else
		attach(session, why);
	if (why->code) {
		session_free(session);
		return NULL;
	}
	return session;
}

int session_serve(struct session *session, struct fail *why)
{
	struct state *state = session->state;
	list_requests(session);
	bool first = !state->init_replied;
	/* ENOENT: a server that died here had answered it already. */
	if (first && write(session->fd, state->reply, state->reply_len) < 0 && errno != ENOENT)
		return fail_errno(why, "cannot answer FUSE_INIT");
	state->init_replied = 1;
	if (!first)
		take_over(session);
	session->entry =
		loop_add_fd(session->loop, session->fd, EPOLLIN, on_readable, session, why);
	return session->entry ? 0 : why->code;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	loop_remove_fd(&session->entry);
	/* It closes the descriptor that it was given. */
	if (session->fuse)
		fuse_session_destroy(session->fuse);
	else
		close(session->fd);
	map_release(&session->kept);
	free(session->free_requests);
	free(session);
}

uint64_t session_unique(const struct session *session)
{
	return session->unique;
}

bool session_is_repeat(const struct session *session)
{
	return session->repeats;
}

bool session_may_be_answered(const struct session *session)
{
	return session->repeats && !session->can_resend;
}

bool session_has_lost_data(const struct session *session)
{
	return session->lost_data;
}

int session_drop_names(const struct session *session)
{
	return notify(session, NOTIFY_INC_EPOCH, NULL, 0);
}

void *session_arg(const void *userdata)
{
	return ((const struct session *)userdata)->arg;
}

struct fuse_session *session_fuse(const struct session *session)
{
	return session->fuse;
}
