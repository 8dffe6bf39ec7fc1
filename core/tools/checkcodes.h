/*
 * Every code that `pegfs check` gives, with its level, its rules and a line for people. Codes are
 * stable; docs/checks.md has an example of each, and a test compares the two.
 */
#ifndef PEGFS_TOOLS_CHECKCODES_H
#define PEGFS_TOOLS_CHECKCODES_H

#include <stddef.h>

#include "core/tools/faults.h"

struct checkcode {
	const char *code;
	enum fault_level level; /* the usual one; a few codes are errors only in the worse case */
	const char *rules;      /* "R18 A1"; "" where no rule of the format asks for it */
	const char *summary;    /* what is wrong, for a list */
};

/* In the order of docs/checks.md; *count of them. */
const struct checkcode *checkcodes_all(size_t *count);

/* NULL where there is no such code. */
const struct checkcode *checkcodes_find(const char *code);

#endif
