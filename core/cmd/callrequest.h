/*
 * The words behind `pegfs call TOOL`, as a request:
 *
 *   (none)         {}
 *   {...}          the request as JSON, in one word
 *   -              the same from standard input
 *   KEY=VALUE ...  an input each; VALUE is a text as it stands, and becomes a number or a boolean
 *                  where the tool wants one (params.h)
 */
#ifndef PEGFS_CMD_CALLREQUEST_H
#define PEGFS_CMD_CALLREQUEST_H

#include "core/base/buf.h"
#include "core/base/fail.h"

/*
 * Appends one JSON object to out. 0, or *why: -EINVAL where the words mean nothing. No message holds
 * a word: it may be a secret.
 */
int callrequest_read(char *const *words, int count, struct buf *out, struct fail *why);

#endif
