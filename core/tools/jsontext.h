/*
 * JSON as text. jansson's own dump writes 0.1 as 0.10000000000000001 and 1.0 as 1.0; here numbers
 * read as JSON.stringify writes them. All else is jansson's.
 */
#ifndef PEGFS_TOOLS_JSONTEXT_H
#define PEGFS_TOOLS_JSONTEXT_H

#include <jansson.h>

#include "core/base/buf.h"

#define JSONTEXT_COMPACT 0
#define JSONTEXT_PRETTY 2 /* blanks a level */

/*
 * Appends value on one line (JSONTEXT_COMPACT) or indented; no newline follows. Keys keep their
 * order. Returns 0, -EFBIG or -ENOMEM.
 */
int jsontext_append(struct buf *out, const json_t *value, int indent);

/*
 * The same value without const: jansson counts references in the value itself, and its iterators
 * and copies take no const although they change nothing else.
 */
json_t *jsontext_unconst(const json_t *json);

#endif
