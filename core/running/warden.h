/*
 * What pegfs and the warden of a tool host (core/host/warden/warden.c) say to each other, one
 * record a packet of the control socket. Both are installed together, so the records are plain
 * structs.
 */
#ifndef PEGFS_RUNNING_WARDEN_H
#define PEGFS_RUNNING_WARDEN_H

#define WARDEN_FD 3 /* the warden's end */

/*
 * Its arguments: the pid of the host, which is its child already; and how much memory (KiB) and how
 * many processes the host and all that it started may have together while a call runs (0: no limit).
 * And how many wrappers there are, each the parent of the next one and the last one that of the host
 * proper, its oldest child: 0, 1 (sandbox.h) or 2 (enter.h).
 * It looks now and then, so a limit is passed for a moment before everything is ended for it.
 */

enum warden_order_type {
	WARDEN_SIGNAL, /* to all: the host and whatever it started */
	WARDEN_WATCH,  /* a call begins: watch the limits until the next sweep */
	WARDEN_SWEEP,  /* kill all but the host; answered with WARDEN_SWEPT */
};

struct warden_order {
	int type;
	int signal; /* of WARDEN_SIGNAL */
};

enum warden_report_type {
	WARDEN_SWEPT,
	WARDEN_ENDED, /* the last one: the host has ended, and so has all that it started */
};

enum warden_limit { WARDEN_WITHIN, WARDEN_OVER_MEMORY, WARDEN_OVER_PROCESSES };

struct warden_report {
	int type;
	int limit;      /* of WARDEN_ENDED: which one it was ended for */
	int status;     /* of WARDEN_ENDED: the host's, as from waitpid(2) */
	unsigned count; /* of processes that were killed because they were left */
};

#endif
