/*
 * The revisions of the Model Context Protocol that are spoken here, and what they differ in. Up to
 * 2025-11-25 a session begins with `initialize`, which agrees on one; from 2026-07-28 on each
 * request names its own in _meta and nothing is remembered. A server may serve both at once
 * (specification 2026-07-28, "Versioning and Compatibility").
 */
#ifndef PEGFS_CMD_MCPVERSION_H
#define PEGFS_CMD_MCPVERSION_H

#include <jansson.h>
#include <stdbool.h>

struct mcpversion {
	const char *name;
	bool is_stateless;   /* each request says its version; results have a resultType */
	bool id_is_optional; /* in an error whose request could not be read; else it is null */
	bool has_structured; /* structuredContent, resource_link */
	bool has_batches;    /* an array of messages on a line */
};

/* NULL where there is none of that name. */
const struct mcpversion *mcpversion_find(const char *name);

/* What a session that begins with `initialize` gets, whose client asked for that (NULL: nothing). */
const struct mcpversion *mcpversion_agree(const char *asked);

/* Their names, the newest first: a new reference. */
json_t *mcpversion_names(void);

/* {"name":"pegfs","version":...}: a new reference. */
json_t *mcpversion_server_info(void);

/* {"tools":...}: what this server can do; a new reference. */
json_t *mcpversion_capabilities(void);

/* Puts into a result what the revision wants in each; result is changed and returned. */
json_t *mcpversion_complete(const struct mcpversion *version, json_t *result);

#endif
