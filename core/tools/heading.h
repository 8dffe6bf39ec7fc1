/*
 * A Markdown text that becomes part of another: its headings go one level deeper, every other byte
 * stays (R34). cmark says where headings are, so a `#` inside code, HTML or a line of text is none.
 *
 *   # Title      ## Title       one `#` more; level 6 stays
 *   Title        Title
 *   =====        -----          a setext heading of level 1
 *   Title        ### Title      of level 2: only ATX has a third level; several lines become one
 *   -----
 *
 * A setext heading of level 2 stays as it is in one paragraph with link definitions ("[a]: /x"), and
 * where it has several lines in a list and it is not clear which '>' on them are markers.
 */
#ifndef PEGFS_TOOLS_HEADING_H
#define PEGFS_TOOLS_HEADING_H

#include <stddef.h>

#include "core/base/buf.h"

/* cmark aborts where memory is short, so it sees no more than this; a longer text stays as it is. */
#define HEADING_TEXT_MAX (512 * 1024)

/* Appends text to out with its headings one level deeper. Returns 0, -EFBIG or -ENOMEM. */
int heading_deepen(const char *text, size_t len, struct buf *out);

#endif
