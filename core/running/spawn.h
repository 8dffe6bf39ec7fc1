/*
 * Starts one process under a warden: a flat request in; a pid, a socket, a pipe and the warden's
 * control socket out. Nothing here relies on what else this process is, so that the function can
 * move into a supervisor.
 *
 * The child has descriptor 0 = /dev/null, 1 and 2 = the output pipe, 3 = its end of a stream socket
 * and no other that was not asked for; a session and process group of its own; default signals, none blocked; no way to
 * gain rights (no_new_privs); no core files. The warden (core/host/warden/warden.c) is its parent.
 * It ends the child and whatever the child has started when it is told to, or when nobody holds the
 * control socket any more; and the child dies with the warden.
 */
#ifndef PEGFS_RUNNING_SPAWN_H
#define PEGFS_RUNNING_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/fail.h"
#include "core/running/identity.h"

#define SPAWN_SOCKET_FD 3 /* in the child */
#define SPAWN_FDS_AT 5
#define SPAWN_FDS_MAX 16

/* Everything is borrowed for the length of the call. */
struct spawn_request {
	const char *const *argv; /* argv[0] is a path; NULL-terminated */
	const char *const *env;  /* NAME=VALUE, NULL-terminated: all that the child gets */
	const char *warden;      /* the path of the warden's program */
	const struct identity *who;
	unsigned
		wrappers; /* the program is the only child of what is executed (1), or of that (2) */
	bool keeps_rights; /* this process's ids and capabilities: it will take those of `who` itself */
	const int *fds;         /* what the child gets besides, as SPAWN_FDS_AT and so on */
	size_t fd_count;        /* at most SPAWN_FDS_MAX */
	uint64_t files_max;     /* RLIMIT_NOFILE; 0: as here */
	uint64_t processes_max; /* of the child and all that it starts; 0: no limit */
	uint64_t memory_max;    /* the same in bytes, and RLIMIT_DATA of each; 0: no limit */
};

/* The descriptors are close-on-exec, non-blocking and the caller's; -1 where not held. */
struct spawn_child {
	pid_t pid;        /* also its process group and session; the warden reaps it */
	pid_t warden_pid; /* the caller reaps it */
	int socket_fd;
	int output_fd;  /* read end of 1 and 2 */
	int control_fd; /* struct warden_order out, struct warden_report in (warden.h) */
};

#define SPAWN_CHILD_INIT                                                                           \
	{                                                                                          \
		.pid = -1, .warden_pid = -1, .socket_fd = -1, .output_fd = -1, .control_fd = -1    \
	}

/*
 * Returns when the program runs, or could not be run: 0, or the child's own errno with a sentence
 * that names the step. -EACCES: only root may run something as another user. It does not switch
 * where who has this process's uid already and this process is not root: a user's processes are not
 * guarded from each other by groups.
 */
int spawn_child(const struct spawn_request *request, struct spawn_child *child, struct fail *why);

/* Whether this process may run something as who. 0 or -EACCES. */
int spawn_check_identity(const struct identity *who, struct fail *why);

#endif
