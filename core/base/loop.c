#include "core/base/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/xalloc.h"

#define EVENTS_A_TURN 64

struct loop_fd {
	struct loop *loop; /* borrowed */
	int fd;            /* borrowed; -1: removed, freed at the end of the turn */
	loop_on_fd *on_event;
	void *arg;
	struct loop_fd *next; /* in loop->entries, or in loop->removed */
	struct loop_fd **link;
};

struct loop_child {
	struct loop *loop; /* borrowed */
	pid_t pid;
	int pidfd; /* owned */
	struct loop_fd *entry;
	loop_on_exit *on_exit;
	void *arg;
	struct loop_child *next; /* in loop->children */
	struct loop_child **link;
};

struct loop {
	int epoll_fd;
	int signal_fd;
	struct loop_fd *signal_entry;
	loop_on_signal *on_signal;
	void *signal_arg;
	struct loop_child *children; /* owned */
	struct loop_fd *entries;     /* owned */
	struct loop_fd *removed;     /* owned; waiting for the end of the turn */
	struct loop_timer **heap;    /* owned array of borrowed timers; heap[0] is due first */
	size_t timer_count, timer_capacity;
	uint64_t now_ms;
	bool in_timers;
	bool stopping;
	int code;
};

static uint64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct loop *loop_new(struct fail *why)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0) {
		fail_errno(why, "cannot create an epoll descriptor");
		return NULL;
	}
	struct loop *loop = xcalloc(1, sizeof(*loop));
	loop->epoll_fd = fd;
	loop->signal_fd = -1;
	loop->now_ms = clock_ms();
	return loop;
}

static void free_removed(struct loop *loop)
{
	while (loop->removed) {
		struct loop_fd *entry = loop->removed;
		loop->removed = entry->next;
		free(entry);
	}
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->children) {
		struct loop_child *child = loop->children;
		loop_unwatch_child(&child);
	}
	while (loop->entries) {
		struct loop_fd *entry = loop->entries;
		loop_remove_fd(&entry);
	}
	free_removed(loop);
	for (size_t i = 0; i < loop->timer_count; i++)
		loop->heap[i]->slot = 0;
	free(loop->heap);
	if (loop->signal_fd >= 0)
		close(loop->signal_fd);
	close(loop->epoll_fd);
	free(loop);
}

uint64_t loop_now_ms(const struct loop *loop)
{
	return loop->now_ms;
}

void loop_stop(struct loop *loop, int code)
{
	loop->stopping = true;
	loop->code = code;
}

/* ---- descriptors */

struct loop_fd *loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_on_fd *on_event,
	void *arg, struct fail *why)
{
	struct loop_fd *entry = xcalloc(1, sizeof(*entry));
	struct epoll_event event = { .events = events, .data.ptr = entry };
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		fail_errno(why, "cannot watch descriptor %d", fd);
		free(entry);
		return NULL;
	}
	*entry = (struct loop_fd){ .loop = loop,
		.fd = fd,
		.on_event = on_event,
		.arg = arg,
		.next = loop->entries,
		.link = &loop->entries };
	if (entry->next)
		entry->next->link = &entry->next;
	loop->entries = entry;
	return entry;
}

int loop_set_events(struct loop_fd *entry, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = entry };
	return epoll_ctl(entry->loop->epoll_fd, EPOLL_CTL_MOD, entry->fd, &event) < 0 ? -errno : 0;
}

void loop_remove_fd(struct loop_fd **slot)
{
	struct loop_fd *entry = *slot;
	*slot = NULL;
	if (!entry || entry->fd < 0)
		return;
	epoll_ctl(entry->loop->epoll_fd, EPOLL_CTL_DEL, entry->fd, NULL);
	entry->fd = -1;
	*entry->link = entry->next;
	if (entry->next)
		entry->next->link = entry->link;
	entry->next = entry->loop->removed;
	entry->loop->removed = entry;
}

/* ---- timers: a binary heap ordered by due_ms */

static void place(struct loop *loop, size_t index, struct loop_timer *timer)
{
	loop->heap[index] = timer;
	timer->slot = index + 1;
}

