/*
 * The table's inner data, shared by the files that make up calls.h: table.c (entries: made, found,
 * forgotten), calls.c (calls: started, cancelled, ids), outcome.c (what a call leaves, and its end),
 * resume.c (what an earlier process has left) and looking.c (who sees what of it).
 */
#ifndef PEGFS_RUNNING_TABLE_H
#define PEGFS_RUNNING_TABLE_H

#include "core/base/map.h"
#include "core/running/calls.h"
#include "core/running/quota.h"
#include "core/running/shelf.h"

struct calls {
	struct loop *loop;         /* borrowed */
	struct executor *executor; /* borrowed */
	struct calls_config config;
	struct map by_seq; /* seq -> owned struct entry */
	struct shelves shelves;
	size_t bytes;         /* that finished calls hold */
	struct quota pending; /* bytes of requests that wait or run */
	uint64_t last_seq;
	uint64_t own_pid_ns;
	const struct calls_listener *listener;
	void *listener_arg;
	struct calls_stats stats;
};

/* Milliseconds since 1970, as calls are dated. */
int64_t table_now_ms(void);

/* An entry that stands nowhere yet, and belongs to who made it; freed with all that it holds. */
struct entry *table_new_entry(struct calls *calls);
void table_free_entry(struct entry *entry);

/* Puts an entry, whose call has its number, at its place; it becomes the table's. */
void table_place(struct entry *entry, struct tool *tool);

/* A new entry of a caller, with a number, an id of that, and a place in the table. */
struct entry *table_make_entry(
	struct calls *calls, struct tool *tool, const struct caller *caller, enum call_state state);

/* The entry of a number, borrowed, or NULL. */
struct entry *table_find(const struct calls *calls, uint64_t seq);

/* It has ended, and what it left counts from here on. */
void table_count_ended(struct entry *entry);

/* Tells the listener that there is something new about the call. */
void table_tell_change(const struct entry *entry);

/* Removes an entry and what its call has left. */
void table_forget(struct entry *entry);

/* Forgets finished calls until there are no more than may be kept. */
void table_drop_surplus(struct calls *calls, struct shelf *shelf);

#endif
