/* The text of `run`, the same for every tool. arguments.h describes what it does. */
#ifndef PEGFS_TOOLS_RUNSCRIPT_H
#define PEGFS_TOOLS_RUNSCRIPT_H

#include <stddef.h>

extern const char runscript_text[];

/* Without the NUL at its end. */
extern const size_t runscript_len;

#endif
