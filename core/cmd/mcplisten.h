/*
 * subscriptions/listen (revision 2026-07-28): requests that stay open, on which changes are told.
 * Of all that one can ask for there are changes of the list of tools.
 */
#ifndef PEGFS_CMD_MCPLISTEN_H
#define PEGFS_CMD_MCPLISTEN_H

#include <jansson.h>
#include <stdbool.h>

#include "core/cmd/mcpstream.h"
#include "core/cmd/mcpversion.h"

#define MCPLISTEN_MAX 1000 /* open at once */

struct mcplisten {
	struct mcplisten *next;
	const struct mcpversion *version;
	json_t *id; /* a reference */
	bool has_tools;
};

/* Opens one and acknowledges it; false where there are too many. params may be NULL. */
bool mcplisten_open(struct mcplisten **list, const struct mcpversion *version, json_t *id,
	const json_t *params, struct mcpstream *stream);

/* Whether one of that id is open; and closes it without a word, since its client wants no more. */
bool mcplisten_has(const struct mcplisten *list, const json_t *id);
bool mcplisten_cancel(struct mcplisten **list, const json_t *id);

/* Tells those who want to know that the list of tools is another one. */
void mcplisten_tell(const struct mcplisten *list, struct mcpstream *stream);

/* Answers all: nothing more will be told. */
void mcplisten_end(struct mcplisten **list, struct mcpstream *stream);

/* Forgets all. */
void mcplisten_free(struct mcplisten **list);

#endif
