/* What a terminal can show: colours and a width. NO_COLOR (https://no-color.org) is obeyed. */
#ifndef PEGFS_CMD_TERMINAL_H
#define PEGFS_CMD_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/base/buf.h"

enum terminal_style { TERMINAL_BOLD, TERMINAL_DIM, TERMINAL_RED, TERMINAL_YELLOW };

/* Whether it is a terminal, not a dumb one, and nobody has set NO_COLOR. */
bool terminal_has_colour(FILE *stream);

/* Its columns; 0 where it is no terminal or nobody knows. */
size_t terminal_width(FILE *stream);

/* Appends text in a style, or as it is. */
void terminal_paint(struct buf *out, bool colour, enum terminal_style style, const char *text);

/* Appends text on one line (control characters are blanks), cut to width characters; 0: whole. */
void terminal_cut(struct buf *out, const char *text, size_t width);

#endif
