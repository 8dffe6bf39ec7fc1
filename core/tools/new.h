/* A fresh tool: a directory with TOOL.md and an entry that works, passes check, and is to be edited. */
#ifndef PEGFS_TOOLS_NEW_H
#define PEGFS_TOOLS_NEW_H

#include <stdbool.h>

#include "core/base/fail.h"
#include "core/tools/tool.h"

#define NEW_NAME_MAX 64 /* what model APIs take */

/*
 * Makes the directory dir/name, whole or not at all. Returns 0 or why->code: -EINVAL for a name that
 * is not in snake_case (R15), -EEXIST where there is something of that name.
 */
int new_tool(const char *dir, const char *name, enum language language, struct fail *why);

/* One file of a fresh tool; @NAME@ and @LABEL@ stand for the tool's. */
struct new_file {
	const char *name;
	const char *text;
	bool is_program;
};

/* The files of a language, two of them: newtexts.c. */
const struct new_file *new_files(enum language language);

#endif
