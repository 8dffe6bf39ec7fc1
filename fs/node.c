#include "fs/node.h"

#include <errno.h>
#include <string.h>

#include "fs/server.h"
#include "fs/view.h"

/* clang-format off */
const struct node_type node_types[NODE_KINDS] = {
	[NODE_ROOT] = { "/", NODE_ROOT, S_IFDIR | 0555, NODE_CACHED, NULL, 0 },
	[NODE_README] = { "README.md", NODE_ROOT, S_IFREG | 0444, NODE_CACHED, view_readme, 0 },
	[NODE_ALL_PROMPT] = { "prompt.md", NODE_ROOT, S_IFREG | 0444, NODE_CACHED, view_all_prompt, 0 },
	[NODE_TOOLS_JSON] = { "tools.json", NODE_ROOT, S_IFREG | 0444, NODE_CACHED, view_tools_json, 0 },
	[NODE_META] = { ".pegfs", NODE_ROOT, S_IFDIR | 0555, NODE_CACHED, NULL, 0 },
	[NODE_VERSION] = { "version", NODE_META, S_IFREG | 0444, NODE_CACHED, view_version, 0 },
	[NODE_TOOLS] = { "tools", NODE_META, S_IFREG | 0444, NODE_CACHED, view_tools, 0 },
	[NODE_ERRORS] = { "errors", NODE_META, S_IFREG | 0444, NODE_CACHED, view_errors, 0 },
	[NODE_STATS] = { "stats", NODE_META, S_IFREG | 0444, NODE_VOLATILE, view_stats, 0 },
	[NODE_CONFIG] = { "config", NODE_META, S_IFREG | 0444, NODE_CACHED, view_config, 0 },
	[NODE_FORMATS] = { "formats", NODE_META, S_IFDIR | 0555, NODE_CACHED, NULL, 0 },
	[NODE_TYPEBOX] = { "typebox.json", NODE_FORMATS, S_IFREG | 0444, NODE_CACHED, view_typebox, 0 },
	[NODE_TOOL] = { NULL, NODE_ROOT, S_IFDIR | 0555, NODE_CACHED, NULL, 0 },
	[NODE_SCHEMA] = { "schema.json", NODE_TOOL, S_IFREG | 0444, NODE_CACHED, view_schema, 0 },
	[NODE_PROMPT] = { "prompt.md", NODE_TOOL, S_IFREG | 0444, NODE_CACHED, view_prompt, 0 },
	[NODE_CALL] = { "call", NODE_TOOL, S_IFREG | 0666, NODE_VOLATILE, view_usage, 0 },
	[NODE_RESULT_JSON] = { "result.json", NODE_TOOL, S_IFREG | 0444, NODE_VERSIONED, NULL,
		CALL_PART_RESULT_JSON },
	[NODE_RESULT_TEXT] = { "result.txt", NODE_TOOL, S_IFREG | 0444, NODE_VERSIONED, NULL,
		CALL_PART_RESULT_TEXT },
	[NODE_LOG] = { "log", NODE_TOOL, S_IFREG | 0444, NODE_VERSIONED, NULL, CALL_PART_LOG },
	[NODE_FILE] = { NULL, NODE_TOOL, 0, NODE_PASSED, NULL, 0 },
};
/* clang-format on */

void node_set(struct node *node, enum node_kind kind, struct tool *tool)
{
	*node = (struct node){ .ino = kind == NODE_ROOT ? 1 : ino_static(kind, tool ? tool->id : 0),
		.kind = kind,
		.tool = tool,
		.type = &node_types[kind] };
}

static int get_static(const struct server *server, uint64_t ino, struct node *node)
{
	unsigned kind = ino_kind(ino);
	uint32_t id = ino_low(ino);
	struct tool *tool = id ? snapshot_find_id(server->snapshot, id) : NULL;
	if (kind >= NODE_KINDS || (id && !tool))
		return -ESTALE;
	node_set(node, (enum node_kind)kind, tool);
	return 0;
}

static int get_call(const struct server *server, uint64_t ino, struct node *node)
{
	struct tool *tool = snapshot_find_id(server->snapshot, ino_low(ino));
	if (!tool)
		return -ESTALE;
	node_set(node, NODE_CALL, tool);
	node->ino = ino;
	return 0;
}

static int get_doc(const struct server *server, uint64_t ino, struct node *node)
{
	unsigned kind = ino_kind(ino);
	const struct call *call = calls_get(server->calls, ino_seq(ino));
	if (kind >= NODE_KINDS || !call)
		return -ESTALE;
	node_set(node, (enum node_kind)kind, call->tool);
	node->call = call;
	node->ino = ino;
	return 0;
}

static int get_file(const struct server *server, uint64_t ino, struct node *node)
{
	const struct file *file = files_get(&server->files, ino);
	struct tool *tool = file ? snapshot_find(server->snapshot, file->tool_name) : NULL;
	if (!tool)
		return -ESTALE;
	node_set(node, NODE_FILE, tool);
	node->file = file;
	node->ino = ino;
	return 0;
}

int node_get(const struct server *server, uint64_t ino, struct node *node)
{
	switch (ino_class(ino)) {
	case INO_ROOT:
		node_set(node, NODE_ROOT, NULL);
		return ino == 1 ? 0 : -ESTALE;
	case INO_STATIC:
		return get_static(server, ino, node);
	case INO_CALL:
		return get_call(server, ino, node);
	case INO_DOC:
		return get_doc(server, ino, node);
	case INO_FILE:
		return get_file(server, ino, node);
	default:
		return -ESTALE;
	}
}

enum node_kind node_kind_of(enum node_kind parent, const char *name)
{
	for (int kind = 0; kind < NODE_KINDS; kind++) {
		const struct node_type *type = &node_types[kind];
		if (kind != NODE_ROOT && type->parent == parent && type->name &&
			strcmp(type->name, name) == 0)
			return (enum node_kind)kind;
	}
	return NODE_KINDS;
}

bool node_is_dir(const struct node *node)
{
	return S_ISDIR(node->file ? node->file->type : node->type->mode);
}
