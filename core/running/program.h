/* Programs, by the environment that a tool gets and not by ours. */
#ifndef PEGFS_RUNNING_PROGRAM_H
#define PEGFS_RUNNING_PROGRAM_H

#include "core/base/fail.h"

/*
 * The path of a program by the PATH in env, or by the usual directories where it has none. The
 * caller's; NULL and *why (-ENOENT) where there is none.
 */
char *program_find(const char *name, const char *const *env, struct fail *why);

/* The value of NAME in env, borrowed from it; NULL where it is not set. */
const char *program_get_env(const char *const *env, const char *name);

#endif
