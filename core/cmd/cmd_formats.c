#include <errno.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/commands.h"
#include "core/cmd/look.h"
#include "core/tools/formats.h"

#define LIST_MAX 256

static const struct command_option options[] = { TREE_OPTIONS, { NULL, 0, NULL, NULL, NULL } };

static bool find_api(const char *name, enum modelapi *api)
{
	for (int i = 0; i < MODELAPIS; i++)
		if (strcmp(name, modelapi_rules((enum modelapi)i)->name) == 0) {
			*api = (enum modelapi)i;
			return true;
		}
	return false;
}

static int refuse(const char *name, struct fail *why)
{
	auto_buf struct buf list = BUF_INIT(LIST_MAX);
	for (int i = 0; i < MODELAPIS; i++)
		buf_printf(
			&list, "%s%s", i > 0 ? ", " : "", modelapi_rules((enum modelapi)i)->name);
	return fail_set(why, -EINVAL, "'%s' is none of %s", name, buf_str(&list));
}

static int render(const struct tree *tree, char **names, struct buf *out, struct fail *why)
{
	enum modelapi api;
	if (!find_api(names[0], &api))
		return refuse(names[0], why);
	if (tree->mount) {
		auto_free char *path = xasprintf(".pegfs/formats/%s.json", names[0]);
		return tree_read_file(tree, path, out, why);
	}
	const struct snapshot *all = registry_current(tree->registry);
	int result = formats_render(api, all->tools, all->count, out);
	return result < 0 ? fail_set(why, result, "cannot make the list: %s", strerror(-result))
			  : 0;
}

static int formats(int argc, char **argv)
{
	return look_run(&cmd_formats, argc, argv, 1, 1, render);
}

const struct command cmd_formats = { .name = "formats",
	.summary = "all tools as a model API takes them",
	.arguments = "API",
	.about =
		"Prints all tools as a model API takes them in a request: openai (Chat Completions),\n"
		"openai-responses, anthropic and gemini; mcp (the result of tools/list); typebox (what\n"
		"the pi agent registers).\n",
	.options = options,
	.takes = COMMAND_TAKES_TEXT,
	.run = formats };
