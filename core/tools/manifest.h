/*
 * TOOL.md -> struct tool: front matter between `---` lines, then the Markdown body (R14 to R31,
 * A1 to A4, A10, A13). Collects every fault it sees, so that one look mends a file; faults.h lists
 * their codes.
 *
 * Front matter that is no YAML gets a second, lenient reading (mend.h); where that gives a tool, the
 * YAML fault is a warning. Fields are read by their type, not by YAML's: `description: 2024` is text.
 */
#ifndef PEGFS_TOOLS_MANIFEST_H
#define PEGFS_TOOLS_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/frontmatter.h"
#include "core/tools/tool.h"

#define MANIFEST_SIZE_MAX FRONTMATTER_FILE_MAX  /* a whole TOOL.md */
#define MANIFEST_FRONT_MAX FRONTMATTER_YAML_MAX /* its front matter */
#define MANIFEST_TIMEOUT_MAX (7 * 24 * 60 * 60) /* seconds */

/*
 * Fills the front-matter fields of a fresh *tool. Faults (without a file) are appended to faults;
 * returns 0 where the tool is usable, warnings or not, else -EINVAL with at least one FAULT_ERROR.
 */
int manifest_parse(const char *bytes, size_t len, struct tool *tool, struct faults *faults);

/*
 * Whether a name may be a directory at the root of the tree: 1 to TOOL_NAME_MAX bytes of UTF-8
 * without '/' and control characters, no '.' or '-' first, none of the names used there.
 */
bool manifest_name_is_safe(const char *name);

#endif
