#include "fs/node.h"

#include <errno.h>
#include <string.h>

#include "fs/formatview.h"
#include "fs/server.h"
#include "fs/view.h"

#define DIR (S_IFDIR | 0555)
#define TEXT (S_IFREG | 0444)
#define CALL (S_IFREG | 0666)

/* clang-format off */
const struct node_type node_types[NODE_KINDS] = {
	[NODE_ROOT] = { "/", NODE_ROOT, DIR, NODE_CACHED, NULL, CALL_PARTS },
	[NODE_README] = { "README.md", NODE_ROOT, TEXT, NODE_CACHED, view_readme, CALL_PARTS },
	[NODE_ALL_PROMPT] = { "prompt.md", NODE_ROOT, TEXT, NODE_CACHED, view_all_prompt, CALL_PARTS },
	[NODE_TOOLS_JSON] = { "tools.json", NODE_ROOT, TEXT, NODE_CACHED, view_tools_json, CALL_PARTS },
	[NODE_META] = { ".pegfs", NODE_ROOT, DIR, NODE_CACHED, NULL, CALL_PARTS },
	[NODE_VERSION] = { "version", NODE_META, TEXT, NODE_CACHED, view_version, CALL_PARTS },
	[NODE_TOOLS] = { "tools", NODE_META, TEXT, NODE_CACHED, view_tools, CALL_PARTS },
	[NODE_ERRORS] = { "errors", NODE_META, TEXT, NODE_CACHED, view_errors, CALL_PARTS },
	[NODE_STATS] = { "stats", NODE_META, TEXT, NODE_VOLATILE, view_stats, CALL_PARTS },
	[NODE_CONFIG] = { "config", NODE_META, TEXT, NODE_CACHED, view_config, CALL_PARTS },
	[NODE_FORMATS] = { "formats", NODE_META, DIR, NODE_CACHED, NULL, CALL_PARTS },
	[NODE_TYPEBOX] = { "typebox.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_typebox, CALL_PARTS },
	[NODE_TOOL] = { NULL, NODE_ROOT, DIR, NODE_CACHED, NULL, CALL_PARTS },
	[NODE_SCHEMA] = { "schema.json", NODE_TOOL, TEXT, NODE_CACHED, view_schema, CALL_PARTS },
	[NODE_PROMPT] = { "prompt.md", NODE_TOOL, TEXT, NODE_CACHED, view_prompt, CALL_PARTS },
	[NODE_CALL] = { "call", NODE_TOOL, CALL, NODE_VOLATILE, view_usage, CALL_PARTS },
	[NODE_RESULT_JSON] = { "result.json", NODE_TOOL, TEXT, NODE_OF_CALL, NULL, CALL_PART_RESULT_JSON },
	[NODE_RESULT_TEXT] = { "result.txt", NODE_TOOL, TEXT, NODE_OF_CALL, NULL, CALL_PART_RESULT_TEXT },
	[NODE_LOG] = { "log", NODE_TOOL, TEXT, NODE_OF_CALL, NULL, CALL_PART_LOG },
	[NODE_RUN] = { "run", NODE_TOOL, S_IFREG | 0555, NODE_CACHED, view_run, CALL_PARTS },
	[NODE_CALLS] = { "calls", NODE_TOOL, S_IFDIR | 0777, NODE_CACHED, NULL, CALL_PARTS },
	[NODE_CALL_DIR] = { NULL, NODE_CALLS, DIR, NODE_OF_CALL, NULL, CALL_PARTS },
	[NODE_ID_CALL] = { "call", NODE_CALL_DIR, CALL, NODE_VOLATILE, view_usage, CALL_PARTS },
	[NODE_ID_CANCEL] = { "cancel", NODE_CALL_DIR, S_IFREG | 0222, NODE_VOLATILE, NULL, CALL_PARTS },
	[NODE_ID_STATUS] = { "status", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PARTS },
	[NODE_ID_REQUEST] = { "request.json", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PART_REQUEST },
	[NODE_ID_PROGRESS] = { "progress", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PART_PROGRESS },
	[NODE_ID_RESULT_JSON] = { "result.json", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PART_RESULT_JSON },
	[NODE_ID_RESULT_TEXT] = { "result.txt", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PART_RESULT_TEXT },
	[NODE_ID_LOG] = { "log", NODE_CALL_DIR, TEXT, NODE_OF_CALL, NULL, CALL_PART_LOG },
	[NODE_FILE] = { NULL, NODE_TOOL, 0, NODE_PASSED, NULL, CALL_PARTS },
	[NODE_FORMAT_MCP] = { "mcp.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_mcp, CALL_PARTS },
	[NODE_FORMAT_OPENAI] = { "openai.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_openai, CALL_PARTS },
	[NODE_FORMAT_RESPONSES] = { "openai-responses.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_responses, CALL_PARTS },
	[NODE_FORMAT_ANTHROPIC] = { "anthropic.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_anthropic, CALL_PARTS },
	[NODE_FORMAT_GEMINI] = { "gemini.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_gemini, CALL_PARTS },
	[NODE_FORMAT_NAMES] = { "names.json", NODE_FORMATS, TEXT, NODE_CACHED, formatview_names, CALL_PARTS },
	[NODE_FORMAT_NOTES] = { "notes", NODE_FORMATS, TEXT, NODE_CACHED, formatview_notes, CALL_PARTS },
	[NODE_USERS] = { "users", NODE_META, TEXT, NODE_CACHED, view_users, CALL_PARTS },
	[NODE_EVENTS] = { "events", NODE_META, TEXT, NODE_VOLATILE, NULL, CALL_PARTS },
};
/* clang-format on */

/* Of what it is made from; 0 where that never changes. Two depend on this program alone. */
static uint32_t version_of(
	enum node_kind kind, const struct forest_tree *tree, const struct tool *tool)
{
	if (node_types[kind].caching != NODE_CACHED || S_ISDIR(node_types[kind].mode))
		return 0;
	if (kind == NODE_VERSION || kind == NODE_CONFIG)
		return (uint32_t)map_hash(MAP_HASH_SEED, PEGFS_VERSION, strlen(PEGFS_VERSION));
	return tool ? tool->digest : tree->digest;
}

bool node_is_shown(const struct server *server, enum node_kind kind, const struct forest_tree *tree)
{
	bool is_above = forest_is_above(server->forest, tree);
	switch (kind) {
	case NODE_ROOT:
	case NODE_README:
	case NODE_META:
	case NODE_VERSION:
	case NODE_ERRORS:
	case NODE_STATS:
	case NODE_CONFIG:
		return true;
	case NODE_USERS:
		return is_above;
	case NODE_EVENTS: /* of all users in one */
		return is_above || !tree->owner;
	default:
		return !is_above;
	}
}

/* Whether nodes of that kind are those of a tool. */
static bool is_of_tool(enum node_kind kind)
{
	while (kind != NODE_ROOT && kind != NODE_TOOL)
		kind = node_types[kind].parent;
	return kind == NODE_TOOL;
}

void node_set_in(const struct server *server, struct node *node, enum node_kind kind,
	struct forest_tree *tree, struct tool *tool)
{
	uint32_t number = forest_number(server->forest, tree, tool);
	*node = (struct node){ .ino = ino_static(kind, version_of(kind, tree, tool), number),
		.kind = kind,
		.tree = tree,
		.tool = tool,
		.type = &node_types[kind] };
	if (kind == NODE_ROOT && number == 0)
		node->ino = 1;
}

void node_set(
	const struct server *server, struct node *node, enum node_kind kind, struct tool *tool)
{
	struct forest *forest = server->forest;
	node_set_in(server, node, kind, tool ? forest_tree_of(forest, tool) : &forest->only, tool);
}

void node_set_of_call(const struct server *server, struct node *node, enum node_kind kind,
	const struct call *call)
{
	node_set(server, node, kind, call->tool);
	node->call = call;
	node->ino = kind == NODE_ID_CALL ? ino_id_call(server->state->call_serial, call->seq)
					 : ino_doc(kind, call->seq);
}

static int get_static(const struct server *server, uint64_t ino, struct node *node)
{
	unsigned kind = ino_kind(ino);
	struct forest_tree *tree;
	struct tool *tool;
	if (kind >= NODE_KINDS || !forest_get(server->forest, ino_tool_id(ino), &tree, &tool) ||
		is_of_tool((enum node_kind)kind) != (tool != NULL) ||
		!node_is_shown(server, (enum node_kind)kind, tree))
		return -ESTALE;
	node_set_in(server, node, (enum node_kind)kind, tree, tool);
	/* Of an older version: who looks the name up again gets the new one. */
	return node->ino == ino ? 0 : -ESTALE;
}

static int get_call(const struct server *server, uint64_t ino, struct node *node)
{
	struct forest_tree *tree;
	struct tool *tool;
	if (!forest_get(server->forest, ino_tool_id(ino), &tree, &tool) || !tool)
		return -ESTALE;
	node_set_in(server, node, NODE_CALL, tree, tool);
	node->ino = ino;
	return 0;
}

static int get_of_call(const struct server *server, uint64_t ino, struct node *node)
{
	unsigned kind = ino_class(ino) == INO_ID_CALL ? NODE_ID_CALL : ino_kind(ino);
	const struct call *call = calls_get(server->calls, ino_seq(ino));
	if (kind >= NODE_KINDS || !call || !forest_tree_of(server->forest, call->tool))
		return -ESTALE;
	node_set_of_call(server, node, (enum node_kind)kind, call);
	node->ino = ino;
	return 0;
}

static int get_file(const struct server *server, uint64_t ino, struct node *node)
{
	const struct file *file = files_get(&server->files, ino);
	struct tool *tool = file ? forest_find_tool(server->forest, file->tool_key) : NULL;
	if (!tool)
		return -ESTALE;
	node_set(server, node, NODE_FILE, tool);
	node->file = file;
	node->ino = ino;
	return 0;
}

int node_get(const struct server *server, uint64_t ino, struct node *node)
{
	switch (ino_class(ino)) {
	case INO_ROOT:
		node_set(server, node, NODE_ROOT, NULL);
		return ino == 1 ? 0 : -ESTALE;
	case INO_STATIC:
		return get_static(server, ino, node);
	case INO_CALL:
		return get_call(server, ino, node);
	case INO_ID_CALL:
	case INO_DOC:
		return get_of_call(server, ino, node);
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

bool node_is_writable(const struct node *node)
{
	return node->kind == NODE_CALL || node->kind == NODE_ID_CALL ||
	       node->kind == NODE_ID_CANCEL;
}

bool node_is_dir(const struct node *node)
{
	return S_ISDIR(node->file ? node->file->seen.st_mode : node->type->mode);
}
