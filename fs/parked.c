#include "fs/parked.h"

#include <stdlib.h>

#include "core/base/xalloc.h"

static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	struct parked *parked = data;
	parked->interrupted = true;
	loop_arm_timer(parked->loop, parked->look, 0, parked->on_look, parked->arg);
}

struct parked *parked_new(fuse_req_t req, size_t size, off_t offset, struct loop *loop,
	struct loop_timer *look, loop_on_timer *on_look, void *arg)
{
	struct parked *parked = xcalloc(1, sizeof(*parked));
	*parked = (struct parked){ .req = req,
		.loop = loop,
		.look = look,
		.on_look = on_look,
		.arg = arg,
		.tid = fuse_req_ctx(req)->pid,
		.size = size,
		.offset = offset };
	fuse_req_interrupt_func(req, on_interrupt, parked);
	return parked;
}

fuse_req_t parked_take(struct parked **slot)
{
	struct parked *parked = *slot;
	fuse_req_t req = parked->req;
	*slot = parked->next;
	fuse_req_interrupt_func(req, NULL, NULL);
	free(parked);
	return req;
}

enum verdict parked_judge(const struct parked *parked)
{
	return parked->interrupted ? verdict_load(parked->tid) : VERDICT_NONE;
}
