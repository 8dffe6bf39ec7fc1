#include "fs/callopen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "core/base/xalloc.h"
#include "fs/answer.h"
#include "fs/callfile.h"
#include "fs/callkept.h"
#include "fs/callwrite.h"
#include "fs/options.h"
#include "fs/parked.h"
#include "fs/server.h"

struct callfile *callopen_make(struct server *server, struct tool *tool, struct state_handle *place)
{
	struct callfile *file = xcalloc(1, sizeof(*file));
	file->server = server;
	file->tool = tool_ref(tool);
	file->kept = callkept_in(place);
	file->ino = place->ino;
	document_init(&file->document, server->options->request_max);
	return file;
}

/* ---- the size that stat shows of those that can be read: H7 */

void callopen_enter(struct callfile *file)
{
	file->same_node = map_put(&file->server->readable, file->ino, file);
}

static void leave_readable(struct callfile *file)
{
	struct map *readable = &file->server->readable;
	struct callfile *first = map_remove(readable, file->ino);
	for (struct callfile **link = &first; *link; link = &(*link)->same_node)
		if (*link == file) {
			*link = file->same_node;
			break;
		}
	if (first)
		map_put(readable, file->ino, first);
}

bool callfile_size(const struct server *server, fuse_ino_t ino, size_t *size)
{
	const struct callfile *file = map_get(&server->readable, ino);
	if (!file)
		return false;
	/* Before there is a result: beyond wherever its request may end. */
	size_t after =
		answer_len(file->result) ? answer_len(file->result) : file->document.bytes.max + 1;
	*size = (size_t)(file->base > 0 ? file->base : file->write_end) + after;
	return true;
}

/* ---- opened, closed */

struct callfile *callfile_new(struct server *server, struct tool *tool, uint64_t reserved,
	const struct fuse_ctx *ctx, struct state_handle *kept, int flags)
{
	struct callfile *file = callopen_make(server, tool, kept);
	file->reserved = reserved;
	file->readable = (flags & O_ACCMODE) == O_RDWR;
	file->opener_uid = ctx->uid;
	file->opener_gid = ctx->gid;
	struct identity opener;
	caller_load_identity(&opener, ctx->uid, ctx->gid, ctx->pid);
	file->opener_caps = opener.caps;
	file->opener_place = opener.place;
	file->base = -1;
	if (file->readable)
		callopen_enter(file);
	callkept_note(file);
	return file;
}

void callopen_drop_document(struct callfile *file)
{
	quota_give(&file->server->gathering, file->opener_uid, file->charged);
	file->charged = 0;
	document_reset(&file->document);
}

void callopen_free_run(struct callfile *file)
{
	if (file->run)
		arguments_release(file->run);
	free(file->run);
	file->run = NULL;
}

static void leave_call(struct callfile *file)
{
	struct calls *calls = file->server->calls;
	calls_unwatch(calls, file->seq);
	if (!file->readable || file->awaited)
		calls_cancel(calls, file->seq);
}

void callfile_free(struct callfile *file)
{
	if (!file)
		return;
	if (file->phase == PHASE_RUN)
		leave_call(file);
	else if (file->phase == PHASE_GATHER && file->document.state == DOCUMENT_OPEN &&
		 !file->refused_seq)
		callwrite_refuse_partial(file);
	/* Only a mount that ends leaves anything parked. */
	if (file->write)
		fuse_reply_err(parked_take(&file->write), EIO);
	while (file->reads)
		fuse_reply_err(parked_take(&file->reads), EIO);
	if (file->poll)
		fuse_pollhandle_destroy(file->poll);
	loop_cancel_timer(&file->look_timer);
	if (file->readable)
		leave_readable(file);
	callopen_drop_document(file);
	quota_give(&file->server->open_calls, file->opener_uid, 1);
	document_release(&file->document);
	callopen_free_run(file);
	answer_free(file->result);
	tool_unref(file->tool);
	free(file);
}
