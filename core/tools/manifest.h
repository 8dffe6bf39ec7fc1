/*
 * TOOL.md -> struct tool: front matter between `---` lines, then the Markdown body (R14 to R31,
 * A1 to A4, A10, A13). Collects every fault it sees, so that one look mends a file.
 */
#ifndef PEGFS_TOOLS_MANIFEST_H
#define PEGFS_TOOLS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/tool.h"

#define MANIFEST_SIZE_MAX (1024 * 1024) /* a whole TOOL.md */
#define MANIFEST_FRONT_MAX (64 * 1024)  /* its front matter */

/*
 * Fills the front-matter fields of a fresh *tool. Faults (without a file) are appended to faults;
 * returns 0 where the tool is usable, warnings or not, else -EINVAL with at least one FAULT_ERROR.
 */
int manifest_parse(const char *bytes, size_t len, struct tool *tool, struct faults *faults);

/* Whether a name may be a directory of the tree: no path, not hidden, nothing reserved there. */
bool manifest_name_is_safe(const char *name);

#endif
