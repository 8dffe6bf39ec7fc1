/*
 * A call through a mount: an id of our own (calls/ID) gives the progress, the way to cancel, and the
 * log; the answer is read from the descriptor to which the request was written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/cmd/callorder.h"
#include "core/tools/manifest.h"

#define PROGRESS_PERIOD_MS 50 /* progress that came just before the end is read at the end */

struct mountcall {
	const struct callorder *order; /* borrowed */
	struct loop *loop;             /* owned */
	char *dir;                     /* owned; TREE/TOOL/calls/ID */
	int call_fd, progress_fd;      /* owned */
	struct loop_fd *call_entry;    /* borrowed from the loop */
	struct loop_timer timer;
	struct buf line; /* of progress: what came behind the last newline */
	int signal;
};

static int open_in(const struct mountcall *call, const char *name, int flags)
{
	auto_free char *path = xasprintf("%s/%s", call->dir, name);
	return open(path, flags | O_CLOEXEC);
}

/* ---- progress */

static void hand_on_lines(struct mountcall *call)
{
	char *newline;
	while (call->line.len && (newline = memchr(call->line.data, '\n', call->line.len))) {
		size_t len = (size_t)(newline - call->line.data);
		call->order->on_progress(call->order->arg, call->line.data, len);
		buf_consume(&call->line, len + 1);
	}
}

static void read_progress(struct mountcall *call)
{
	if (call->progress_fd < 0)
		return;
	io_read_all(call->progress_fd, &call->line);
	hand_on_lines(call);
}

static void on_timer(void *arg)
{
	struct mountcall *call = arg;
	read_progress(call);
	loop_arm_timer(call->loop, &call->timer, PROGRESS_PERIOD_MS, on_timer, call);
}

/* ---- the call */

static void on_answer(void *arg, uint32_t events)
{
	(void)events;
	struct mountcall *call = arg;
	loop_stop(call->loop, 0);
}

static void on_signal(void *arg, int signal)
{
	struct mountcall *call = arg;
	bool again = call->signal != 0;
	call->signal = signal;
	auto_close int fd = again ? -1 : open_in(call, "cancel", O_WRONLY);
	/* Where it cannot be cancelled so, leaving does: nobody waits for it any more. */
	if (fd < 0 || io_write_all(fd, "\n", 1) < 0)
		loop_stop(call->loop, -ECANCELED);
}

static int reserve(struct mountcall *call, struct fail *why)
{
	const struct callorder *order = call->order;
	unsigned number;
	if (!manifest_name_is_safe(order->tool))
		return tree_no_tool(order->tree, order->tool, why);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return fail_errno(why, "no random number for the call's id");
	call->dir = xasprintf(
		"%s/%s/calls/cli-%d-%08x", order->tree->mount, order->tool, (int)getpid(), number);
	if (mkdir(call->dir, 0777) == 0)
		return 0;
	return errno == ENOENT ? tree_no_tool(order->tree, order->tool, why)
			       : fail_errno(why, "cannot begin a call of '%s'", order->tool);
}

/* Returns 0, the errno of a refusal whose reason can be read, or *why. */
static int send(struct mountcall *call, struct fail *why)
{
	call->call_fd = open_in(call, "call", O_RDWR);
	if (call->call_fd < 0)
		return fail_errno(why, "cannot open '%s/call'", call->dir);
	if (call->order->on_progress)
		call->progress_fd = open_in(call, "progress", O_RDONLY);
	return io_write_all(
		call->call_fd, buf_str(call->order->request), call->order->request->len);
}

static int wait_for_end(struct mountcall *call, struct fail *why)
{
	if (callorder_watch_signals(call->loop, on_signal, call, why) < 0)
		return why->code;
	call->call_entry = loop_add_fd(call->loop, call->call_fd, EPOLLIN, on_answer, call, why);
	if (!call->call_entry)
		return why->code;
	if (call->progress_fd >= 0)
		on_timer(call);
	int result = loop_run(call->loop);
	loop_cancel_timer(&call->timer);
	loop_remove_fd(&call->call_entry);
	read_progress(call);
	if (result == -ECANCELED)
		return fail_set(why, result, "the call was left before its end");
	return result < 0 ? fail_set(why, result, "waiting for the answer: %s", strerror(-result))
			  : 0;
}

static void hand_on_log(const struct mountcall *call)
{
	auto_buf struct buf log = BUF_INIT(CALLORDER_SIZE_MAX);
	auto_close int fd = call->order->on_output ? open_in(call, "log", O_RDONLY) : -1;
	if (fd >= 0 && io_read_all(fd, &log) == 0 && log.len > 0)
		call->order->on_output(call->order->arg, log.data, log.len);
}

static int read_answer(
	struct mountcall *call, int refused, struct callorder_answer *answer, struct fail *why)
{
	auto_buf struct buf json = BUF_INIT(2 * CALLORDER_SIZE_MAX);
	int result = io_read_all(call->call_fd, &json);
	if (result < 0)
		return fail_set(why, refused ? refused : result, "the call of '%s': %s",
			call->order->tool, strerror(refused ? -refused : -result));
	auto_json json_t *value = json_loadb(buf_str(&json), json.len, JSON_DECODE_ANY, NULL);
	if (!value)
		return fail_set(why, refused ? refused : -EIO,
			"the call of '%s' ended without an answer%s%s", call->order->tool,
			refused ? ": " : "", refused ? strerror(-refused) : "");
	result_from_value(&answer->result, value);
	answer->end = answer->result.is_error ? CALLORDER_FAILED : CALLORDER_DONE;
	if (refused == -EINVAL || refused == -EFBIG)
		answer->end = CALLORDER_REFUSED;
	return 0;
}

static int make_call(struct mountcall *call, struct callorder_answer *answer, struct fail *why)
{
	if (reserve(call, why) < 0)
		return why->code;
	int refused = send(call, why);
	if (why->code || (refused == 0 && wait_for_end(call, why) < 0))
		return why->code;
	hand_on_log(call);
	return read_answer(call, refused, answer, why);
}

int callmount_run(const struct callorder *order, struct callorder_answer *answer, struct fail *why)
{
	struct mountcall call = { .order = order,
		.loop = loop_new(why),
		.call_fd = -1,
		.progress_fd = -1,
		.line = BUF_INIT(CALLORDER_SIZE_MAX) };
	if (call.loop)
		make_call(&call, answer, why);
	answer->signal = call.signal;
	if (call.call_fd >= 0)
		close(call.call_fd);
	if (call.progress_fd >= 0)
		close(call.progress_fd);
	loop_free(call.loop);
	buf_release(&call.line);
	free(call.dir);
	return why->code;
}
