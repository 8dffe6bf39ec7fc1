#include "core/cmd/treelist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

static const char *text_of(const json_t *tool, const char *key)
{
	const char *text = json_string_value(json_object_get(tool, key));
	return text ? text : "";
}

static void fill(struct treelist_tool *row, char *line, const json_t *tool)
{
	row->name = strsep(&line, "\t");
	row->version = line ? strsep(&line, "\t") : "";
	row->language = line ? strsep(&line, "\t") : "";
	row->source = line ? line : "";
	row->title = text_of(tool, "title");
	row->description = text_of(tool, "description");
	row->schema = json_object_get(tool, "inputSchema");
}

static const json_t *advance(const struct treelist *list, size_t *at, const char *name)
{
	for (size_t i = *at; i < json_array_size(list->json); i++) {
		const json_t *tool = json_array_get(list->json, i);
		if (strcmp(text_of(tool, "name"), name) == 0) {
			*at = i + 1;
			return tool;
		}
	}
	return NULL;
}

/*
 * Both texts are in one order. A tool that came or went between the two reads is in one of them
 * only, and is left out.
 */
static void join(struct treelist *list)
{
	char *rest = list->table, *line;
	size_t at = 0;
	while ((line = strsep(&rest, "\n"))) {
		char *end = strchr(line, '\t');
		if (!end || *line == '#')
			continue;
		*end = '\0';
		const json_t *tool = advance(list, &at, line);
		*end = '\t';
		if (!tool)
			continue;
		list->tools = xrealloc(list->tools, list->count + 1, sizeof(*list->tools));
		fill(&list->tools[list->count++], line, tool);
	}
}

int treelist_load(const struct tree *tree, struct treelist *list, struct fail *why)
{
	*list = (struct treelist){ .count = 0 };
	auto_buf struct buf table = BUF_INIT(TREE_TEXT_MAX);
	auto_buf struct buf json = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(tree, TREE_TABLE, NULL, &table, why) < 0 ||
		tree_read(tree, TREE_TOOLS_JSON, NULL, &json, why) < 0)
		return why->code;
	json_error_t error;
	list->json = json_loadb(buf_str(&json), json.len, 0, &error);
	if (!list->json)
		return fail_set(why, -EINVAL, "tools.json, line %d: %s", error.line, error.text);
	list->table = buf_take(&table);
	if (!list->table)
		return fail_set(why, -ENOMEM, "no memory for the list of tools");
	join(list);
	return 0;
}

void treelist_release(struct treelist *list)
{
	free(list->tools);
	json_decref(list->json);
	free(list->table);
	*list = (struct treelist){ .count = 0 };
}

const struct treelist_tool *treelist_find(const struct treelist *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->tools[i].name, name) == 0)
			return &list->tools[i];
	return NULL;
}
