#include "core/cmd/command.h"

#include <cmark.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "core/cmd/cmd_check.h"
#include "core/cmd/cmd_new.h"
#include "core/cmd/cmd_sync.h"
#include "core/cmd/cmd_tools.h"

const struct command core_commands[] = {
	{ "list", "the tools of directories", cmd_list },
	{ "schema", "the JSON Schema of a tool's inputs", cmd_schema },
	{ "prompt", "what an agent reads about tools", cmd_prompt },
	{ "errors", "what is wrong with tools", cmd_errors },
	{ "new", "make a tool to begin with", cmd_new },
	{ "check", "look for mistakes in tools", cmd_check },
	{ "sync", "copy tools from a seed, by version", cmd_sync },
	{ NULL, NULL, NULL },
};

static void list_commands(const struct command *table)
{
	for (; table && table->name; table++)
		printf("  %-8s  %s\n", table->name, table->summary);
}

static void help(const struct command *more)
{
	printf("usage: pegfs COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	       "Hangs an agent's tools on the file system.\n\ncommands:\n");
	list_commands(more);
	list_commands(core_commands);
	printf("\n'pegfs COMMAND --help' tells about each.\n");
}

static void version(void)
{
	printf("pegfs " PEGFS_VERSION " (jansson %s, libyaml %s, cmark %s)\n",
		jansson_version_str(), yaml_get_version_string(), cmark_version_string());
}

static const struct command *find(const struct command *table, const char *name)
{
	for (; table && table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

int command_main(const struct command *more, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		help(more);
		return COMMAND_OK;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		version();
		return COMMAND_OK;
	}
	const struct command *command = find(more, name);
	if (!command)
		command = find(core_commands, name);
	if (command)
		return command->run(argc - 1, argv + 1);
	if (*name)
		fprintf(stderr, "pegfs: there is no command '%s'; ", name);
	fprintf(stderr, "%ssee 'pegfs --help'\n", *name ? "" : "pegfs: a command is missing; ");
	return COMMAND_USAGE;
}

int command_misuse(const char *command, const char *format, ...)
{
	va_list args;
	fprintf(stderr, "pegfs %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; see 'pegfs %s --help'\n", command);
	return COMMAND_USAGE;
}

int command_failed(const char *command, const char *text)
{
	fprintf(stderr, "pegfs %s: %s\n", command, text);
	return COMMAND_FAILED;
}
