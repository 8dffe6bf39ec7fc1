/* The rules for TOOL.md's Markdown body: its parts, its length, its examples (R35, R36). */
#ifndef PEGFS_TOOLS_CHECKBODY_H
#define PEGFS_TOOLS_CHECKBODY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

#define CHECKBODY_SIZE_MAX (32 * 1024) /* bytes; every agent reads all of them */

/*
 * first_line: the number that the body's first line has in its file; 0: unknown. has_secrets: the
 * tool uses credentials, so the body must say how it gets them.
 */
void checkbody_run(
	const struct tool *tool, size_t first_line, bool has_secrets, struct faults *faults);

#endif
