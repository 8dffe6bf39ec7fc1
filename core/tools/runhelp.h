/* What a tool's `run` says about itself. All append to out; nothing of a sensitive default. */
#ifndef PEGFS_TOOLS_RUNHELP_H
#define PEGFS_TOOLS_RUNHELP_H

#include "core/base/buf.h"
#include "core/tools/tool.h"

#define RUNHELP_SIZE_MAX (1024 * 1024)

/* program: the name of `run` as a shell takes it (struct arguments). 0, -EFBIG or -ENOMEM. */
int runhelp_text(const struct tool *tool, const char *program, struct buf *out);

/* "usage: PROGRAM --name STRING [--shout] ...", wrapped, with its newline. */
void runhelp_usage(const struct tool *tool, const char *program, struct buf *out);

#endif
