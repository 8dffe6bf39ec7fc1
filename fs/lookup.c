#include "fs/lookup.h"

#include <errno.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "fs/server.h"

static int lookup_file(
	struct server *server, const struct node *dir, const char *name, struct node *node)
{
	auto_free char *path =
		dir->file ? xasprintf("%s/%s", dir->file->path, name) : xstrdup(name);
	struct stat st;
	int result = file_look(dir->tool, path, &st);
	if (result < 0)
		return result == -ELOOP || result == -EXDEV ? -ENOENT : result;
	const struct file *file = files_note(&server->files, dir->tool, path, &st);
	if (!file)
		return -ENOENT;
	node_set(server, node, NODE_FILE, dir->tool);
	node->file = file;
	node->ino = file->ino;
	return 0;
}

/* What a call left: of the call nearest to the reader, the number being the call's own. */
static void find_nearest(struct server *server, const struct fuse_ctx *ctx, struct node *node)
{
	struct caller reader;
	if (!calls_may_be_seen(server->calls, node->tool, ctx->uid))
		return;
	caller_load_reader(&reader, ctx->uid, ctx->gid, ctx->pid);
	bool finished = node->kind != NODE_LOG;
	const struct call *call = calls_nearest(server->calls, node->tool, &reader, finished);
	if (call)
		node_set_of_call(server, node, node->kind, call);
}

static int lookup_in_tool(
	struct server *server, const struct node *dir, const char *name, struct node *node)
{
	enum node_kind kind = node_kind_of(NODE_TOOL, name);
	if (kind == NODE_KINDS)
		return lookup_file(server, dir, name, node);
	node_set(server, node, kind, dir->tool);
	return 0;
}

/* Below the directory of a tree: what the tree makes itself. */
static int lookup_kind(
	const struct server *server, const struct node *dir, const char *name, struct node *node)
{
	enum node_kind kind = node_kind_of(dir->kind, name);
	if (kind == NODE_KINDS || !node_is_shown(server, kind, dir->tree))
		return -ENOENT;
	node_set_in(server, node, kind, dir->tree, NULL);
	return 0;
}

static int lookup_in_root(
	const struct server *server, const struct node *dir, const char *name, struct node *node)
{
	if (lookup_kind(server, dir, name, node) == 0)
		return 0;
	if (forest_is_above(server->forest, dir->tree)) {
		struct forest_tree *tree = forest_find(server->forest, name);
		if (!tree)
			return -ENOENT;
		node_set_in(server, node, NODE_ROOT, tree, NULL);
		return 0;
	}
	struct tool *tool = snapshot_find(dir->tree->snapshot, name);
	if (!tool)
		return -ENOENT;
	node_set_in(server, node, NODE_TOOL, dir->tree, tool);
	return 0;
}

static int lookup_call(struct server *server, const struct node *dir, const char *id,
	const struct fuse_ctx *ctx, struct node *node)
{
	struct caller caller;
	caller_load_reader(&caller, ctx->uid, ctx->gid, ctx->pid);
	const struct call *call = calls_find(server->calls, dir->tool, &caller, id);
	if (!call)
		return -ENOENT;
	node_set_of_call(server, node, NODE_CALL_DIR, call);
	return 0;
}

static int lookup_in_call(
	struct server *server, const struct node *dir, const char *name, struct node *node)
{
	enum node_kind kind = node_kind_of(NODE_CALL_DIR, name);
	if (kind == NODE_KINDS)
		return -ENOENT;
	if (kind == NODE_ID_CALL)
		server->state->call_serial++;
	node_set_of_call(server, node, kind, dir->call);
	return 0;
}

/* Without what depends on the one who asks. */
static int lookup_plain(
	struct server *server, const struct node *dir, const char *name, struct node *node)
{
	switch (dir->kind) {
	case NODE_ROOT:
		return lookup_in_root(server, dir, name, node);
	case NODE_TOOL:
		return lookup_in_tool(server, dir, name, node);
	case NODE_FILE:
		return lookup_file(server, dir, name, node);
	case NODE_CALL_DIR:
		return lookup_in_call(server, dir, name, node);
	default:
		break;
	}
	return lookup_kind(server, dir, name, node);
}

int lookup_name(struct server *server, const struct node *dir, const char *name,
	const struct fuse_ctx *ctx, struct node *node)
{
	if (dir->kind == NODE_CALLS)
		return lookup_call(server, dir, name, ctx, node);
	int result = lookup_plain(server, dir, name, node);
	if (result == 0 && node->kind == NODE_CALL)
		node->ino = ino_call(server->state->call_serial++, ino_tool_id(node->ino));
	else if (result == 0 && node->type->caching == NODE_OF_CALL && dir->kind == NODE_TOOL)
		find_nearest(server, ctx, node);
	return result;
}

int lookup_listed(
	struct server *server, const struct node *dir, const char *name, struct node *node)
{
	enum node_kind kind = node_kind_of(dir->kind, name);
	if (kind != NODE_KINDS && (kind == NODE_CALL || node_types[kind].caching == NODE_OF_CALL ||
					  node_types[kind].caching == NODE_VOLATILE))
		return -ENOENT;
	return lookup_plain(server, dir, name, node);
}
