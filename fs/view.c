#include "fs/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/prompt.h"
#include "core/tools/runscript.h"
#include "fs/options.h"
#include "fs/server.h"
#include "fs/stats.h"
#include "fs/useroptions.h"

#define VIEWS_HELD_MAX (16 * 1024 * 1024)
#define STATUS_MAX 4096
#define STATS_AGE_MS 1000 /* so that the size in a stat is that of the bytes which are read next */

/* A text that has been made: its size for good, its bytes as long as there is room. */
struct view {
	const struct forest_tree *tree; /* borrowed */
	uint64_t made_ms;               /* of statistics */
	size_t size;
	struct bytes *bytes; /* a reference, or NULL */
};

static void drop_bytes(struct views *views)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&views->by_node, &at))) {
		struct view *view = slot->value;
		bytes_unref(view->bytes);
		view->bytes = NULL;
	}
	views->held = 0;
}

void views_reset(struct views *views)
{
	drop_bytes(views);
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&views->by_node, &at)))
		free(slot->value);
	map_release(&views->by_node);
}

void views_forget(struct views *views, const struct forest_tree *tree)
{
	auto_free uint64_t *keys = xcalloc(views->by_node.count, sizeof(*keys));
	size_t count = 0, at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&views->by_node, &at))) {
		const struct view *view = slot->value;
		if (view->tree == tree)
			keys[count++] = slot->key;
	}
	for (size_t i = 0; i < count; i++) {
		struct view *view = map_remove(&views->by_node, keys[i]);
		if (view->bytes)
			views->held -= view->bytes->len;
		bytes_unref(view->bytes);
		free(view);
	}
}

static struct bytes *render(struct server *server, const struct node *node, struct fail *why)
{
	auto_buf struct buf out = BUF_INIT(PROMPT_ALL_SIZE_MAX);
	int result = node->type->render(server, node, &out);
	if (result == 0)
		result = out.failed;
	if (result < 0) {
		fail_set(why, result, "cannot make %s%s%s: %s", node->tool ? node->tool->name : "",
			node->tool ? "/" : "", node->type->name, strerror(-result));
		return NULL;
	}
	return bytes_take(&out);
}

static uint64_t key_of(const struct server *server, const struct node *node)
{
	return ino_static(node->kind, 0, forest_number(server->forest, node->tree, node->tool));
}

static bool is_fresh(const struct server *server, const struct node *node, const struct view *view)
{
	return node->kind != NODE_STATS || loop_now_ms(server->loop) - view->made_ms < STATS_AGE_MS;
}

static struct view *view_of(struct server *server, const struct node *node)
{
	uint64_t key = key_of(server, node);
	struct view *view = map_get(&server->views.by_node, key);
	if (!view) {
		view = xcalloc(1, sizeof(*view));
		view->tree = node->tree;
		map_put(&server->views.by_node, key, view);
	}
	return view;
}

static void keep(struct server *server, const struct node *node, struct bytes *bytes)
{
	struct views *views = &server->views;
	struct view *view = view_of(server, node);
	if (node->kind == NODE_STATS)
		view->made_ms = loop_now_ms(server->loop);
	view->size = bytes->len;
	if (view->bytes)
		views->held -= view->bytes->len;
	bytes_unref(view->bytes);
	view->bytes = NULL;
	if (bytes->len > VIEWS_HELD_MAX)
		return;
	if (views->held + bytes->len > VIEWS_HELD_MAX)
		drop_bytes(views);
	view->bytes = bytes_ref(bytes);
	views->held += bytes->len;
}

struct bytes *view_get(struct server *server, const struct node *node, struct fail *why)
{
	const struct view *view = map_get(&server->views.by_node, key_of(server, node));
	if (view && view->bytes && is_fresh(server, node, view))
		return bytes_ref(view->bytes);
	struct bytes *bytes = render(server, node, why);
	if (bytes)
		keep(server, node, bytes);
	return bytes;
}

int view_size(struct server *server, const struct node *node, size_t *size)
{
	const struct view *view = map_get(&server->views.by_node, key_of(server, node));
	if (!view || !is_fresh(server, node, view)) {
		struct fail why = FAIL_INIT;
		struct bytes *bytes = view_get(server, node, &why);
		if (!bytes)
			return why.code;
		bytes_unref(bytes);
		view = map_get(&server->views.by_node, key_of(server, node));
	}
	*size = view->size;
	return 0;
}

const char *view_without_result(const struct node *node)
{
	return node->type->part == CALL_PART_RESULT_JSON ? "null\n" : "";
}

static bool has_no_result(const struct node *node)
{
	bool is_result = node->type->part == CALL_PART_RESULT_JSON ||
			 node->type->part == CALL_PART_RESULT_TEXT;
	return !node->call || (is_result && !call_state_is_final(node->call->state));
}

