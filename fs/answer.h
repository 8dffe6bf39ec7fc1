/*
 * What a reader of a `call` file gets: the ToolResult for who wrote JSON, and for a tool's `run` the
 * answer that its words ask for. All give a new reference to bytes.
 */
#ifndef PEGFS_FS_ANSWER_H
#define PEGFS_FS_ANSWER_H

#include "core/base/bytes.h"
#include "core/base/fail.h"
#include "core/running/calls.h"
#include "core/tools/arguments.h"

/* run: what `run` was given; NULL: the request was JSON. */
struct bytes *answer_of_call(
	const struct calls *calls, const struct call *call, const struct arguments *run);

/* The request did not become a call, or was refused as the call that is given (NULL: none). */
struct bytes *answer_of_refusal(const struct calls *calls, const struct call *call,
	const struct tool *tool, const struct arguments *run, const struct fail *why);

/* The help that run asks for. */
struct bytes *answer_of_help(const struct tool *tool, const struct arguments *run);

#endif
