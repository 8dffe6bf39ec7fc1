/* A tool's inputs as the words of a command line name them. */
#ifndef PEGFS_TOOLS_OPTION_H
#define PEGFS_TOOLS_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/fail.h"
#include "core/tools/tool.h"

enum option_kind {
	OPTION_UNKNOWN,
	OPTION_INPUT,
	OPTION_NOT, /* --no-flag: false for a boolean input */
	OPTION_FULL,
	OPTION_JSON,
	OPTION_HELP,
};

/* A word that begins with "--" and goes on. All is borrowed: from the word, from the tool. */
struct option {
	enum option_kind kind;
	const char *name; /* behind the dashes, up to a '='; ends there, not with a NUL */
	size_t name_len;
	const char *value;         /* behind the '='; NULL: no '=' */
	const struct input *input; /* of OPTION_INPUT and OPTION_NOT */
};

/* Whether word has the form of an option. */
bool option_is(const char *word);

/*
 * Reads a word for which option_is(). An input's own name wins over a name in which `-` stands for
 * `_` or the other way round, and both win over ours. 0, or -EINVAL and *why where the name is empty
 * or fits several inputs.
 */
int option_read(struct option *option, const struct tool *tool, const char *word, struct fail *why);

/* Whether --name is ours in this tool: it has no input of that name. */
bool option_is_ours(const struct tool *tool, const char *name);

/* The input that a word without a name is for: the only one needed, or the only one there is. */
const struct input *option_positional(const struct tool *tool);

/* Whether a call fails without it. */
bool option_is_needed(const struct input *input);

#endif
