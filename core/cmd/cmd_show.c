#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/cmd/commands.h"
#include "core/cmd/look.h"
#include "core/cmd/terminal.h"
#include "core/cmd/treelist.h"
#include "core/tools/markdown.h"
#include "core/tools/shell.h"

static const struct command_option options[] = { TREE_OPTIONS, { NULL, 0, NULL, NULL, NULL } };

static const char *string_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static bool is_required(const json_t *schema, const char *name)
{
	size_t index;
	json_t *each;
	json_array_foreach(json_object_get(schema, "required"), index,
		each) if (strcmp(json_string_value(each), name) == 0) return true;
	return false;
}

/* "string", "number", or the values there are: "low | high". */
static void render_type(const json_t *input, struct buf *out)
{
	const json_t *values = json_object_get(input, "enum");
	if (!values)
		buf_puts(out, string_of(input, "type"));
	size_t index;
	json_t *value;
	json_array_foreach(values, index, value)
	{
		buf_puts(out, index ? " | " : "");
		markdown_line(out, json_string_value(value));
	}
}

static void render_input(
	const json_t *schema, const char *name, const json_t *input, struct buf *out)
{
	const json_t *given = json_object_get(input, "default");
	buf_printf(out, "  %s  (", name);
	render_type(input, out);
	buf_puts(out, given ? "" : is_required(schema, name) ? ", required" : ", optional");
	if (given) {
		auto_free char *text = json_dumps(given, JSON_ENCODE_ANY);
		buf_printf(out, ", default %s", text ? text : "");
	}
	buf_puts(out, ")\n");
	if (*string_of(input, "description")) {
		buf_puts(out, "      ");
		markdown_line(out, string_of(input, "description"));
		buf_putc(out, '\n');
	}
}

static void render_head(const struct treelist_tool *tool, bool colour, struct buf *out)
{
	terminal_paint(out, colour, TERMINAL_BOLD, tool->name);
	if (*tool->title && strcmp(tool->title, tool->name) != 0) {
		buf_puts(out, ", ");
		markdown_line(out, tool->title);
	}
	buf_printf(out, "  (version %s, %s)\n%s\n\n", tool->version, tool->language, tool->source);
	markdown_line(out, tool->description);
	buf_putc(out, '\n');
}

static void render_inputs(const struct treelist_tool *tool, bool colour, struct buf *out)
{
	json_t *properties = json_object_get(tool->schema, "properties");
	buf_putc(out, '\n');
	terminal_paint(out, colour, TERMINAL_BOLD,
		json_object_size(properties) ? "inputs:" : "It takes no inputs.");
	buf_putc(out, '\n');
	const char *name;
	json_t *input;
	json_object_foreach(properties, name, input) render_input(tool->schema, name, input, out);
}

/* A placeholder for each required input: pegfs call my_db action=query */
static void render_call(
	const struct tree *tree, const struct treelist_tool *tool, bool colour, struct buf *out)
{
	buf_putc(out, '\n');
	terminal_paint(out, colour, TERMINAL_BOLD, "call it:");
	buf_puts(out, "\n  pegfs call ");
	if (tree->asked_tools || tree->asked_mount) {
		buf_puts(out, tree->mount ? "--mount " : "--tools ");
		shell_word(out, tree->mount ? tree->mount : tree->tools);
		buf_putc(out, ' ');
	}
	shell_word(out, tool->name);
	const char *name;
	json_t *input;
	json_object_foreach(json_object_get(tool->schema, "properties"), name,
		input) if (is_required(tool->schema, name) && !json_object_get(input, "default"))
	{
		const json_t *first = json_array_get(json_object_get(input, "enum"), 0);
		buf_printf(out, " %s=", name);
		if (first)
			shell_word(out, json_string_value(first));
		else
			buf_puts(out, "...");
	}
	buf_putc(out, '\n');
}

/* What .pegfs/errors says of its directory. */
static void render_faults(
	const struct tree *tree, const struct treelist_tool *tool, struct buf *out)
{
	struct fail ignored = FAIL_INIT;
	auto_buf struct buf errors = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(tree, TREE_ERRORS, NULL, &errors, &ignored) < 0 || errors.len == 0)
		return;
	size_t len = strlen(tool->source);
	auto_free char *text = buf_take(&errors);
	char *rest = text;
	bool is_first = true;
	for (const char *line; (line = strsep(&rest, "\n"));)
		if (strncmp(line, tool->source, len) == 0 && line[len] == '/') {
			buf_printf(out, "%s%s\n", is_first ? "\n" : "", line);
			is_first = false;
		}
}

static int render(const struct tree *tree, char **names, struct buf *out, struct fail *why)
{
	struct treelist list;
	const struct treelist_tool *tool = NULL;
	bool colour = terminal_has_colour(stdout);
	if (treelist_load(tree, &list, why) == 0) {
		tool = treelist_find(&list, names[0]);
		if (!tool)
			tree_no_tool(tree, names[0], why);
	}
	if (tool) {
		render_head(tool, colour, out);
		render_inputs(tool, colour, out);
		render_call(tree, tool, colour, out);
		render_faults(tree, tool, out);
	}
	treelist_release(&list);
	return why->code;
}

static int show(int argc, char **argv)
{
	return look_run(&cmd_show, argc, argv, 1, 1, render);
}

const struct command cmd_show = { .name = "show",
	.summary = "what a tool does and takes",
	.arguments = "TOOL",
	.about =
		"Shows a tool: what it does, where it is, its inputs, how to call it, and what is wrong with\n"
		"it.\n",
	.options = options,
	.takes = COMMAND_TAKES_TOOLS,
	.run = show };
