/*
 * U+0085, U+2028 and U+2029 break lines in YAML 1.1, and so for libyaml; in 1.2 they are ordinary
 * characters. While libyaml reads, characters for private use (U+10FFFB to U+10FFFD) stand for them.
 */
#ifndef PEGFS_TOOLS_STANDIN_H
#define PEGFS_TOOLS_STANDIN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"

/* Whether there is something to replace. Never where a stand-in is in the text as itself. */
bool standin_are_needed(const char *text, size_t len);

/* Appends the text with stand-ins: at most twice as long. */
void standin_put(const char *text, size_t len, struct buf *out);

/* Puts back what they stand for, in place: a stand-in is never shorter than that. */
void standin_take_out(char *text);

#endif
