/*
 * Whether any process at all has begun since a tool's host was known to be alone: then there is nothing
 * to sweep after a call, and its warden need not look. In most calls nothing was started, and to wake
 * the warden for it takes longer than a small call.
 *
 * Linux gives numbers to processes and threads in turn; the one given last, to whoever in this pid
 * namespace or one below, is the last word of /proc/loadavg. While it stays the same, nothing has
 * begun, unless all numbers were given once round: so it is believed only for as long as that must take.
 */
#ifndef PEGFS_RUNNING_QUIET_H
#define PEGFS_RUNNING_QUIET_H

#include <stdbool.h>
#include <stdint.h>

struct quiet {
	long newest; /* the number that was given last; 0: nothing is known */
	int64_t since_ns;
};

/* As it is now; to be asked before one looks whether a host is alone. */
struct quiet quiet_now(void);

/* Whether nothing has begun since. False where that cannot be told. */
bool quiet_holds(const struct quiet *since);

#endif
