#include "core/cmd/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/tools/markdown.h"

bool terminal_has_colour(FILE *stream)
{
	const char *none = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	return isatty(fileno(stream)) && !(none && *none) && !(term && strcmp(term, "dumb") == 0);
}

size_t terminal_width(FILE *stream)
{
	struct winsize size = { .ws_col = 0 };
	return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void terminal_paint(struct buf *out, bool colour, enum terminal_style style, const char *text)
{
	static const char *const codes[] = { [TERMINAL_BOLD] = "\033[1m",
		[TERMINAL_DIM] = "\033[2m",
		[TERMINAL_RED] = "\033[31m",
		[TERMINAL_YELLOW] = "\033[33m" };
	if (!colour) {
		buf_puts(out, text);
		return;
	}
	buf_puts(out, codes[style]);
	buf_puts(out, text);
	buf_puts(out, "\033[0m");
}

/* Where the first count characters of UTF-8 end. */
static size_t bytes_of(const char *text, size_t count)
{
	size_t at = 0;
	for (; text[at]; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && count-- == 0)
			break;
	return at;
}

void terminal_cut(struct buf *out, const char *text, size_t width)
{
	auto_buf struct buf line = BUF_INIT(out->max);
	markdown_line(&line, text);
	const char *whole = buf_str(&line);
	if (width == 0 || bytes_of(whole, width) == line.len) {
		buf_puts(out, whole);
		return;
	}
	buf_append(out, whole, bytes_of(whole, width - 1));
	buf_puts(out, "…");
}
