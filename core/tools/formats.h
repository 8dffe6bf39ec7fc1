/*
 * /.pegfs/formats: all tools as each model API takes them (modelapi.h), ready to be put into a
 * request. A tool or input that an API cannot take is left out, and formats_notes() says so. All
 * append to out and return 0 or a negative errno (-EFBIG, -ENOMEM). tools are sorted by name.
 */
#ifndef PEGFS_TOOLS_FORMATS_H
#define PEGFS_TOOLS_FORMATS_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/tools/modelapi.h"

/*
 * API.json. Of pi: [{name, label, description, parameters}]. Of MCP: the result of tools/list. Of the
 * others: what `tools` of a request is.
 */
int formats_render(enum modelapi api, struct tool *const *tools, size_t count, struct buf *out);

/* names.json: {NAME: TOOL}, the tool which is meant by each name that stands in one of them. */
int formats_names(struct tool *const *tools, size_t count, struct buf *out);

/* notes: a line each of what does not stand in one of them as it is in TOOL.md, and why. */
int formats_notes(struct tool *const *tools, size_t count, struct buf *out);

#endif
