/*
 * The texts that the tree shows about tools. `mount` is the path at which the reader sees the tree,
 * without a slash at its end. All append to out and return 0 or a negative errno (-EFBIG, -ENOMEM).
 */
#ifndef PEGFS_TOOLS_PROMPT_H
#define PEGFS_TOOLS_PROMPT_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/tools/tool.h"

#define PROMPT_SIZE_MAX (4 * 1024 * 1024)       /* of one tool */
#define PROMPT_ALL_SIZE_MAX (256 * 1024 * 1024) /* of all tools */

/* NAME/prompt.md: label, description, inputs, how to call it here, then the body (R34). */
int prompt_tool(const struct tool *tool, const char *mount, struct buf *out);

/* NAME/schema.json (schema.h), pretty-printed. */
int prompt_schema(const struct tool *tool, struct buf *out);

/* What reading NAME/call shows; begins with '#', is no JSON. */
int prompt_usage(const struct tool *tool, const char *mount, struct buf *out);

/* /prompt.md: name, description, inputs, how to call, for each tool, for a system prompt (R17). */
int prompt_all(struct tool *const *tools, size_t count, const char *mount, struct buf *out);

/* /README.md: how to use this directory, in under 40 lines. */
int prompt_readme(struct tool *const *tools, size_t count, const char *mount, struct buf *out);

/* /tools.json: [{name, title, description, inputSchema}], the shape of MCP's tools/list. */
int prompt_tools_json(struct tool *const *tools, size_t count, struct buf *out);

/* /.pegfs/tools: a line each of name, version, language and directory, parted by tabs. */
int prompt_table(struct tool *const *tools, size_t count, struct buf *out);

#endif
