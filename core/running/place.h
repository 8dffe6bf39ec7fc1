/*
 * Where a process lives: its namespaces and its root directory. A caller that lives elsewhere than
 * this process (in a container, a sandbox, a chroot) is confined to that, and what runs here is not:
 * the ids that the kernel tells are the same numbers, but uid 0 in there is not root of this machine.
 */
#ifndef PEGFS_RUNNING_PLACE_H
#define PEGFS_RUNNING_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum place_part {
	PLACE_USER,
	PLACE_MOUNT,
	PLACE_PID,
	PLACE_NET,
	PLACE_IPC,
	PLACE_ROOT, /* its root directory: chroot(2) */
	PLACE_PARTS,
};

/* Zeroed: not known, which is never taken for here. */
struct place {
	bool is_known;
	uint32_t differs; /* a bit for each part that is not this process's; 0: it lives here */
	uint64_t key;     /* the same for those that live at the same place; 0: here */
};

/*
 * Looks where a thread lives. uid and gid are those that it has on files: with them it looks where
 * root has no right to look at others' processes (no CAP_SYS_PTRACE, as in most containers). A
 * thread that waits for an answer of ours can neither move nor end, so there is no race.
 */
void place_load(struct place *place, pid_t tid, uid_t uid, gid_t gid);

/* This process's own. */
struct place place_here(void);

bool place_is_here(const struct place *place);
bool place_equal(const struct place *a, const struct place *b);

/* The names of what differs, parted by commas: "mount, pid namespaces" is built of these. */
void place_describe(const struct place *place, char *text, size_t size);

#endif
