#include <limits.h>

#include "core/cmd/commands.h"
#include "core/cmd/look.h"

static const struct command_option options[] = { TREE_OPTIONS, { NULL, 0, NULL, NULL, NULL } };

static int render(const struct tree *tree, char **names, struct buf *out, struct fail *why)
{
	if (!*names)
		return tree_read(tree, TREE_ALL_PROMPT, NULL, out, why);
	for (; *names; names++)
		if (tree_read(tree, TREE_TOOL_PROMPT, *names, out, why) < 0)
			return why->code;
	return 0;
}

static int prompt(int argc, char **argv)
{
	return look_run(&cmd_prompt, argc, argv, 0, INT_MAX, render);
}

const struct command cmd_prompt = { .name = "prompt",
	.summary = "what an agent reads about tools",
	.arguments = "[TOOL...]",
	.about =
		"Prints what an agent reads about each of the tools; without a name about all of them in\n"
		"one text, for a system prompt.\n",
	.options = options,
	.takes = COMMAND_TAKES_TOOLS,
	.run = prompt };
