#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cmd/callorder.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/cmd/mcpserver.h"
#include "core/cmd/mcptools.h"

static const struct command_option options[] = {
	TREE_OPTIONS,
	{ "page", 'p', "N", "tools on a page of tools/list (default: 500)", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

struct serving {
	struct tree tree;
	struct loop *loop;        /* owned */
	struct mcpserver *server; /* owned */
	size_t page_size;
};

static void on_signal(void *arg, int signal)
{
	struct serving *serving = arg;
	(void)signal;
	mcpserver_end(serving->server);
}

static int run(struct serving *serving, struct fail *why)
{
	serving->loop = loop_new(why);
	if (!serving->loop)
		return why->code;
	const struct mcpserver_config config = { .loop = serving->loop,
		.kind = serving->tree.mount ? &mcpmount : &mcpdirect,
		.tree = &serving->tree,
		.in_fd = STDIN_FILENO,
		.out_fd = STDOUT_FILENO,
		.page_size = serving->page_size };
	serving->server = mcpserver_new(&config, why);
	if (!serving->server || callorder_watch_signals(serving->loop, on_signal, serving, why) < 0)
		return why->code;
	int result = loop_run(serving->loop);
	return result < 0 ? fail_set(why, result, "waiting for the client: %s", strerror(-result))
			  : 0;
}

static int serve(struct serving *serving)
{
	struct fail why = FAIL_INIT;
	signal(SIGPIPE, SIG_IGN);
	run(serving, &why);
	mcpserver_free(serving->server);
	loop_free(serving->loop);
	return why.code ? command_failed("mcp", why.text) : COMMAND_OK;
}

static int parse(struct serving *serving, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_mcp, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		if (tree_take_option(&serving->tree, option, optarg))
			continue;
		char *end;
		errno = 0;
		serving->page_size = strtoul(optarg, &end, 10);
		if (errno || *end || *optarg < '0' || *optarg > '9' || serving->page_size == 0)
			return command_misuse("mcp", "--page must be a whole number above 0");
	}
	if (optind < argc)
		return command_misuse("mcp", "too many arguments");
	return COMMAND_OK;
}

static int mcp(int argc, char **argv)
{
	struct serving serving = { .tree = { .command = "mcp" }, .page_size = MCPTOOLS_PAGE };
	int status = parse(&serving, argc, argv);
	if (status != COMMAND_OK)
		return status;
	status = tree_open(&serving.tree);
	if (status == COMMAND_OK)
		status = serve(&serving);
	tree_close(&serving.tree);
	return status;
}

const struct command cmd_mcp = { .name = "mcp",
	.summary = "the tools for a client of the Model Context Protocol",
	.arguments = "",
	.about =
		"Serves the tools on standard input and output, as an MCP client starts it: revisions\n"
		"2026-07-28, 2025-11-25, 2025-06-18 and 2025-03-26 of the protocol. Needs no mount: on\n"
		"directories the tools run with your own rights. Changes of the tools are told at once.\n",
	.options = options,
	.notes = "It ends when its standard input does, and cancels the calls that run.\n",
	.run = mcp };
