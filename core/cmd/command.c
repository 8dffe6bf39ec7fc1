#include "core/cmd/command.h"

#include <cmark.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"

const struct command *const core_commands[] = { &cmd_list, &cmd_show, &cmd_call, &cmd_prompt,
	&cmd_schema, &cmd_formats, &cmd_status, &cmd_errors, &cmd_mcp, &cmd_import, &cmd_new,
	&cmd_check, &cmd_sync, &cmd_completion, &cmd_manual, NULL };

/* Set once, at the start: the completions are of the program that writes them. */
static const struct program *running;

const struct command *command_next(size_t *at)
{
	size_t index = (*at)++;
	const struct command *const *more = running ? running->commands : NULL;
	for (; more && *more; more++)
		if (index-- == 0)
			return *more;
	return index < sizeof(core_commands) / sizeof(*core_commands) ? core_commands[index] : NULL;
}

static void help(void)
{
	printf("usage: pegfs COMMAND [OPTIONS] [ARGUMENTS]\n\n"
	       "Hangs an agent's tools on the file system.\n\ncommands:\n");
	size_t at = 0;
	const struct command *command;
	while ((command = command_next(&at)))
		if (!command->is_hidden)
			printf("  %-8s  %s\n", command->name, command->summary);
	printf("\n'pegfs COMMAND --help' tells about each; 'pegfs --version' about this program.\n");
}

static void version(void)
{
	printf("pegfs " PEGFS_VERSION " (jansson %s, libyaml %s, cmark %s%s)\n",
		jansson_version_str(), yaml_get_version_string(), cmark_version_string(),
		running->libraries);
}

static const struct command *find(const char *name)
{
	size_t at = 0;
	const struct command *command;
	while ((command = command_next(&at)))
		if (strcmp(command->name, name) == 0)
			return command;
	return NULL;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static int no_command(const char *name)
{
	if (*name)
		fprintf(stderr, "pegfs: there is no command '%s'; see 'pegfs --help'\n", name);
	else
		fprintf(stderr, "pegfs: a command is missing; see 'pegfs --help'\n");
	return COMMAND_USAGE;
}

/* Whether what was printed has arrived. */
static int flushed(void)
{
	return fflush(stdout) == 0 ? COMMAND_OK : command_failed("help", "cannot write the output");
}

int command_main(const struct program *program, int argc, char **argv)
{
	running = program;
	const char *name = argc > 1 ? argv[1] : "";
	bool about_command = is_help(name) && argc > 2 && argv[2][0] != '-';
	if (is_help(name) && !about_command) {
		help();
		return flushed();
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		version();
		return flushed();
	}
	const struct command *command = find(about_command ? argv[2] : name);
	if (!command)
		return no_command(about_command ? argv[2] : name);
	if (about_command) {
		char option[] = "--help";
		char *words[] = { argv[2], option, NULL };
		return command->run(2, words);
	}
	return command->run(argc - 1, argv + 1);
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
