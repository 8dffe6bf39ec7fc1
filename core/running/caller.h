/*
 * Who called, or reads: ids, and the chain of processes above, by which a reader finds the call that
 * was made nearest to it (call-semantics.md 4.2).
 */
#ifndef PEGFS_RUNNING_CALLER_H
#define PEGFS_RUNNING_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/running/identity.h"

#define CALLER_CHAIN_MAX 32

/* A process for good: a pid is used again, its start time with it is not. */
struct process {
	pid_t pid;
	uint64_t start; /* ticks since boot: field 22 of proc_pid_stat(5) */
};

struct chain {
	struct process links[CALLER_CHAIN_MAX]; /* itself first, then its parent, and so on */
	size_t count;                           /* 0: nothing is known of it */
};

struct caller {
	struct identity who;
	pid_t tid;       /* as FUSE says: a thread; 0: outside of this pid namespace */
	uint64_t pid_ns; /* caller_pid_namespace() */
	struct chain chain;
};

/*
 * Looks a caller up in /proc. Never fails: what cannot be read stays unknown, and then only uid and
 * gid count; one whose place is unknown is not run (identity_resolve()).
 */
void caller_load(struct caller *caller, uid_t uid, gid_t gid, pid_t tid);

/* The same without its place, for one who only reads. */
void caller_load_reader(struct caller *caller, uid_t uid, gid_t gid, pid_t tid);

/* What the same knows of its ids, rights and place, without whom it descends from. */
void caller_load_identity(struct identity *who, uid_t uid, gid_t gid, pid_t tid);

/*
 * It uses what another one has opened: it has the rights that both have, and is at a place only where
 * both are. A descriptor can be handed to somebody with more rights, who writes what he is given.
 */
void caller_confine(struct caller *caller, uint64_t caps, const struct place *place);

/* From here on it acts for somebody else, with these ids and no other rights, at its own place. */
void caller_demote(struct caller *caller, uid_t uid, gid_t gid);

/*
 * A number of the pid namespace of a thread; 0: not known. No later namespace gets it, from Linux 6.18
 * on, and from 6.8 on none of another container; before, one may whose predecessor has ended.
 */
uint64_t caller_pid_namespace(pid_t tid);

/*
 * How far above the reader the first process lies that is also in the other chain: 0 is the reader
 * itself; CALLER_CHAIN_MAX where they share none.
 */
size_t chain_distance(const struct chain *reader, const struct chain *other);

/* The same where it is less than `than`, else the lesser of both limits: it looks no further up. */
size_t chain_distance_below(const struct chain *reader, const struct chain *other, size_t than);

bool process_equal(const struct process *a, const struct process *b);

#endif
