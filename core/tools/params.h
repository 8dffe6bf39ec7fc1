/*
 * A request's parameters: coerced as the pi agent coerces them, completed with defaults, checked
 * against the inputs, before anything runs (R22 to R31, A8, A10).
 */
#ifndef PEGFS_TOOLS_PARAMS_H
#define PEGFS_TOOLS_PARAMS_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/tools/tool.h"

#define PARAMS_TEXT_MAX (64 * 1024) /* of warnings */
#define PARAMS_DEPTH_MAX 512        /* levels of nesting */
#define PARAMS_DEPTH_TEXT "512"

/*
 * Parses one JSON object (RFC 8259, a UTF-8 byte order mark before it is allowed). Refused, with
 * line and column: duplicate keys, NUL bytes and \u0000, lone surrogates, whole numbers beyond 64
 * bits, nesting deeper than PARAMS_DEPTH_MAX, anything that follows. The text of *why holds keys,
 * but no values: nobody knows yet which are sensitive. Returns a new reference, or NULL and *why
 * (-EINVAL, -ENOMEM).
 */
json_t *params_parse(const char *bytes, size_t len, struct fail *why);

/*
 * Checks request (an object) for tool: coerces (coerce.h), takes null for "not given", fills in
 * defaults, checks type, enum and what is required. On success returns the completed parameters, a
 * new reference, in the order of the request, defaults last; unknown parameters are passed through,
 * and for each a line is appended to warnings that names the closest known one. Else NULL and *why
 * (-EINVAL, -ENOMEM): a line for each parameter at fault with what was expected and, unless the
 * input is sensitive, what was given, shortened. No text ever holds the value of a sensitive input
 * or of an unknown parameter, for that may be a sensitive one misspelt.
 */
json_t *params_check(
	const struct tool *tool, json_t *request, struct buf *warnings, struct fail *why);

/*
 * A copy of params in which the value of each sensitive input is "[sensitive]" (R29, A21), and so
 * is that of an unknown parameter whose name is close to a sensitive one's. A new reference, or
 * NULL where memory is short.
 */
json_t *params_redact(const struct tool *tool, const json_t *params);

#endif
