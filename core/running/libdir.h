/* Where what the tool hosts need lies: host/ (their scripts), node_modules/. */
#ifndef PEGFS_RUNNING_LIBDIR_H
#define PEGFS_RUNNING_LIBDIR_H

#include <stddef.h>

#include "core/base/fail.h"

/*
 * A program that carries it (build/pegfs-static, core/embedded.S) unpacks it, once for all programs
 * of its version and user, into a directory that only this user can write to; it stays for the next.
 * Others find lib/pegfs beside or above them: build/pegfs has build/lib/pegfs, PREFIX/bin/pegfs has
 * PREFIX/lib/pegfs. The path is the caller's; NULL and *why where there is none.
 */
char *libdir_find(struct fail *why);

/* The second half of the first way, with any archive (unpack.h). */
char *libdir_unpack(const char *archive, size_t len, struct fail *why);

#endif
