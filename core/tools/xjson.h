/*
 * Small JSON documents of our own making, whose failure to allocate nobody could act on: it aborts,
 * as xalloc does. What anyone outside sized never comes here. Bytes that are no UTF-8 are replaced
 * by U+FFFD, for jansson refuses them.
 */
#ifndef PEGFS_TOOLS_XJSON_H
#define PEGFS_TOOLS_XJSON_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/buf.h"

/* New references, the caller's. */
json_t *xjson_object(void);
json_t *xjson_array(void);
json_t *xjson_string(const char *text);

/* Both take value, which must not be NULL. */
void xjson_set(json_t *object, const char *key, json_t *value);
void xjson_append(json_t *array, json_t *value);

/* Appends the bytes with each that is no part of a well-formed character replaced by U+FFFD. */
int xjson_append_clean(struct buf *out, const char *bytes, size_t len);

#endif
