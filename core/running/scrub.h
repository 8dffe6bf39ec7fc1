/*
 * Takes the values of sensitive inputs out of all that a call leaves behind: its log, its progress
 * and its result (R29, A21). Only the tool gets them as they are. A value of less than SCRUB_LEN_MIN bytes is no secret that could be kept: taking "no"
 * out of every text would only make it unreadable.
 */
#ifndef PEGFS_RUNNING_SCRUB_H
#define PEGFS_RUNNING_SCRUB_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/tools/tool.h"

#define SCRUB_LEN_MIN 4
#define SCRUB_MARK "[sensitive]"

struct scrub;

/* The caller's; NULL where nothing is to be hidden, which the other functions take as that. */
struct scrub *scrub_new(const struct tool *tool, const json_t *params);

/* Wipes what it knew. */
void scrub_free(struct scrub *scrub);

/* Appends bytes to out without the values. 0 or a negative errno. */
int scrub_text(const struct scrub *scrub, const char *bytes, size_t len, struct buf *out);

/* A copy of value in which no string, number or key holds one; a new reference, NULL: no memory. */
json_t *scrub_value(const struct scrub *scrub, const json_t *value);

/*
 * The same as scrub_text for a stream in pieces, in which a value may be cut in two: what could be the beginning
 * of one is held back until the next piece, or until scrub_flush.
 */
int scrub_stream(struct scrub *scrub, const char *bytes, size_t len, struct buf *out);
int scrub_flush(struct scrub *scrub, struct buf *out);

#endif
