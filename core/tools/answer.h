/*
 * What a tool's `run` reads back for the words it handed over (arguments.h):
 *
 *   STATUS " " DESCRIPTOR " " NOTES "\n"   0, 1 or 2; 1 or 2; how many lines follow for descriptor 2
 *   NOTES lines
 *   the text, for DESCRIPTOR, up to the end
 *
 * STATUS is the exit status: 0; 1 where the tool failed; 2 where nothing was run. A text is cut at
 * ANSWER_LINES_MAX lines or ANSWER_SIZE_MAX bytes, for its reader is often a model, and then ends
 * with a notice where the whole is. With --json it is the whole ToolResult, also that of a failure,
 * for standard output.
 */
#ifndef PEGFS_TOOLS_ANSWER_H
#define PEGFS_TOOLS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/tools/arguments.h"
#include "core/tools/tool.h"

/* Of a text that is not asked for in full, its notice included. */
#define ANSWER_SIZE_MAX (50 * 1024)
#define ANSWER_LINES_MAX 2000

/* More than this comes on top of a text: the status, the notes, help or a message. */
#define ANSWER_MORE_MAX (2 * 1024 * 1024)

/* All append to out and return 0, -EFBIG or -ENOMEM. */

/* The help that arguments->help asks for. */
int answer_help(const struct tool *tool, const struct arguments *arguments, struct buf *out);

/* Nothing was run: why, and the usage where that was the reason (-EINVAL). */
int answer_refused(const struct tool *tool, const struct arguments *arguments,
	const struct fail *why, struct buf *out);

/*
 * The end of a call. bytes: its result.txt, or its result.json where arguments->show is
 * ARGUMENTS_JSON. whole: where result.txt is, below the tool's directory ("result.txt").
 */
int answer_result(const struct arguments *arguments, bool failed, const char *bytes, size_t len,
	const char *whole, struct buf *out);

#endif
