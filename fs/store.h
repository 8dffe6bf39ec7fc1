/*
 * Descriptors that the service manager keeps while there is no supervisor: systemd's descriptor store
 * (sd_notify(3), sd_listen_fds(3)), or whoever speaks its protocol. They are sent with FDSTORE=1 over
 * the socket in NOTIFY_SOCKET, and come back at the next start with LISTEN_FDS and LISTEN_FDNAMES, in
 * any order: the names tell. FDPOLL=0, for a host that has ended still has something to say.
 */
#ifndef PEGFS_FS_STORE_H
#define PEGFS_FS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/state.h"

enum store_fd {
	STORE_FUSE,    /* /dev/fuse */
	STORE_STATE,   /* state.h */
	STORE_COVERED, /* the directory below the mount */
	STORE_PUT_BY,  /* calls that wait for a host */
	STORE_LOCK,    /* of the private directory: while it is held, nobody clears that */
	STORE_FDS,
};

#define STORE_HOST_FDS 3

struct store {
	int socket_fd;                          /* owned; -1: there is no manager */
	int fds[STORE_FDS];                     /* owned; what came back; -1: did not */
	int hosts[STATE_HOSTS][STORE_HOST_FDS]; /* owned; likewise */
};

/* Takes what came back, and takes the manager's variables out of the environment. */
void store_open(struct store *store);

/* Closes what came back and was not taken. */
void store_close_taken(struct store *store);

/* The same, and the socket. */
void store_release(struct store *store);

/* Whether all of STORE_FDS came back. */
bool store_is_complete(const struct store *store);

/* Whether none of them did. */
bool store_is_empty(const struct store *store);

/* Says a line, such as READY=1. All of these: 0, or a negative errno; 0 where there is no manager. */
int store_say(const struct store *store, const char *line);

/* Keeps one of STORE_FDS. */
int store_keep(const struct store *store, enum store_fd which, int fd);

/* Keeps the descriptors of a host (fds[0] -1: there are none) in the place of those it had. */
int store_set_host(
	const struct store *store, uint32_t slot, const int fds[STORE_HOST_FDS], bool had);

/* Nothing is to come back any more: the mount has ended. */
void store_forget(const struct store *store);

#endif
