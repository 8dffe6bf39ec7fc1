/*
 * A server as the fuzzers of fs/ need it: tools in a directory of its own, a session over a socket in
 * the place of /dev/fuse, calls with records, and no process at all: jobs are ended by the input.
 */
#ifndef PEGFS_TESTS_FUZZ_FS_WORLD_H
#define PEGFS_TESTS_FUZZ_FS_WORLD_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fs/options.h"
#include "fs/server.h"
#include "fs/session.h"

/* What is left of the input; reading beyond its end gives zeros. */
struct input_bytes {
	const uint8_t *data;
	size_t len;
};

uint64_t input_number(struct input_bytes *input, size_t size); /* of so many bytes, at most 8 */
/* Up to max bytes; *len says how many there were. */
const uint8_t *input_take(struct input_bytes *input, size_t max, size_t *len);

struct world {
	struct mount_options options;
	struct server server;
	struct state *state; /* of its own */
	int device;          /* the kernel's end */
	bool is_muted;       /* a server is being taken down that has crashed: nobody hears it */
};

/* The world is one, and its tools and directories are made once. Aborts where that cannot be. */
struct world *world_start(bool can_resend);

/* The server has died, and another one takes over; poke (may be NULL) changes the state in between. */
void world_restart(struct world *world, void (*poke)(struct world *world, void *arg), void *arg);
void world_end(struct world *world);

/* Runs the loop until what is due has happened. */
void world_turn(struct world *world);

/* What becomes of the job of that number, if it is there: whatever the input says. */
void world_on_job(struct input_bytes *input);

#endif
