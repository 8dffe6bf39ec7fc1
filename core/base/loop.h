/*
 * One thread, one epoll(7) set: descriptors, timers, signals and the exits of children are all
 * events of it. Nothing that a callback does may block.
 *
 * A callback may remove any registration, its own included, and may add new ones: removed entries
 * are only freed when no callback runs, and each event is checked for it before it is delivered.
 */
#ifndef PEGFS_BASE_LOOP_H
#define PEGFS_BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/fail.h"

struct loop;
struct loop_fd;

/* Owned by the caller. Returns NULL and sets *why. */
struct loop *loop_new(struct fail *why);

/*
 * Registrations that are left, children's too, are dropped and their handles become invalid; their
 * descriptors stay the caller's. NULL is allowed.
 */
void loop_free(struct loop *loop);

/* Runs until loop_stop(). Returns the code given to it, or a negative errno of epoll_wait. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop, int code);

/* Milliseconds of CLOCK_MONOTONIC, read once for each turn of the loop. */
uint64_t loop_now_ms(const struct loop *loop);

/* --- descriptors: fd stays the caller's and must outlive the registration */

/* events: EPOLLIN, EPOLLOUT, ... (epoll_ctl(2)), level triggered. */
typedef void loop_on_fd(void *arg, uint32_t events);
struct loop_fd *loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_on_fd *on_event,
	void *arg, struct fail *why);
int loop_set_events(struct loop_fd *entry, uint32_t events);

/* Takes the registration out (NULL is allowed) and sets *entry to NULL. */
void loop_remove_fd(struct loop_fd **entry);

/* --- timers: embedded in their owner, no allocation */

typedef void loop_on_timer(void *arg);
struct loop_timer {
	struct loop *loop; /* borrowed; NULL while never armed */
	loop_on_timer *on_expiry;
	void *arg;
	uint64_t due_ms; /* monotonic */
	size_t slot;     /* 1 + index in the loop's heap; 0: not armed */
};

/* Arms, or arms anew, for delay_ms from now; fires once. */
void loop_arm_timer(struct loop *loop, struct loop_timer *timer, uint64_t delay_ms,
	loop_on_timer *on_expiry, void *arg);
void loop_cancel_timer(struct loop_timer *timer);

/* --- signals and children */

typedef void loop_on_signal(void *arg, int signal);

/* Blocks the signals and delivers them here. One set for each loop. 0 or a negative errno. */
int loop_watch_signals(struct loop *loop, const sigset_t *signals, loop_on_signal *on_signal,
	void *arg, struct fail *why);

/*
 * status as from waitpid(2), or LOOP_EXIT_UNKNOWN where the process is no child of this one (any
 * more) and nobody can say. The child is reaped and its watch removed before this is called.
 */
#define LOOP_EXIT_UNKNOWN (255 << 8) /* as if it had exited with 255 */
typedef void loop_on_exit(void *arg, pid_t pid, int status);
struct loop_child;
struct loop_child *loop_watch_child(
	struct loop *loop, pid_t pid, loop_on_exit *on_exit, void *arg, struct fail *why);

/* Forgets the child without reaping it (NULL is allowed); sets *child to NULL. */
void loop_unwatch_child(struct loop_child **child);

#endif