static void sift_up(struct loop *loop, size_t index)
{
	struct loop_timer *timer = loop->heap[index];
	while (index > 0 && loop->heap[(index - 1) / 2]->due_ms > timer->due_ms) {
		place(loop, index, loop->heap[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	place(loop, index, timer);
}

static void sift_down(struct loop *loop, size_t index)
{
	struct loop_timer *timer = loop->heap[index];
	for (;;) {
		size_t child = index * 2 + 1;
		if (child >= loop->timer_count)
			break;
		if (child + 1 < loop->timer_count &&
			loop->heap[child + 1]->due_ms < loop->heap[child]->due_ms)
			child++;
		if (loop->heap[child]->due_ms >= timer->due_ms)
			break;
		place(loop, index, loop->heap[child]);
		index = child;
	}
	place(loop, index, timer);
}

void loop_cancel_timer(struct loop_timer *timer)
{
	if (timer->slot == 0)
		return;
	struct loop *loop = timer->loop;
	size_t index = timer->slot - 1;
	timer->slot = 0;
	struct loop_timer *last = loop->heap[--loop->timer_count];
	if (last == timer)
		return;
	place(loop, index, last);
	sift_up(loop, index);
	sift_down(loop, last->slot - 1);
}

void loop_arm_timer(struct loop *loop, struct loop_timer *timer, uint64_t delay_ms,
	loop_on_timer *on_expiry, void *arg)
{
	loop_cancel_timer(timer);
	/* From the clock and not from now_ms: a callback may have run for a while. */
	uint64_t due_ms = clock_ms() + delay_ms;
	/* Armed by a timer for "now": in the next turn, so that descriptors are never starved. */
	if (loop->in_timers && due_ms <= loop->now_ms)
		due_ms = loop->now_ms + 1;
	*timer = (struct loop_timer){
		.loop = loop, .on_expiry = on_expiry, .arg = arg, .due_ms = due_ms
	};
	loop->heap =
		xgrow(loop->heap, loop->timer_count, &loop->timer_capacity, sizeof(*loop->heap));
	place(loop, loop->timer_count++, timer);
	sift_up(loop, timer->slot - 1);
}

static void run_due_timers(struct loop *loop)
{
	uint64_t now = loop->now_ms;
	loop->in_timers = true;
	while (!loop->stopping && loop->timer_count > 0 && loop->heap[0]->due_ms <= now) {
		struct loop_timer *timer = loop->heap[0];
		loop_cancel_timer(timer);
		timer->on_expiry(timer->arg);
	}
	loop->in_timers = false;
}

static int wait_ms(const struct loop *loop)
{
	if (loop->timer_count == 0)
		return -1;
	uint64_t now = clock_ms(), due = loop->heap[0]->due_ms;
	if (due <= now)
		return 0;
	return due - now > 60000 ? 60000 : (int)(due - now);
}

/* ---- signals and children */

static void on_signal_fd(void *arg, uint32_t events)
{
	struct loop *loop = arg;
	(void)events;
	struct signalfd_siginfo info;
	while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		loop->on_signal(loop->signal_arg, (int)info.ssi_signo);
}

int loop_watch_signals(struct loop *loop, const sigset_t *signals, loop_on_signal *on_signal,
	void *arg, struct fail *why)
{
	if (sigprocmask(SIG_BLOCK, signals, NULL) < 0)
		return fail_errno(why, "cannot block signals");
	loop->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop->signal_fd < 0)
		return fail_errno(why, "cannot create a signal descriptor");
	loop->on_signal = on_signal;
	loop->signal_arg = arg;
	loop->signal_entry = loop_add_fd(loop, loop->signal_fd, EPOLLIN, on_signal_fd, loop, why);
	return loop->signal_entry ? 0 : why->code;
}

static void on_pidfd(void *arg, uint32_t events)
{
	struct loop_child *child = arg;
	(void)events;
	int status = 0;
	pid_t got = waitpid(child->pid, &status, WNOHANG);
	if (got == 0)
		return;
	if (got < 0) {
		log_errno(LOG_LEVEL_ERROR, "cannot reap process %d", (int)child->pid);
		status = LOOP_EXIT_UNKNOWN;
	}
	loop_on_exit *on_exit = child->on_exit;
	void *exit_arg = child->arg;
	pid_t pid = child->pid;
	loop_unwatch_child(&child);
	on_exit(exit_arg, pid, status);
}

struct loop_child *loop_watch_child(
	struct loop *loop, pid_t pid, loop_on_exit *on_exit, void *arg, struct fail *why)
{
	long pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		fail_errno(why, "cannot open process %d", (int)pid);
		return NULL;
	}
	struct loop_child *child = xcalloc(1, sizeof(*child));
	*child = (struct loop_child){ .loop = loop,
		.pid = pid,
		.pidfd = (int)pidfd,
		.on_exit = on_exit,
		.arg = arg,
		.next = loop->children,
		.link = &loop->children };
	if (child->next)
		child->next->link = &child->next;
	loop->children = child;
	child->entry = loop_add_fd(loop, child->pidfd, EPOLLIN, on_pidfd, child, why);
	if (!child->entry)
		loop_unwatch_child(&child);
	return child;
}

void loop_unwatch_child(struct loop_child **slot)
{
	struct loop_child *child = *slot;
	*slot = NULL;
	if (!child)
		return;
	loop_remove_fd(&child->entry);
	*child->link = child->next;
	if (child->next)
		child->next->link = child->link;
	close(child->pidfd);
	free(child);
}

/* ---- the loop itself */

int loop_run(struct loop *loop)
{
	loop->stopping = false;
	while (!loop->stopping) {
		struct epoll_event events[EVENTS_A_TURN];
		int count = epoll_wait(loop->epoll_fd, events, EVENTS_A_TURN, wait_ms(loop));
		if (count < 0 && errno != EINTR)
			return -errno;
		loop->now_ms = clock_ms();
		for (int i = 0; i < count && !loop->stopping; i++) {
			struct loop_fd *entry = events[i].data.ptr;
			if (entry->fd >= 0)
				entry->on_event(entry->arg, events[i].events);
		}
		run_due_timers(loop);
		free_removed(loop);
	}
	return loop->code;
}
