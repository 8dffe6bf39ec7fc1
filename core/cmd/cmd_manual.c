/*
 * `pegfs manual`: the section of the manual page about commands, in Markdown, from the tables of
 * commands and options. docs/pegfs.1.md has the others, and `make` puts the two together.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"

#define MANUAL_MAX (1024 * 1024)

static const struct command_option options[] = { { NULL, 0, NULL, NULL, NULL } };

/* Text as it is: what Markdown would take for its own is escaped, a line's end is a blank. */
static void put_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\*_[]<>`#|", *text))
			buf_putc(out, '\\');
		buf_putc(out, *text == '\n' ? ' ' : *text);
	}
}

static void put_option(struct buf *out, const struct command_option *option)
{
	buf_puts(out, "- **");
	if (option->id > ' ' && option->id < 127)
		buf_printf(out, "-%c**, **", option->id);
	buf_printf(out, "--%s**", option->name);
	if (option->value) {
		buf_puts(out, " *");
		put_text(out, option->value);
		buf_putc(out, '*');
	}
	buf_puts(out, ": ");
	put_text(out, option->help);
	buf_putc(out, '\n');
}

static void put_command(struct buf *out, const struct command *command)
{
	buf_printf(out, "\n## pegfs %s [OPTIONS]%s", command->name, *command->arguments ? " " : "");
	put_text(out, command->arguments);
	buf_puts(out, "\n\n");
	put_text(out, command->about);
	buf_puts(out, "\n\n");
	for (const struct command_option *option = command->options; option && option->name;
		option++)
		put_option(out, option);
	buf_putc(out, '\n');
	if (command->notes)
		put_text(out, command->notes);
	buf_putc(out, '\n');
}

static int manual(int argc, char **argv)
{
	cmdline_begin();
	if (cmdline_next(&cmd_manual, argc, argv) != CMDLINE_END)
		return COMMAND_USAGE;
	if (optind < argc)
		return command_misuse("manual", "too many arguments");
	auto_buf struct buf out = BUF_INIT(MANUAL_MAX);
	const struct command *command;
	for (size_t at = 0; (command = command_next(&at));)
		if (!command->is_hidden)
			put_command(&out, command);
	fputs(buf_str(&out), stdout);
	if (out.failed || fflush(stdout) != 0)
		return command_failed("manual", "cannot write the output");
	return COMMAND_OK;
}

const struct command cmd_manual = { .name = "manual",
	.summary = "the commands, for the manual page",
	.arguments = "",
	.about = "Prints what all commands do and take, in Markdown.\n",
	.options = options,
	.is_hidden = true,
	.run = manual };
