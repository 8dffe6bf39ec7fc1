#include "fs/events.h"

#include <fuse_lowlevel.h>
#include <string.h>

#include "core/running/caller.h"
#include "fs/server.h"

struct bytes *events_get(const struct server *server, const struct fuse_ctx *ctx, struct fail *why)
{
	const struct audit *audit = &server->audit;
	uint64_t pid_ns = caller_pid_namespace(ctx->pid);
	const struct audit_reader reader = { .uid = ctx->uid,
		.pid_ns = pid_ns,
		.all = (ctx->uid == 0 || ctx->uid == server->uid) && pid_ns == audit->pid_ns };
	auto_buf struct buf out = BUF_INIT(audit->size_max);
	int result = audit_render(audit, &reader, &out);
	if (result < 0) {
		fail_set(why, result, "cannot read the audit trail: %s", strerror(-result));
		return NULL;
	}
	return bytes_take(&out);
}

int events_size(const struct server *server, const struct fuse_ctx *ctx, size_t *size)
{
	struct fail why = FAIL_INIT;
	struct bytes *bytes = events_get(server, ctx, &why);
	if (!bytes)
		return why.code;
	*size = bytes->len;
	bytes_unref(bytes);
	return 0;
}
