/*
 * What pegfs and the warden of a tool host (core/host/warden/warden.c) say to each other, one
 * record a packet of the control socket. Both are installed together, so the records are plain
 * structs.
 */
#ifndef PEGFS_RUNNING_WARDEN_H
#define PEGFS_RUNNING_WARDEN_H

#define WARDEN_FD 3 /* the warden's end */

enum warden_order_type {
	WARDEN_SIGNAL, /* to all: the host and whatever it started */
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

struct warden_report {
	int type;
	int status;     /* of WARDEN_ENDED: the host's, as from waitpid(2) */
	unsigned count; /* of processes that were killed because they were left */
};

#endif
