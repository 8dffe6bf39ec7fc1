#include "core/cmd/mcpstream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/tools/jsontext.h"

#define READ_SIZE (64 * 1024)
#define PENDING_MAX ((size_t)512 * 1024 * 1024)
#define PENDING_MANY ((size_t)4 * 1024 * 1024) /* beyond it nothing more is read */

static void on_readable(void *arg, uint32_t events);

static void read_on(void *arg)
{
	on_readable(arg, EPOLLIN);
}

static void end(struct mcpstream *stream, bool is_broken)
{
	loop_remove_fd(&stream->in);
	loop_cancel_timer(&stream->in_timer);
	stream->is_broken |= is_broken;
	if (stream->has_ended && !is_broken)
		return;
	stream->has_ended = true;
	stream->events->on_end(stream->arg, is_broken);
}

/* ---- what goes out */

/*
 * At most what can be written without waiting: the descriptor may be shared with others, so it is
 * not for us to make it non-blocking. A pipe that poll(2) calls writable has room for PIPE_BUF bytes.
 */
static ssize_t write_some(const struct mcpstream *stream)
{
	const struct buf *pending = &stream->pending;
	ssize_t done =
		send(stream->out_fd, pending->data, pending->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done >= 0 || errno != ENOTSOCK)
		return done;
	struct pollfd ready = { .fd = stream->out_fd, .events = POLLOUT };
	if (poll(&ready, 1, 0) <= 0 || !(ready.revents & (POLLOUT | POLLERR))) {
		errno = EAGAIN;
		return -1;
	}
	return write(
		stream->out_fd, pending->data, pending->len < PIPE_BUF ? pending->len : PIPE_BUF);
}

static void watch_input(struct mcpstream *stream, bool on)
{
	if (stream->in)
		loop_set_events(stream->in, on ? EPOLLIN : 0);
	else if (stream->in_is_file && on && !stream->has_ended)
		loop_arm_timer(stream->loop, &stream->in_timer, 0, read_on, stream);
}

static void on_writable(void *arg, uint32_t events);

static void retry_write(void *arg)
{
	on_writable(arg, EPOLLOUT);
}

static void wait_for_room(struct mcpstream *stream)
{
	struct fail ignored = FAIL_INIT;
	if (!stream->out)
		stream->out = loop_add_fd(
			stream->loop, stream->out_fd, EPOLLOUT, on_writable, stream, &ignored);
	if (!stream->out) /* the same file as the input's, which epoll(7) takes once */
		loop_arm_timer(stream->loop, &stream->out_timer, 10, retry_write, stream);
}

static void flush(struct mcpstream *stream)
{
	while (stream->pending.len > 0 && !stream->is_broken) {
		ssize_t done = write_some(stream);
		if (done > 0)
			buf_consume(&stream->pending, (size_t)done);
		else if (errno == EAGAIN || errno == EINTR) {
			wait_for_room(stream);
			return;
		} else
			end(stream, true);
	}
	loop_remove_fd(&stream->out);
}

static void on_writable(void *arg, uint32_t events)
{
	struct mcpstream *stream = arg;
	(void)events;
	flush(stream);
	if (stream->pending.len < PENDING_MANY)
		watch_input(stream, true);
	if (mcpstream_is_flushed(stream) && stream->events->on_flushed)
		stream->events->on_flushed(stream->arg);
}

void mcpstream_send(struct mcpstream *stream, json_t *message)
{
	auto_json json_t *owned = message;
	if (stream->is_broken)
		return;
	if (jsontext_append(&stream->pending, owned, JSONTEXT_COMPACT) < 0 ||
		buf_putc(&stream->pending, '\n') < 0) {
		end(stream, true); /* half a message is in it: nothing can follow */
		return;
	}
	flush(stream);
	if (stream->pending.len >= PENDING_MANY)
		watch_input(stream, false);
}

bool mcpstream_is_flushed(const struct mcpstream *stream)
{
	return stream->pending.len == 0 || stream->is_broken;
}

/* ---- what comes in */

static void hand_on(struct mcpstream *stream)
{
	if (!stream->skips && stream->line.len > 0)
		stream->events->on_line(stream->arg, buf_str(&stream->line), stream->line.len);
	stream->skips = false;
	/* What a long line took is given back. */
	buf_release(&stream->line);
	buf_init(&stream->line, MCPSTREAM_LINE_MAX);
}

static void gather(struct mcpstream *stream, const char *bytes, size_t len)
{
	if (stream->skips || buf_append(&stream->line, bytes, len) == 0)
		return;
	stream->skips = true;
	stream->events->on_long_line(stream->arg);
}

static void take_bytes(struct mcpstream *stream, const char *bytes, size_t len)
{
	const char *newline;
	while (len > 0 && (newline = memchr(bytes, '\n', len))) {
		size_t part = (size_t)(newline - bytes);
		gather(stream, bytes, part);
		hand_on(stream);
		bytes += part + 1;
		len -= part + 1;
	}
	gather(stream, bytes, len);
}

static void on_readable(void *arg, uint32_t events)
{
	struct mcpstream *stream = arg;
	char bytes[READ_SIZE];
	(void)events;
	ssize_t got = read(stream->in_fd, bytes, sizeof(bytes));
	if (got > 0) {
		take_bytes(stream, bytes, (size_t)got);
		if (stream->in_is_file && stream->pending.len < PENDING_MANY)
			watch_input(stream, true);
	} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
		hand_on(stream); /* a last line without its newline */
		end(stream, false);
	}
}

int mcpstream_open(struct mcpstream *stream, struct loop *loop, int in_fd, int out_fd,
	const struct mcpstream_events *events, void *arg, struct fail *why)
{
	*stream = (struct mcpstream){ .loop = loop,
		.events = events,
		.arg = arg,
		.in_fd = in_fd,
		.out_fd = out_fd,
		.line = BUF_INIT(MCPSTREAM_LINE_MAX),
		.pending = BUF_INIT(PENDING_MAX) };
	struct fail failed = FAIL_INIT;
	stream->in = loop_add_fd(loop, in_fd, EPOLLIN, on_readable, stream, &failed);
	stream->in_is_file = failed.code == -EPERM; /* epoll(7) takes no regular files */
	if (!stream->in && !stream->in_is_file)
		return fail_set(why, failed.code, "standard input: %s", strerror(-failed.code));
	watch_input(stream, true);
	return 0;
}

void mcpstream_release(struct mcpstream *stream)
{
	loop_remove_fd(&stream->in);
	loop_remove_fd(&stream->out);
	loop_cancel_timer(&stream->in_timer);
	loop_cancel_timer(&stream->out_timer);
	buf_release(&stream->line);
	buf_release(&stream->pending);
}