struct bytes *view_get_of_call(
	const struct server *server, const struct node *node, struct fail *why)
{
	if (node->kind == NODE_ID_STATUS) {
		auto_buf struct buf out = BUF_INIT(STATUS_MAX);
		call_render_status(node->call, &out);
		return bytes_take(&out);
	}
	if (node->type->part == CALL_PARTS)
		return bytes_copy("", 0);
	if (has_no_result(node)) {
		const char *text = view_without_result(node);
		return bytes_copy(text, strlen(text));
	}
	return calls_load(server->calls, node->call, node->type->part, why);
}

size_t view_size_of_call(const struct node *node)
{
	if (node->kind == NODE_ID_STATUS) {
		auto_buf struct buf out = BUF_INIT(STATUS_MAX);
		call_render_status(node->call, &out);
		return out.len;
	}
	if (node->type->part == CALL_PARTS)
		return 0;
	return has_no_result(node) ? strlen(view_without_result(node))
				   : node->call->part_len[node->type->part];
}

/* ---- the render functions */

/* What is above users' trees: for who runs the machine. */
static int render_users_readme(const struct server *server, struct buf *out)
{
	return buf_printf(out,
		"# Tools of all users\n\n"
		"One directory a user of `%s`: the global tools, with that user's own over them.\n"
		"Bind-mount `%s/USER` into the user's container, at `%s`.\n"
		"Users come and go with their directories in `%s`; nothing is to be restarted.\n\n"
		"- `.pegfs/users`: who is shown\n"
		"- `.pegfs/errors`: what is wrong with global tools, and which directories are no users\n"
		"- `.pegfs/stats`, `.pegfs/events`, `.pegfs/config`: of the daemon as a whole\n",
		server->options->data, server->options->mountpoint, server->options->shown_at,
		server->options->data);
}

static int compare_trees(const void *left, const void *right)
{
	const struct forest_tree *a = *(struct forest_tree *const *)left;
	const struct forest_tree *b = *(struct forest_tree *const *)right;
	return strcmp(a->owner->name, b->owner->name);
}

/* One line a user, in byte order. */
int view_users(const struct server *server, const struct node *node, struct buf *out)
{
	(void)node;
	const struct forest *forest = server->forest;
	auto_free struct forest_tree **trees = xcalloc(forest->count, sizeof(*trees));
	size_t count = 0, at = 0;
	struct forest_tree *tree = NULL;
	while ((tree = forest_next(forest, &at, tree)))
		trees[count++] = tree;
	if (count > 0)
		qsort(trees, count, sizeof(*trees), compare_trees);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s\n", trees[i]->owner->name);
	return out->failed;
}

int view_readme(const struct server *server, const struct node *node, struct buf *out)
{
	if (forest_is_above(server->forest, node->tree))
		return render_users_readme(server, out);
	return prompt_readme(node->tree->snapshot->tools, node->tree->snapshot->count,
		server->options->shown_at, out);
}

int view_all_prompt(const struct server *server, const struct node *node, struct buf *out)
{
	return prompt_all(node->tree->snapshot->tools, node->tree->snapshot->count,
		server->options->shown_at, out);
}

int view_tools_json(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return prompt_tools_json(node->tree->snapshot->tools, node->tree->snapshot->count, out);
}

int view_version(const struct server *server, const struct node *node, struct buf *out)
{
	(void)node;
	(void)server;
	return buf_puts(out, PEGFS_VERSION "\n");
}

/* One line a tool: name, version, language and the directory it is from, parted by tabs. */
int view_tools(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return prompt_table(node->tree->snapshot->tools, node->tree->snapshot->count, out);
}

int view_errors(const struct server *server, const struct node *node, struct buf *out)
{
	faults_render(&node->tree->snapshot->faults, out);
	if (forest_is_above(server->forest, node->tree))
		faults_render(&server->forest->faults, out);
	return out->failed;
}

int view_stats(const struct server *server, const struct node *node, struct buf *out)
{
	return node->tree->owner ? stats_render_of_tree(server, node->tree, out)
				 : stats_render(server, out);
}

int view_config(const struct server *server, const struct node *node, struct buf *out)
{
	const struct owner *owner = node->tree->owner;
	return owner ? useroptions_render(server->options, owner->name, out)
		     : options_render(server->options, out);
}

int view_schema(const struct server *server, const struct node *node, struct buf *out)
{
	(void)server;
	return prompt_schema(node->tool, out);
}

int view_prompt(const struct server *server, const struct node *node, struct buf *out)
{
	return prompt_tool(node->tool, server->options->shown_at, out);
}

int view_usage(const struct server *server, const struct node *node, struct buf *out)
{
	return prompt_usage(node->tool, server->options->shown_at, out);
}

int view_run(const struct server *server, const struct node *node, struct buf *out)
{
	(void)node;
	(void)server;
	return buf_append(out, runscript_text, runscript_len);
}
