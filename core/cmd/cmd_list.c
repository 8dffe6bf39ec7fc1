#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/cmd/terminal.h"
#include "core/cmd/treelist.h"
#include "core/tools/xjson.h"

enum form { FORM_TABLE, FORM_LONG, FORM_NAMES, FORM_JSON };

static const struct command_option options[] = {
	TREE_OPTIONS,
	{ "long", 'l', NULL, "with each tool's language and directory", NULL },
	{ "names", 'n', NULL, "names alone", NULL },
	{ "json", 'j', NULL, "as JSON, with the schemas", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static size_t widest(const struct treelist *list)
{
	size_t width = strlen("NAME");
	for (size_t i = 0; i < list->count; i++) {
		size_t len = strlen(list->tools[i].name);
		width = len > width ? len : width;
	}
	return width;
}

/* The description is cut at the terminal's edge; whoever is no terminal gets all of it. */
static void render_table(const struct treelist *list, bool is_long, struct buf *out)
{
	int width = (int)widest(list);
	size_t columns = terminal_width(stdout), used = (size_t)width + 2 + 7 + 2;
	auto_buf struct buf head = BUF_INIT(TREE_TEXT_MAX);
	buf_printf(&head, "%-*s  VERSION  %s", width, "NAME",
		is_long ? "LANGUAGE    DIRECTORY" : "DESCRIPTION");
	terminal_paint(out, terminal_has_colour(stdout), TERMINAL_BOLD, buf_str(&head));
	buf_putc(out, '\n');
	for (size_t i = 0; i < list->count; i++) {
		const struct treelist_tool *tool = &list->tools[i];
		buf_printf(out, "%-*s  %7s  ", width, tool->name, tool->version);
		if (is_long)
			buf_printf(out, "%-10s  %s", tool->language, tool->source);
		else
			terminal_cut(
				out, tool->description, columns > used + 20 ? columns - used : 0);
		buf_putc(out, '\n');
	}
}

static void render_json(const struct treelist *list, struct buf *out)
{
	auto_json json_t *all = xjson_array();
	for (size_t i = 0; i < list->count; i++) {
		const struct treelist_tool *tool = &list->tools[i];
		json_t *json = xjson_object();
		xjson_set(json, "name", xjson_string(tool->name));
		xjson_set(json, "title", xjson_string(tool->title));
		xjson_set(json, "description", xjson_string(tool->description));
		xjson_set(json, "version", json_integer(strtoll(tool->version, NULL, 10)));
		xjson_set(json, "language", xjson_string(tool->language));
		xjson_set(json, "directory", xjson_string(tool->source));
		xjson_set(json, "inputSchema", json_deep_copy(tool->schema));
		xjson_append(all, json);
	}
	auto_free char *text = json_dumps(all, JSON_INDENT(2));
	buf_printf(out, "%s\n", text ? text : "null");
}

static void render(const struct treelist *list, enum form form, struct buf *out)
{
	if (form == FORM_JSON)
		render_json(list, out);
	else if (form == FORM_NAMES)
		for (size_t i = 0; i < list->count; i++)
			buf_printf(out, "%s\n", list->tools[i].name);
	else
		render_table(list, form == FORM_LONG, out);
}

static int print(struct tree *tree, enum form form)
{
	struct treelist list;
	struct fail why = FAIL_INIT;
	auto_buf struct buf out = BUF_INIT(TREE_TEXT_MAX);
	if (treelist_load(tree, &list, &why) == 0)
		render(&list, form, &out);
	treelist_release(&list);
	return tree_print(tree, &out, &why);
}

static int list_tools(int argc, char **argv)
{
	struct tree tree = { .command = "list" };
	enum form form = FORM_TABLE;
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_list, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		if (!tree_take_option(&tree, option, optarg))
			form = option == 'l' ? FORM_LONG : option == 'n' ? FORM_NAMES : FORM_JSON;
	}
	if (optind < argc)
		return command_misuse("list", "too many arguments");
	int status = tree_open(&tree);
	if (status == COMMAND_OK)
		status = print(&tree, form);
	tree_close(&tree);
	return status;
}

const struct command cmd_list = { .name = "list",
	.summary = "the tools that there are",
	.arguments = "",
	.about = "Lists the tools of a mounted tree, or of tool directories.\n",
	.options = options,
	.run = list_tools };
