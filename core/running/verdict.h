/*
 * What a signal to a blocked caller means. FUSE tells that there is one, once for each request, and
 * for every kind of signal; /proc tells which. call-semantics.md 4.6, H4 and H5.
 */
#ifndef PEGFS_RUNNING_VERDICT_H
#define PEGFS_RUNNING_VERDICT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum verdict {
	VERDICT_NONE,    /* nothing that ends the wait: SIGCHLD, SIGWINCH, ... */
	VERDICT_FATAL,   /* it will die of it */
	VERDICT_CANCEL,  /* it catches SIGINT or SIGQUIT: somebody wants it to stop */
	VERDICT_SOFT,    /* it catches SIGTERM, SIGHUP, SIGALRM or SIGVTALRM: let its handler run */
	VERDICT_UNKNOWN, /* another pid namespace, or unreadable */
};

/* Signal sets as bit n-1 for signal n, as in proc_pid_status(5). */
struct signal_state {
	uint64_t pending; /* of the thread and of the process */
	uint64_t blocked, ignored, caught;
};

enum verdict verdict_of(const struct signal_state *state);

/* Reads the state of the thread tid, which is blocked in a request, and judges it. */
enum verdict verdict_load(pid_t tid);

#endif
