/*
 * Where the calls of one tool and one uid stand, oldest first: the set that look-ups by id, by
 * nearness and by age go through, and that is kept short.
 */
#ifndef PEGFS_RUNNING_SHELF_H
#define PEGFS_RUNNING_SHELF_H

#include <sys/types.h>

#include "core/base/map.h"
#include "core/running/call.h"

/* A call in the table. */
struct entry {
	struct call call;
	struct job *job; /* borrowed from the executor; NULL unless it waits or runs */
	void (*on_end)(void *arg, const struct call *call); /* NULL: nobody waits */
	void *on_end_arg;
	struct calls *calls;       /* borrowed */
	struct shelf *shelf;       /* borrowed */
	size_t pending;            /* bytes of its request, until it has ended */
	char *request;             /* owned; the redacted request until the record is written */
	int growing[CALL_PARTS];   /* owned descriptors of log and progress; -1: none */
	bool named;                /* its id was reserved: somebody means to read it by that */
	bool superseded;           /* the same process has finished a later call of the tool */
	bool complained;           /* it has been logged that something of it cannot be kept */
	bool forgotten;            /* nobody sees it any more; it goes when its job has ended */
	struct entry *next, *prev; /* on the shelf */
};

struct shelf {
	char *tool_key; /* owned; of tool.h */
	uid_t uid;
	struct entry *first, *last;
	size_t finished_count, reserved_count;
	size_t bytes;       /* that its finished calls have left */
	struct shelf *next; /* another one of the same hash */
};

struct shelves {
	struct map by_key; /* hash -> owned list of shelves */
};

void shelves_release(struct shelves *shelves);

/* The shelf of a tool and uid, or NULL; shelves_make makes it where there is none. */
struct shelf *shelves_find(const struct shelves *shelves, const char *tool_key, uid_t uid);
struct shelf *shelves_make(struct shelves *shelves, const char *tool_key, uid_t uid);

/* Frees a shelf that has become empty. */
void shelves_drop_empty(struct shelves *shelves, struct shelf *shelf);

/* Puts an entry at its place by seq, or takes it out. */
void shelf_insert(struct shelf *shelf, struct entry *entry);
void shelf_remove(struct entry *entry);

/* Marks what the same process finished before this entry, which has just finished. */
void shelf_supersede(struct entry *entry);

/*
 * The finished call to forget next where there are more than keep, or NULL: the oldest that a later
 * call of the same process has superseded; else the one that ended first, if that was before now_ms
 * - SHELF_GRACE_MS, for its reader may be about to come, or if there are more than keep *
 * SHELF_HARD_FACTOR.
 */
#define SHELF_GRACE_MS 10000
#define SHELF_HARD_FACTOR 16
struct entry *shelf_surplus(const struct shelf *shelf, size_t keep, int64_t now_ms);

/* The finished call that ended first, or NULL. */
struct entry *shelf_first_ended(const struct shelf *shelf);

/* What one call has left, in bytes. */
size_t entry_bytes(const struct entry *entry);

/* The shelf whose finished calls, of which there are at least two, hold the most; NULL: none. */
struct shelf *shelves_heaviest(const struct shelves *shelves);

#endif
