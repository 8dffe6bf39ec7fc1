/* Text for POSIX shells that is safe to paste, whatever the names and values hold. */
#ifndef PEGFS_TOOLS_SHELL_H
#define PEGFS_TOOLS_SHELL_H

#include "core/base/buf.h"

/* One word: as it is where no character of it is special, else in single quotes. */
void shell_word(struct buf *out, const char *text);

/*
 * A command line that sends a document (JSON on one line) to `target`, a redirection such as
 * "> /t/hello/call", and goes on with `then`, such as " && cat /t/hello/result.txt"; with its
 * newline. It is echo with the document in single quotes, or, where the document holds a single
 * quote or a backslash (dash's echo interprets them), cat with a quoted here-document.
 */
void shell_send(struct buf *out, const char *document, const char *target, const char *then);

#endif
