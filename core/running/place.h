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

#include "core/base/siphash.h"

enum place_part {
	PLACE_USER,
	PLACE_MOUNT,
	PLACE_PID,
	PLACE_NET,
	PLACE_IPC,
	PLACE_ROOT, /* its root directory: chroot(2) */
	PLACE_PARTS,
};

/* A bit of place.differs beside the parts: what was opened at one place was written to at another. */
#define PLACE_MIXED (1U << 31)

/* Zeroed: not known, which is never taken for here. */
struct place {
	bool is_known;
	uint32_t differs; /* a bit for each part that is not this process's; 0: it lives here */
	uint64_t key;     /* the same for those that live at the same place; 0: here */
	/*
	 * Of all in one container, however they nest their namespaces: the number of the outermost pid
	 * namespace below this process's own; 0: this one.
	 */
	uint64_t tenant;
};

/*
 * Elsewhere, the key also tells mounts, cgroups and security labels apart. It is a digest under a
 * secret, since who is root of a container can choose some of what goes into it. Numbers of namespaces
 * are used again when one has ended: whoever relies on a key for longer holds the place (anchor.h), or
 * has a process in it.
 */

/* A secret that was kept is used, so that places have the same keys for the next process. */
void place_use_secret(const uint8_t secret[SIPHASH_SECRET_SIZE]);

/*
 * Looks where a thread lives. uid and gid are those that it has on files: with them it looks where
 * root has no right to look at others' processes (no CAP_SYS_PTRACE, as in most containers). A
 * thread that waits for an answer of ours cannot end, nor move to another namespace by itself; but its
 * neighbours may change the root directory of its process.
 */
void place_load(struct place *place, pid_t tid, uid_t uid, gid_t gid);

/*
 * The same of what is open: a descriptor of each part. cgroups and label are the texts of place_read().
 * False where it cannot be told.
 */
bool place_of(
	struct place *place, const int fds[PLACE_PARTS], const char *cgroups, const char *label);

/* /proc/TID/cgroup and /proc/TID/attr/current: at most this long, or the place is not known. */
#define PLACE_TEXT_MAX 4096
int place_read_cgroups(pid_t tid, char text[PLACE_TEXT_MAX]);
int place_read_label(pid_t tid, char text[PLACE_TEXT_MAX]); /* "" where the system has none */

/*
 * The number of another pid namespace of which tid is, made one of its root directory's mount as well,
 * for that is never used again (from Linux 6.8 on).
 */
uint64_t place_mix_mount(uint64_t pid_namespace, pid_t tid);

/* Where a part is below /proc/TID. */
const char *place_link(enum place_part part);

/*
 * Where somebody acts for whom: the place where both are, else one that is mixed, which is neither
 * here nor anywhere that could be joined.
 */
struct place place_mix(const struct place *a, const struct place *b);

/* This process's own. */
struct place place_here(void);

bool place_is_here(const struct place *place);
bool place_equal(const struct place *a, const struct place *b);

/* The names of what differs, parted by commas: "mount, pid namespaces" is built of these. */
void place_describe(const struct place *place, char *text, size_t size);

#endif
