/*
 * What a call leaves while it runs and when it ends: log, progress, the record with request and
 * result.
 */
#ifndef PEGFS_RUNNING_OUTCOME_H
#define PEGFS_RUNNING_OUTCOME_H

#include "core/running/executor.h"
#include "core/running/shelf.h"

/* What a job of the executor is told to: its arg is the call's entry. */
extern const struct job_events outcome_events;

/* Appends to the log or to the progress. What cannot be kept is logged, once a call. */
void outcome_append(struct entry *entry, enum call_part part, const char *bytes, size_t len);

/* Closes both; the next piece opens them again. */
void outcome_close_growing(struct entry *entry);

/* While a call runs there is a record with the request alone. */
void outcome_save_request(struct entry *entry);

/*
 * The call has ended: its record is written, everybody who waits for it is told, and what is too much
 * is forgotten, perhaps the entry as well. result becomes ours.
 */
void outcome_finish(struct entry *entry, enum call_state state, struct result *result);

#endif
