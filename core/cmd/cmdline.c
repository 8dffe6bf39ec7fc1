#include "core/cmd/cmdline.h"

#include <assert.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX 64

static const struct command_option help_option = { "help", 'h', NULL, "this text", NULL };

static bool has_letter(const struct command_option *option)
{
	return option->id > ' ' && option->id < 127;
}

/* ---- reading */

struct tables {
	struct option longs[CMDLINE_OPTIONS_MAX + 1];
	char shorts[2 * CMDLINE_OPTIONS_MAX + 2];
	size_t count, letters;
};

static void add(struct tables *tables, const struct command_option *option)
{
	assert(tables->count < CMDLINE_OPTIONS_MAX);
	tables->longs[tables->count++] = (struct option){ option->name,
		option->value ? required_argument : no_argument, NULL, option->id };
	if (!has_letter(option))
		return;
	tables->shorts[tables->letters++] = (char)option->id;
	if (option->value)
		tables->shorts[tables->letters++] = ':';
}

void cmdline_begin(void)
{
	optind = 0;
	opterr = 0;
}

/* The option as it was typed: a letter may stand among others in one word. */
static void tell_wrong(const struct command *command, bool lacks_value, char **argv)
{
	const char *what = lacks_value ? "a value is missing behind" : "there is no option";
	const char *word = argv[optind > 1 ? optind - 1 : 1];
	if (optopt > ' ' && optopt < 127 && strncmp(word, "--", 2) != 0)
		command_misuse(command->name, "%s '-%c'", what, optopt);
	else
		command_misuse(command->name, "%s '%s'", what, word);
}

int cmdline_next(const struct command *command, int argc, char **argv)
{
	struct tables tables = { .shorts = ":", .letters = 1 };
	for (const struct command_option *option = command->options; option && option->name;
		option++)
		add(&tables, option);
	add(&tables, &help_option);
	int id = getopt_long(argc, argv, tables.shorts, tables.longs, NULL);
	if (id == 'h') {
		cmdline_help(command, stdout);
		exit(fflush(stdout) == 0 ? COMMAND_OK : COMMAND_FAILED);
	}
	if (id != '?' && id != ':')
		return id;
	tell_wrong(command, id == ':', argv);
	return CMDLINE_WRONG;
}

/* ---- help */

static int head_of(const struct command_option *option, char head[HEAD_MAX])
{
	const char letter[] = { '-', (char)option->id, ',', '\0' };
	return snprintf(head, HEAD_MAX, "  %-3s --%s%s%s", has_letter(option) ? letter : "",
		option->name, option->value ? " " : "", option->value ? option->value : "");
}

static int widest_head(const struct command *command)
{
	char head[HEAD_MAX];
	int width = head_of(&help_option, head);
	for (const struct command_option *option = command->options; option && option->name;
		option++) {
		int len = head_of(option, head);
		width = len > width ? len : width;
	}
	return width;
}

static void help_row(FILE *out, const struct command_option *option, int width)
{
	char head[HEAD_MAX];
	head_of(option, head);
	fprintf(out, "%-*s  ", width, head);
	for (const char *at = option->help; *at; at++)
		if (*at == '\n')
			fprintf(out, "\n%*s  ", width, "");
		else
			fputc(*at, out);
	fputc('\n', out);
}

void cmdline_help(const struct command *command, FILE *out)
{
	fprintf(out, "usage: pegfs %s [OPTIONS]%s%s\n\n%s\n", command->name,
		*command->arguments ? " " : "", command->arguments, command->about);
	int width = widest_head(command);
	for (const struct command_option *option = command->options; option && option->name;
		option++)
		help_row(out, option, width);
	help_row(out, &help_option, width);
	if (command->notes)
		fprintf(out, "\n%s", command->notes);
}
