/* One content block (R38, R43, A18) as text for a person who reads result.txt. */
#ifndef PEGFS_TOOLS_BLOCKTEXT_H
#define PEGFS_TOOLS_BLOCKTEXT_H

#include <jansson.h>

#include "core/base/buf.h"

/*
 * A text block's text as it is; any other as one line, without a newline: its type, what it is or
 * where, its size as far as it says so, and that result.json has it. Failures are kept in out.
 */
void blocktext_append(struct buf *out, const json_t *block);

#endif
