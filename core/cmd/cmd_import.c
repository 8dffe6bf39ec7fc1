#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/running/libdir.h"

static const struct command_option options[] = {
	{ "into", 'i', "DIR", "the directory that gets the tools (default: .)", NULL },
	{ "prefix", 'p', "TEXT", "put before each tool's name", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

struct request {
	const char *into, *prefix;
	char **words; /* of the server's command; NULL-terminated */
};

/* Options up to the first word that is none: what follows may have options of its own. */
static int take_options(struct request *request, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_import, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		*(option == 'i' ? &request->into : &request->prefix) = optarg;
	}
	return COMMAND_OK;
}

/* They may stand on both sides of the word "mcp". */
static int parse(struct request *request, int argc, char **argv)
{
	int status = take_options(request, argc, argv);
	if (status != COMMAND_OK)
		return status;
	if (optind == argc || strcmp(argv[optind], "mcp") != 0)
		return command_misuse("import", "say from where: pegfs import mcp COMMAND...");
	argc -= optind;
	argv += optind;
	status = take_options(request, argc, argv);
	if (status != COMMAND_OK)
		return status;
	if (optind == argc)
		return command_misuse(
			"import", "the command that starts the MCP server is missing");
	request->words = argv + optind;
	return COMMAND_OK;
}

/* Becomes the program that does it; returns only where it cannot. */
static void become(const struct request *request, const char *lib_dir, struct fail *why)
{
	auto_free char *script = xasprintf("%s/host/mcp/import.mjs", lib_dir);
	auto_free char *into = xstrdup(request->into), *prefix = xstrdup(request->prefix);
	char node[] = "node";
	size_t count = 0;
	while (request->words[count])
		count++;
	auto_free char **words = xcalloc(count + 5, sizeof(*words));
	words[0] = node;
	words[1] = script;
	words[2] = into;
	words[3] = prefix;
	memcpy(words + 4, request->words, count * sizeof(*words));
	execvp(node, words);
	fail_errno(why, "cannot run node, which is needed for this");
}

static int import(int argc, char **argv)
{
	struct request request = { .into = ".", .prefix = "", .words = argv };
	setenv("POSIXLY_CORRECT", "1", 1); /* getopt_long(3): options end with the first word */
	int status = parse(&request, argc, argv);
	unsetenv("POSIXLY_CORRECT");
	if (status != COMMAND_OK)
		return status;
	struct fail why = FAIL_INIT;
	auto_free char *lib_dir = libdir_find(&why);
	if (lib_dir)
		become(&request, lib_dir, &why);
	return command_failed("import", why.text);
}

const struct command cmd_import = { .name = "import",
	.summary = "the tools of an MCP server, as tool directories",
	.arguments = "mcp COMMAND [ARGUMENT...]",
	.about =
		"Starts a local MCP server and writes a tool directory for each of its tools, whose calls\n"
		"start the server anew. Prints their names; one that was imported before is replaced where\n"
		"its definition is another one now, and its version is raised.\n",
	.options = options,
	.notes = "Exit status: 0 done, 1 a tool (or all of it) failed, 2 wrong use.\n",
	.takes = COMMAND_TAKES_TEXT,
	.run = import };
