#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/tools/new.h"

struct request {
	const char *name, *dir;
	enum language language;
};

static const struct command_option options[] = {
	{ "language", 'l', "LANGUAGE", "typescript (default), python or bash",
		"typescript python bash" },
	{ "dir", 'd', "DIR", "where to make it (default: the current directory)", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static int parse_language(const char *name, enum language *language)
{
	for (enum language l = LANGUAGE_TYPESCRIPT; l <= LANGUAGE_BASH; l++)
		if (strcmp(name, language_name(l)) == 0) {
			*language = l;
			return COMMAND_OK;
		}
	return command_misuse(
		"new", "the languages are typescript, python and bash, not '%s'", name);
}

static int parse(struct request *request, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_new, argc, argv)) != CMDLINE_END)
		switch (option) {
		case 'l':
			if (parse_language(optarg, &request->language) != COMMAND_OK)
				return COMMAND_USAGE;
			break;
		case 'd':
			request->dir = optarg;
			break;
		default:
			return COMMAND_USAGE;
		}
	if (optind + 1 != argc)
		return command_misuse("new", "name one tool");
	request->name = argv[optind];
	return COMMAND_OK;
}

/* The path of the tool, as the directory was named. */
static char *path_of(const struct request *request)
{
	size_t len = strlen(request->dir);
	if (strcmp(request->dir, ".") == 0)
		return xstrdup(request->name);
	return xasprintf("%s%s%s", request->dir, len && request->dir[len - 1] == '/' ? "" : "/",
		request->name);
}

static int new (int argc, char **argv)
{
	struct request request = { .dir = ".", .language = LANGUAGE_TYPESCRIPT };
	int status = parse(&request, argc, argv);
	if (status != COMMAND_OK)
		return status;
	struct fail why = FAIL_INIT;
	if (new_tool(request.dir, request.name, request.language, &why) < 0)
		return why.code == -EINVAL ? command_misuse("new", "%s", why.text)
					   : command_failed("new", why.text);
	auto_free char *path = path_of(&request);
	printf("%s\n", path);
	if (fflush(stdout) != 0)
		return command_failed("new", "cannot write the output");
	fprintf(stderr, "Edit %s/TOOL.md and %s/%s, then try 'pegfs check %s'.\n", path, path,
		new_files(request.language)[1].name, path);
	return COMMAND_OK;
}

const struct command cmd_new = { .name = "new",
	.summary = "make a tool to begin with",
	.arguments = "NAME",
	.about =
		"Makes the directory NAME with a tool in it that works: TOOL.md, which agents read, and its\n"
		"code. NAME is in snake_case, such as send_mail.\n",
	.options = options,
	.notes = "Exit status: 0 done, 1 failed, 2 wrong use.\n",
	.takes = COMMAND_TAKES_TEXT,
	.run = new };
