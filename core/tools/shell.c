#include "core/tools/shell.h"

#include <string.h>

static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";

void shell_word(struct buf *out, const char *text)
{
	if (*text && !text[strspn(text, plain)]) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '\'');
	for (const char *at = text; *at; at++) {
		if (*at == '\'')
			buf_puts(out, "'\\''");
		else
			buf_putc(out, *at);
	}
	buf_putc(out, '\'');
}

void shell_send(struct buf *out, const char *document, const char *target, const char *then)
{
	if (document[strcspn(document, "'\\")] == '\0')
		buf_printf(out, "echo '%s' %s%s\n", document, target, then);
	else
		buf_printf(out, "cat %s <<'END'%s\n%s\nEND\n", target, then, document);
}
