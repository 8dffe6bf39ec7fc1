/* A tool's inputs as text for those who call it (R27 to R31). Nothing of a sensitive default. */
#ifndef PEGFS_TOOLS_INPUTTEXT_H
#define PEGFS_TOOLS_INPUTTEXT_H

#include "core/base/buf.h"
#include "core/tools/tool.h"

/* A Markdown table: name, type or allowed values, required or default, description. */
void inputtext_table(struct buf *out, const struct tool *tool);

/* A line for each input, each behind prefix: "`name` (string, required): Who to greet." */
void inputtext_list(struct buf *out, const struct tool *tool, const char *prefix);

/* Whether the tool has an input whose value is a secret. */
bool inputtext_has_sensitive(const struct tool *tool);

#endif
