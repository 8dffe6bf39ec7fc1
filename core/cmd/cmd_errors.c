#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/cmd/commands.h"
#include "core/cmd/look.h"
#include "core/cmd/terminal.h"

static const struct command_option options[] = { TREE_OPTIONS, { NULL, 0, NULL, NULL, NULL } };

/* The level alone is coloured, as compilers do. */
static void paint_line(struct buf *out, const char *line)
{
	static const struct {
		const char *text;
		enum terminal_style style;
	} levels[] = { { ": error: ", TERMINAL_RED }, { ": warning: ", TERMINAL_YELLOW } };
	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		const char *at = strstr(line, levels[i].text);
		if (!at)
			continue;
		buf_append(out, line, (size_t)(at - line));
		terminal_paint(out, true, levels[i].style, levels[i].text);
		buf_puts(out, at + strlen(levels[i].text));
		return;
	}
	buf_puts(out, line);
}

static int render(const struct tree *tree, char **arguments, struct buf *out, struct fail *why)
{
	(void)arguments;
	if (!terminal_has_colour(stdout))
		return tree_read(tree, TREE_ERRORS, NULL, out, why);
	auto_buf struct buf plain = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(tree, TREE_ERRORS, NULL, &plain, why) < 0)
		return why->code;
	auto_free char *text = buf_take(&plain);
	char *rest = text;
	for (const char *line; (line = strsep(&rest, "\n"));)
		if (rest || *line) {
			paint_line(out, line);
			buf_putc(out, '\n');
		}
	return 0;
}

static int errors(int argc, char **argv)
{
	return look_run(&cmd_errors, argc, argv, 0, 0, render);
}

const struct command cmd_errors = { .name = "errors",
	.summary = "what is wrong with tools",
	.arguments = "",
	.about =
		"Tells which tools are not shown and why, and what is wrong with others: a line each. 'pegfs\n"
		"check' looks at their code, too.\n",
	.options = options,
	.run = errors };
