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

/*
 * Parses one JSON object (RFC 8259; duplicate keys, NUL and deep nesting are refused, each with its
 * line and column). Returns a new reference, or NULL and *why (-EINVAL).
 */
json_t *params_parse(const char *bytes, size_t len, struct fail *why);

/*
 * Checks request (an object) for tool. On success returns the completed parameters, a new
 * reference; warnings (an unknown parameter and the closest known one, ...) are appended as lines.
 * Else NULL and *why (-EINVAL): a line for each parameter at fault with what was expected. No text
 * ever holds the value of a sensitive input.
 */
json_t *params_check(
	const struct tool *tool, json_t *request, struct buf *warnings, struct fail *why);

/* A copy of params in which the value of each sensitive input is "[sensitive]" (R29, A21). */
json_t *params_redact(const struct tool *tool, const json_t *params);

#endif
