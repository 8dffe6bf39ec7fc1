/* Where what the tool hosts need lies: host/ (their scripts), node_modules/. */
#ifndef PEGFS_RUNNING_LIBDIR_H
#define PEGFS_RUNNING_LIBDIR_H

#include "core/base/fail.h"

/*
 * The directory lib/pegfs beside or above this program: build/pegfs finds build/lib/pegfs,
 * PREFIX/bin/pegfs finds PREFIX/lib/pegfs. The caller's; NULL and *why where there is none.
 */
char *libdir_find(struct fail *why);

#endif
