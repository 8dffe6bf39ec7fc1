/*
 * Who waits at an open `call` file: writes and reads that are held until the call has ended, let go
 * when a signal comes, and answered with its outcome or result.
 */
#ifndef PEGFS_FS_CALLWAIT_H
#define PEGFS_FS_CALLWAIT_H

#include <fuse_lowlevel.h>

#include "core/running/call.h"

struct callfile;

/* Holds a request; the file owns what is returned once it is in file->write or file->reads. */
struct parked *callwait_park(struct callfile *file, fuse_req_t req, size_t size, off_t offset);

/* Notes the write at hand as taken, and answers it. */
void callwait_accept_write(struct callfile *file, fuse_req_t req, size_t size);

/* Answers a write with error (a positive errno), or, where that is 0, with size. */
void callwait_answer_write(const struct callfile *file, fuse_req_t req, int error, size_t size);

/* Answers a read in PHASE_DONE with its piece of the result. */
void callwait_answer_read(struct callfile *file, fuse_req_t req, size_t size, off_t offset);

/* The call has ended: a call_on_end of calls.h, arg is the file. */
void callwait_on_end(void *arg, const struct call *call);

#endif
