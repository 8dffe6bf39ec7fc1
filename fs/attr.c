#include "fs/attr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/callfile.h"
#include "fs/events.h"
#include "fs/options.h"
#include "fs/server.h"

#define LONG_S 86400.0 /* what the number stands for does not change */
#define SHORT_S 0.1
#define FILE_S 1.0 /* a tool's own file may change under us */
#define BLOCK 512

bool attr_may_call(const struct server *server, uid_t uid)
{
	const char *callers = server->options->callers;
	char word[16];
	snprintf(word, sizeof(word), ",%u,", (unsigned)uid);
	return (server->uid == 0 || server->uid == uid) && (!callers || strstr(callers, word));
}

static void set_time(struct stat *st, struct timespec time)
{
	st->st_atim = st->st_mtim = st->st_ctim = time;
}

static struct timespec time_of_ms(int64_t ms)
{
	return (struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
}

/* A call's when it moved last, a tool's when its TOOL.md was written, else the daemon's start. */
struct timespec attr_time(const struct node *node)
{
	if (node->call && node->kind != NODE_ID_CALL)
		return time_of_ms(node->call->changed_ms);
	if (node->kind == NODE_CALL || !node->tool)
		return node->tree->changed;
	return node->tool->mtime;
}

/* Owned by whoever asks, so that cp -a, chmod and the like do not fail in the kernel (H11). */
static void set_owner(struct stat *st, const struct fuse_ctx *ctx)
{
	st->st_uid = ctx->uid;
	st->st_gid = ctx->gid;
}

static bool is_call(const struct node *node)
{
	return node->kind == NODE_CALL || node->kind == NODE_ID_CALL;
}

static int size_of(
	struct server *server, const struct node *node, const struct fuse_ctx *ctx, size_t *size)
{
	if (node->kind == NODE_EVENTS)
		return events_size(server, ctx, size);
	if (is_call(node) && callfile_size(server, node->ino, size))
		return 0;
	if (node->type->render)
		return view_size(server, node, size);
	*size = view_size_of_call(node);
	return 0;
}

/* What stat shows: of `call` always the same, whatever number the kernel has for it. */
static uint64_t number_of(const struct server *server, const struct node *node)
{
	struct node same;
	if (node->kind == NODE_ID_CALL)
		return ino_doc(NODE_ID_CALL, node->call->seq);
	if (node->kind != NODE_CALL)
		return node->ino;
	node_set_in(server, &same, NODE_CALL, node->tree, node->tool);
	return same.ino;
}

static int stat_synthesized(
	struct server *server, const struct node *node, const struct fuse_ctx *ctx, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = number_of(server, node);
	st->st_mode = node->type->mode;
	/* Who can enter could call any user's tools, with that one's settings. */
	if (node->kind == NODE_ROOT && forest_is_above(server->forest, node->tree))
		st->st_mode = S_IFDIR | 0500;
	st->st_nlink = node_is_dir(node) ? 2 : 1;
	st->st_uid = server->uid;
	st->st_blksize = 4096;
	set_time(st, attr_time(node));
	if (node_is_writable(node) && !attr_may_call(server, ctx->uid))
		st->st_mode = S_IFREG | (node->type->mode & 0444);
	if (node_is_writable(node) || node->type->caching == NODE_OF_CALL)
		set_owner(st, ctx);
	if (node_is_dir(node))
		return 0;
	size_t size = 0;
	int result = size_of(server, node, ctx, &size);
	st->st_size = (off_t)size;
	st->st_blocks = (blkcnt_t)((size + BLOCK - 1) / BLOCK);
	return result;
}

/* Names go out of date when the tools change: for long only where the kernel can drop them all. */
static double names_s(const struct server *server)
{
	return server->has_epoch ? LONG_S : SHORT_S;
}

/* A tool's own file: until we are told of a change, where we would be. */
static double file_s(const struct server *server, const struct node *node)
{
	bool told = server->has_epoch && server->watch && watch_sees(server->watch, node->tool);
	return told ? LONG_S : FILE_S;
}

static double attr_timeout(const struct server *server, const struct node *node)
{
	if (node->call && !call_state_is_final(node->call->state))
		return 0;
	switch (node->type->caching) {
	case NODE_CACHED:
	case NODE_OF_CALL:
		return LONG_S;
	case NODE_PASSED:
		return file_s(server, node);
	case NODE_VOLATILE:
		break;
	}
	return 0;
}

static double entry_timeout(const struct server *server, const struct node *node)
{
	switch (node->type->caching) {
	case NODE_CACHED:
		return names_s(server);
	case NODE_PASSED:
		return file_s(server, node);
	case NODE_OF_CALL:
	case NODE_VOLATILE:
		break;
	}
	return 0;
}

bool attr_stat_gone(struct server *server, uint64_t ino, struct stat *st)
{
	const struct file *file = files_get(&server->files, ino);
	*st = (struct stat){ .st_ino = ino, .st_mode = S_IFREG | 0444, .st_nlink = 1 };
	st->st_uid = server->uid;
	st->st_blksize = 4096;
	if (file)
		file_show(file, st);
	/* Else an earlier server has looked at it last: of that, only the note is left. */
	bool is_known = file && file->seen.st_nlink > 0;
	return is_known || opened_stat(&server->opened, ino, st) || file;
}

static int stat_file(
	struct server *server, const struct node *node, struct stat *st, double *timeout)
{
	int result = files_stat(&server->files, node->tool, node->ino, st);
	if (result <= 0)
		return result;
	*timeout = 0;
	return attr_stat_gone(server, node->ino, st) ? 0 : -ESTALE;
}

int attr_stat(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct stat *st, double *timeout)
{
	*timeout = attr_timeout(server, node);
	if (node->kind == NODE_FILE)
		return stat_file(server, node, st, timeout);
	return stat_synthesized(server, node, ctx, st);
}

int attr_entry(struct server *server, const struct node *node, const struct fuse_ctx *ctx,
	struct fuse_entry_param *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->ino = node->ino;
	entry->generation = 1;
	entry->entry_timeout = entry_timeout(server, node);
	if (node->kind == NODE_FILE) { /* looked at just now */
		entry->attr_timeout = attr_timeout(server, node);
		file_show(node->file, &entry->attr);
		return 0;
	}
	int result = attr_stat(server, node, ctx, &entry->attr, &entry->attr_timeout);
	if (is_call(node))
		entry->attr.st_size = CALLFILE_SIZE_AT_LOOKUP;
	return result;
}
