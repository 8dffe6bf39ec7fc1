/*
 * A request that is held and answered later. It has one owner, and is gone when it is answered. FUSE
 * tells of a signal to its caller once; libfuse's callback runs with a lock of the request held
 * (call-semantics.md H17), so it only takes a note and lets the owner look from the loop.
 */
#ifndef PEGFS_FS_PARKED_H
#define PEGFS_FS_PARKED_H

#include <fuse_lowlevel.h>

#include "core/base/loop.h"
#include "core/running/verdict.h"

struct parked {
	fuse_req_t req;
	struct loop *loop;       /* borrowed */
	struct loop_timer *look; /* borrowed from the owner: armed when a signal comes */
	loop_on_timer *on_look;
	void *arg;
	pid_t tid; /* of the caller, which is blocked in this request */
	size_t size;
	off_t offset;
	bool interrupted; /* a signal came: look at the caller */
	struct parked *next;
};

/* Holds req; look is armed with on_look(arg) when its caller gets a signal. */
struct parked *parked_new(fuse_req_t req, size_t size, off_t offset, struct loop *loop,
	struct loop_timer *look, loop_on_timer *on_look, void *arg);

/* Takes the request out of *slot, which becomes the next one; the caller has to answer it. */
fuse_req_t parked_take(struct parked **slot);

/* What the signal to its caller means by now; VERDICT_NONE where there was none. */
enum verdict parked_judge(const struct parked *parked);

#endif
