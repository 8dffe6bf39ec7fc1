/*
 * The words that somebody gave to a tool's `run`, as a request.
 *
 * `run` (runscript.h) is a small shell script that understands nothing of its words. It opens the
 * `call` file beside it for reading and writing and hands over what it got, so that no quoting is
 * left to the shell (document.h gathers it):
 *
 *   "run\0" COUNT "\0" PROGRAM "\0" WORD "\0" ...           COUNT words
 *   "run\0" COUNT "+\0" PROGRAM "\0" WORD "\0" ... TEXT "\0" HOW "\0"
 *
 * PROGRAM is the name by which it was started. TEXT is what was on standard input, which is handed
 * over where it is no terminal and no word says more than how to show the answer. HOW is "end", or
 * "cut" where standard input could not be read. A NUL in TEXT is noticed by what follows it.
 *
 * `run` does not look at the outcome of its writes: whatever happens, also where a write fails, the
 * answer (answer.h) can be read afterwards from the same descriptor. Closing it before cancels.
 *
 * The words mean:
 *
 *   --key value, --key=value   an input. `-` and `_` in its name are the same. The value is a text,
 *                              exactly as it came; params_check() makes a number of it where that
 *                              is wanted. A next word that is an option of this tool is no value.
 *   --flag, --no-flag          true and false for a boolean; a next word true, false, 0 or 1 counts
 *   --unknown [value]          an unknown parameter: passed on (A10), with a note
 *   {...}                      the whole request as JSON, if it is the only word beside options of ours
 *   word                       the value of the only input that is needed (or the only one there is)
 *   --                         no word after it is an option or JSON
 *   --full, --json, --help     ours, unless the tool has an input of that name. --help (and -h) as
 *                              the only word always is. `-` is standard input.
 *
 * No message holds a word that may be a secret: a value, or any stray word where the tool has a
 * sensitive input.
 */
#ifndef PEGFS_TOOLS_ARGUMENTS_H
#define PEGFS_TOOLS_ARGUMENTS_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/tools/document.h"
#include "core/tools/tool.h"

enum arguments_show {
	ARGUMENTS_BOUNDED, /* the text, up to a size */
	ARGUMENTS_FULL,    /* all of the text */
	ARGUMENTS_JSON,    /* the ToolResult */
};

struct arguments {
	char *program;            /* owned; as a shell would take it, for messages */
	char *dir;                /* owned; the directory of it, in the same way */
	enum arguments_show show; /* good also where the rest is not */
	bool has_full;            /* --full is ours */
	bool help;                /* only the help is wanted; request is empty */
	struct buf request;       /* one JSON object, for params_parse() */
	struct buf notes;         /* lines for standard error: unknown parameters */
};

/*
 * Reads a complete document of DOCUMENT_RUN. Returns 0, or -EINVAL (-EFBIG, -ENOMEM) and *why. In
 * each case *arguments is filled in as far as its comments say; release it. size_max: of request.
 */
int arguments_read(struct arguments *arguments, const struct tool *tool,
	const struct document *document, size_t size_max, struct fail *why);
void arguments_release(struct arguments *arguments);

/* A struct arguments for messages about a request that did not come whole. */
void arguments_init(struct arguments *arguments, const struct tool *tool);

#endif
