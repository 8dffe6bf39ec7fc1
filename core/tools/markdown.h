/* Pieces of Markdown that stay whole whatever the text in them holds. */
#ifndef PEGFS_TOOLS_MARKDOWN_H
#define PEGFS_TOOLS_MARKDOWN_H

#include "core/base/buf.h"

/* Text on one line: line ends and other control characters become a blank. */
void markdown_line(struct buf *out, const char *text);

/* The same as a cell of a table: `|` is escaped. */
void markdown_cell(struct buf *out, const char *text);

/* `text`, in as many backticks as it takes; in_cell: in a cell of a table. */
void markdown_code(struct buf *out, const char *text, int in_cell);

#endif
