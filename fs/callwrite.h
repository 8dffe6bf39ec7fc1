/*
 * What is written to an open `call` file: gathered until it is a request, which starts a call.
 */
#ifndef PEGFS_FS_CALLWRITE_H
#define PEGFS_FS_CALLWRITE_H

#include <fuse_lowlevel.h>
#include <stdint.h>

struct callfile;

/* Takes bytes in PHASE_GATHER, and answers req: now, or when the call that they start has ended. */
void callwrite_gather(struct callfile *file, fuse_req_t req, const char *bytes, size_t size);

/*
 * What was written and never became a request has an answer as well: in result.*. Returns the number
 * of the refused call.
 */
uint64_t callwrite_refuse_partial(struct callfile *file);

#endif
