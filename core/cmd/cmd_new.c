#include "core/cmd/cmd_new.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/command.h"
#include "core/tools/new.h"

struct request {
	const char *name, *dir;
	enum language language;
};

static const char usage[] =
	"usage: pegfs new [OPTIONS] NAME\n\n"
	"Makes the directory NAME with a tool in it that works: TOOL.md, which agents read, and its\n"
	"code. NAME is in snake_case, such as send_mail.\n\n"
	"  -l, --language LANGUAGE  typescript (default), python or bash\n"
	"  -d, --dir DIR            where to make it (default: the current directory)\n"
	"  -h, --help               this text\n\n"
	"Exit status: 0 done, 1 failed, 2 wrong use.\n";

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
	static const struct option options[] = {
		{ "language", required_argument, NULL, 'l' },
		{ "dir", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;
	optind = 0;
	while ((option = getopt_long(argc, argv, "l:d:h", options, NULL)) != -1)
		switch (option) {
		case 'l':
			if (parse_language(optarg, &request->language) != COMMAND_OK)
				return COMMAND_USAGE;
			break;
		case 'd':
			request->dir = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(COMMAND_OK);
		default:
			fprintf(stderr, "see 'pegfs new --help'\n");
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

int cmd_new(int argc, char **argv)
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
