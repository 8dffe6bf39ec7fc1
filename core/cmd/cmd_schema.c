#include "core/cmd/commands.h"
#include "core/cmd/look.h"

static const struct command_option options[] = { TREE_OPTIONS, { NULL, 0, NULL, NULL, NULL } };

static int render(const struct tree *tree, char **names, struct buf *out, struct fail *why)
{
	return tree_read(tree, TREE_TOOL_SCHEMA, names[0], out, why);
}

static int schema(int argc, char **argv)
{
	return look_run(&cmd_schema, argc, argv, 1, 1, render);
}

const struct command cmd_schema = { .name = "schema",
	.summary = "the JSON Schema of a tool's inputs",
	.arguments = "TOOL",
	.about = "Prints the JSON Schema of a tool's inputs.\n",
	.options = options,
	.takes = COMMAND_TAKES_TOOLS,
	.run = schema };
