/* The server's end of what ties it to its supervisor: words, and the descriptors of tool hosts. */
#ifndef PEGFS_FS_LINK_H
#define PEGFS_FS_LINK_H

#include <stdbool.h>

#include "core/base/fail.h"
#include "core/running/keeper.h"
#include "fs/state.h"
#include "fs/supervisor.h"

struct link {
	int fd;              /* borrowed: SUPERVISOR_CONTROL_FD */
	struct state *state; /* borrowed */
	struct keeper keeper;
	bool is_to_end; /* END has come */
};

void link_init(struct link *link, int fd, struct state *state);

/* Says one word. 0 or a negative errno. */
int link_say(const struct link *link, enum supervisor_word word, uint32_t slot);

/* Waits for GO. False where END came, or nobody is there any more. */
bool link_wait_go(struct link *link);

/* Reads what has come; sets is_to_end. For the loop. */
void link_hear(struct link *link);

#endif
