/*
 * The rules for TOOL.md beyond those that the manifest reader itself tells (faults.h): what a tool
 * needs for an agent to choose and use it well (R15, R17, R18, R29, R35, R36, A7).
 */
#ifndef PEGFS_TOOLS_CHECKDOC_H
#define PEGFS_TOOLS_CHECKDOC_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

#define CHECKDOC_DESCRIPTION_MIN 40 /* characters (R17) */

/*
 * Looks at tool, made from the bytes of the TOOL.md in the directory dir_name. has_secrets: the code
 * reads credentials. Faults are appended without a file.
 */
void checkdoc_run(const struct tool *tool, const char *bytes, size_t len, const char *dir_name,
	bool has_secrets, struct faults *faults);

/* ^[a-z][a-z0-9]*(_[a-z0-9]+)*$ (R15) */
bool checkdoc_is_snake_case(const char *name);

#endif
