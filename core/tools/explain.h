/*
 * What people and agents are told about parameters that do not fit: one line each, with its
 * newline. A value is shown only where its input is not sensitive, and then shortened (R29).
 */
#ifndef PEGFS_TOOLS_EXPLAIN_H
#define PEGFS_TOOLS_EXPLAIN_H

#include <jansson.h>

#include "core/base/buf.h"
#include "core/tools/tool.h"

/* "  limit: expected a number, got the string "abc"" */
void explain_mismatch(struct buf *out, const struct input *input, const json_t *value);

/* "  name: missing, expected a string: Who to greet"; meant: an unknown parameter, or NULL. */
void explain_missing(struct buf *out, const struct input *input, const char *meant);

/* "unknown parameter "nmae" is passed on as it is; did you mean "name"?"; closest may be NULL. */
void explain_unknown(struct buf *out, const char *name, const char *closest);

/* "a string", "true or false", ...: what may be given for an input. */
void explain_expected(struct buf *out, const struct input *input);

/* "an object", "a number", ...: the kind of a JSON value. */
const char *explain_kind(const json_t *value);

/* text as a JSON string in quotes on one line, shortened to about max bytes. */
void explain_quoted(struct buf *out, const char *text, size_t max);

#endif
