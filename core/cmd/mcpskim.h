/*
 * The id of a request whose line is no JSON that we take: so that whoever waits for its answer gets
 * the error, and does not wait for ever. JSON of numbers that are too large, of half characters or
 * of a key that is there twice is such a line, and so is one that was cut.
 */
#ifndef PEGFS_CMD_MCPSKIM_H
#define PEGFS_CMD_MCPSKIM_H

#include <jansson.h>
#include <stddef.h>

/* The first "id" of the outermost object, a string or an integer: a new reference; NULL: none. */
json_t *mcpskim_id(const char *line, size_t len);

#endif
