/* The server's end of what ties it to its supervisor: words, and the descriptors of tool hosts. */
#ifndef PEGFS_FS_LINK_H
#define PEGFS_FS_LINK_H

#include <stdbool.h>

#include "core/base/fail.h"
#include "core/base/map.h"
#include "core/running/keeper.h"
#include "fs/state.h"
#include "fs/supervisor.h"

struct link {
	int fd;              /* borrowed: SUPERVISOR_CONTROL_FD */
	struct state *state; /* borrowed */
	struct keeper keeper;
	struct map put_by; /* tag -> its struct state_put_by */
	bool is_to_end;    /* END has come */
};

void link_init(struct link *link, int fd, struct state *state);
void link_release(struct link *link);

/* Finds what an earlier server has put by: to be called when that one is gone. */
void link_take_over(struct link *link);

/* Says one word. 0 or a negative errno. */
int link_say(const struct link *link, enum supervisor_word word, uint32_t slot);

/* Waits for GO. False where END came, or nobody is there any more. */
bool link_wait_go(struct link *link);

/* Reads what has come; sets is_to_end. For the loop. */
void link_hear(struct link *link);

#endif
