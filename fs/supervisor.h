/*
 * The process that stays: it keeps the FUSE descriptor, the state and the descriptors of the tool
 * hosts, and sees to it that a server runs. It understands no request, no file of a tool and no
 * message of a host; it allocates nothing once it runs; it never touches the mount. So there is
 * next to nothing that could end it, while the server, which reads what others wrote, may die.
 *
 * A server is this program once more (exec), with these descriptors:
 */
#ifndef PEGFS_FS_SUPERVISOR_H
#define PEGFS_FS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/fail.h"
#include "fs/state.h"
#include "fs/store.h"

enum supervisor_fd {
	SUPERVISOR_FUSE_FD = 3, /* /dev/fuse */
	SUPERVISOR_STATE_FD,    /* fs/state.h */
	SUPERVISOR_OPTIONS_FD,  /* options_save() */
	SUPERVISOR_COVERED_FD,  /* the directory that the mount lies over, as a path */
	SUPERVISOR_PUT_BY_FD,   /* a memory file: calls that wait for a host (link.h) */
	SUPERVISOR_CONTROL_FD,  /* a SOCK_SEQPACKET of struct supervisor_message */
	SUPERVISOR_FDS_END,
};

/*
 * From start to end: the server prepares (reads the tools, makes its session), says PREPARED and
 * waits for GO. Only then does it touch what servers share. It says READY when it serves.
 */
enum supervisor_word {
	SUPERVISOR_PREPARED, /* from the server */
	SUPERVISOR_READY,    /* from the server */
	SUPERVISOR_KEEP,     /* from the server, with SUPERVISOR_HOST_FDS descriptors of a host */
	SUPERVISOR_DROP,     /* from the server: close those of a host */
	SUPERVISOR_TAKE,     /* from the server: send those of a host; answered with KEPT */
	SUPERVISOR_KEPT,     /* to the server; without descriptors where there are none */
	SUPERVISOR_GO,       /* to the server */
	SUPERVISOR_END,      /* to the server: release everything and end */
};

#define SUPERVISOR_HOST_FDS STORE_HOST_FDS
#define SUPERVISOR_HOST_CONTROL 2 /* of them: the warden ends when it is closed (keeper.h) */

struct supervisor_message {
	uint32_t word;
	uint32_t slot; /* of KEEP, DROP, TAKE, KEPT: an index into state->hosts */
};

/* How a server ends on its own will; any other end is a crash. */
enum supervisor_exit {
	SUPERVISOR_EXIT_HANDED_OVER = 0, /* it was asked to make room */
	SUPERVISOR_EXIT_UNMOUNTED = 40,  /* the kernel has ended the connection, or END came */
	SUPERVISOR_EXIT_REFUSED,         /* it cannot take over this mount */
};

struct supervisor_news {
	uint64_t generation;     /* of the server that serves */
	uint64_t failed_reloads; /* since the start */
};

/* Everything is borrowed. */
struct supervisor_setup {
	int fuse_fd, state_fd, options_fd, covered_fd, put_by_fd;
	struct state *state;
	/* The manager's; its host descriptors, those of an earlier supervisor, are taken. */
	struct store *store;
	bool is_taken_over;   /* an earlier supervisor had the mount */
	char *const *argv;    /* of a server */
	unsigned watchdog_ms; /* longest time for one request or message; 0: for ever */
	/* A server serves: the first one, or another one; or a reload has failed. */
	void (*on_news)(void *arg, const struct supervisor_news *news);
	/*
	 * No server is left, and the mount is to go; is_disconnected: the kernel has ended it already,
	 * and what is mounted there may be somebody else's.
	 */
	void (*on_end)(void *arg, bool is_disconnected);
	void *arg;
};

/*
 * Runs until the mount has ended: unmounted, or by SIGTERM, SIGINT or SIGHUP; SIGUSR1 replaces the
 * server by a new one, of the program as it is on disk now. Closes fuse_fd. The exit status.
 */
int supervisor_run(const struct supervisor_setup *setup);

#endif
