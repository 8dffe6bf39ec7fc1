#include "core/running/printed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TAIL_SHOWN ((size_t)2048)

/* Bytes taken in one turn of the loop. */
#ifdef PEGFS_TINY
#define READ_STEP ((size_t)509)
#else
#define READ_STEP ((size_t)64 * 1024)
#endif

/* Once all that is handed on has come, the rest is read and dropped no faster than this. */
#define FLOOD_STEP ((size_t)1024 * 1024)
#define FLOOD_PAUSE_MS 20

static void keep_tail(struct printed *printed, const char *bytes, size_t len)
{
	if (len > PRINTED_TAIL_MAX) {
		bytes += len - PRINTED_TAIL_MAX;
		len = PRINTED_TAIL_MAX;
	}
	if (printed->tail_len + len > PRINTED_TAIL_MAX) {
		size_t drop = printed->tail_len + len - PRINTED_TAIL_MAX;
		memmove(printed->tail, printed->tail + drop, printed->tail_len - drop);
		printed->tail_len -= drop;
	}
	memcpy(printed->tail + printed->tail_len, bytes, len);
	printed->tail_len += len;
}

static void hand_on(struct printed *printed, const char *bytes, size_t len)
{
	keep_tail(printed, bytes, len);
	if (!printed->is_wanted || printed->left == 0)
		return;
	size_t part = len < printed->left ? len : printed->left;
	printed->left -= part;
	printed->on_bytes(printed->arg, bytes, part);
	if (printed->left > 0)
		return;
	char notice[128];
	int used = snprintf(notice, sizeof(notice),
		"\n[pegfs: this call has printed %zu bytes; the rest is left out]\n", printed->max);
	printed->on_bytes(printed->arg, notice, (size_t)used);
}

/* Reads at most max bytes of what is there. */
static void take(struct printed *printed, size_t max)
{
	static char bytes[READ_STEP]; /* one thread, and no callback comes back here */
	while (max > 0) {
		ssize_t got = read(printed->fd, bytes, max < READ_STEP ? max : READ_STEP);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) { /* nobody holds the other end any more */
			loop_remove_fd(&printed->entry);
			return;
		}
		hand_on(printed, bytes, (size_t)got);
		max -= (size_t)got;
	}
}

void printed_drain(struct printed *printed)
{
	int there = 0;
	if (ioctl(printed->fd, FIONREAD, &there) == 0 && there > 0)
		take(printed, (size_t)there);
}

static void on_pause_over(void *arg)
{
	struct printed *printed = arg;
	take(printed, FLOOD_STEP);
	if (printed->entry)
		loop_set_events(printed->entry, EPOLLIN);
}

static void on_event(void *arg, uint32_t events)
{
	struct printed *printed = arg;
	(void)events;
	take(printed, READ_STEP);
	if ((printed->is_wanted && printed->left > 0) || !printed->entry)
		return;
	loop_set_events(printed->entry, 0);
	loop_arm_timer(printed->loop, &printed->pause, FLOOD_PAUSE_MS, on_pause_over, printed);
}

int printed_watch(struct printed *printed, struct loop *loop, int fd, size_t max,
	printed_on_bytes *on_bytes, void *arg, struct fail *why)
{
	*printed = (struct printed){
		.loop = loop, .fd = fd, .max = max, .on_bytes = on_bytes, .arg = arg
	};
	printed->entry = loop_add_fd(loop, fd, EPOLLIN, on_event, printed, why);
	return why->code;
}

void printed_resume(struct printed *printed, size_t left)
{
	printed->is_wanted = true;
	printed->left = left;
}

void printed_stop(struct printed *printed)
{
	loop_remove_fd(&printed->entry);
	loop_cancel_timer(&printed->pause);
}

void printed_begin(struct printed *printed, bool is_booting)
{
	if (!is_booting) {
		printed_drain(printed);
		printed->tail_len = 0;
	}
	printed->is_wanted = true;
	printed->left = printed->max;
}

void printed_end(struct printed *printed)
{
	printed_drain(printed);
	printed->is_wanted = false;
}

bool printed_says(const struct printed *printed, const char *words)
{
	return memmem(printed->tail, printed->tail_len, words, strlen(words)) != NULL;
}

void printed_describe(const struct printed *printed, struct buf *out)
{
	const char *at = printed->tail;
	size_t len = printed->tail_len;
	while (len > 0 && (at[len - 1] == '\n' || at[len - 1] == ' '))
		len--;
	if (len > TAIL_SHOWN) {
		at += len - TAIL_SHOWN;
		len = TAIL_SHOWN;
	}
	if (len > 0)
		buf_printf(out, "\nThe end of what it printed:\n%.*s", (int)len, at);
}
