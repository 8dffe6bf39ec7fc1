/*
 * Why a request is no JSON, for whoever wrote it: what is wrong, at which line and column, and what
 * to do. jansson's own messages quote what stands at the place, which may be a secret; these name
 * keys and never values.
 */
#ifndef PEGFS_TOOLS_JSONFAULT_H
#define PEGFS_TOOLS_JSONFAULT_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/fail.h"

/* What jansson says of bytes. Returns -EINVAL, or -ENOMEM where that was the reason. */
int jsonfault_set(const char *bytes, size_t len, const json_error_t *error, struct fail *why);

/* "the request is no valid JSON at line 1, column 7: WHAT", for the byte at offset. -EINVAL. */
int jsonfault_at(const char *bytes, size_t offset, const char *what, struct fail *why);

#endif
