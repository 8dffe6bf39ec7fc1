#include "core/tools/markdown.h"

#include <stddef.h>

static void put_escaped(struct buf *out, const char *text, int in_cell)
{
	int blank = 0;
	for (const char *at = text; *at; at++) {
		unsigned char byte = (unsigned char)*at;
		if (byte < ' ' || byte == 0x7f) {
			blank = 1;
			continue;
		}
		if (blank)
			buf_putc(out, ' ');
		blank = 0;
		if (in_cell && *at == '|')
			buf_putc(out, '\\');
		buf_putc(out, *at);
	}
}

void markdown_line(struct buf *out, const char *text)
{
	put_escaped(out, text, 0);
}

void markdown_cell(struct buf *out, const char *text)
{
	put_escaped(out, text, 1);
}

static size_t longest_run(const char *text, char byte)
{
	size_t longest = 0, run = 0;
	for (const char *at = text; *at; at++) {
		run = *at == byte ? run + 1 : 0;
		if (run > longest)
			longest = run;
	}
	return longest;
}

void markdown_code(struct buf *out, const char *text, int in_cell)
{
	size_t ticks = longest_run(text, '`');
	for (size_t i = 0; i <= ticks; i++)
		buf_putc(out, '`');
	/* A blank keeps a backtick inside from joining those outside; it is not shown. */
	buf_puts(out, ticks ? " " : "");
	put_escaped(out, text, in_cell);
	buf_puts(out, ticks ? " " : "");
	for (size_t i = 0; i <= ticks; i++)
		buf_putc(out, '`');
}
