#include "core/tools/answer.h"

#include <errno.h>
#include <string.h>

#include "core/tools/runhelp.h"

#define NOTICE_SIZE 1024 /* kept free for a notice */
#define NOTICE_LINES 2
#define UTF8_MORE_MAX 3 /* bytes of a character behind its first */

enum { STATUS_DONE, STATUS_FAILED, STATUS_REFUSED };

/* The first line, and the notes where this is the end of a call. */
static void put_head(struct buf *out, int status, int descriptor, const struct buf *notes)
{
	size_t count = 0;
	for (size_t i = 0; i < notes->len; i++)
		count += notes->data[i] == '\n';
	buf_printf(out, "%d %d %zu\n", status, descriptor, count);
	buf_append(out, buf_str(notes), notes->len);
}

int answer_help(const struct tool *tool, const struct arguments *arguments, struct buf *out)
{
	const struct buf none = BUF_INIT(0);
	put_head(out, STATUS_DONE, 1, &none);
	return runhelp_text(tool, arguments->program, out);
}

int answer_refused(const struct tool *tool, const struct arguments *arguments,
	const struct fail *why, struct buf *out)
{
	put_head(out, STATUS_REFUSED, 2, &arguments->notes);
	buf_printf(out, "%s: %s", arguments->program, why->text);
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_putc(out, '\n');
	if (why->code == -EINVAL) {
		runhelp_usage(tool, arguments->program, out);
		buf_printf(out, "`%s --help` says more\n", arguments->program);
	}
	return out->failed;
}

/* Where ANSWER_LINES_MAX less the notice ends, or len. */
static size_t limit_lines(const char *text, size_t len)
{
	size_t at = 0;
	for (size_t lines = 0; lines < ANSWER_LINES_MAX - NOTICE_LINES; lines++) {
		const char *end = memchr(text + at, '\n', len - at);
		if (!end)
			return len;
		at = (size_t)(end - text) + 1;
	}
	return at;
}

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Not more than a character is lost, unless a line ends in the second half of what may be shown. */
static size_t limit_size(const char *text, size_t len)
{
	size_t size = ANSWER_SIZE_MAX - NOTICE_SIZE;
	if (len <= size)
		return len;
	const char *line_end = memrchr(text, '\n', size);
	if (line_end && (size_t)(line_end - text) >= size / 2)
		return (size_t)(line_end - text) + 1;
	size_t start = size;
	while (start > size - UTF8_MORE_MAX && is_continuation(text[start]))
		start--;
	return is_continuation(text[start]) ? size : start;
}

static bool is_short(const char *text, size_t len)
{
	if (len > ANSWER_SIZE_MAX)
		return false;
	size_t lines = 0;
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	return lines + (len > 0 && text[len - 1] != '\n') <= ANSWER_LINES_MAX;
}

static void put_notice(struct buf *out, const struct arguments *arguments, size_t shown, size_t len,
	const char *whole)
{
	buf_printf(out, "[cut: these are the first %zu of %zu bytes; the whole text is in %s/%s",
		shown, len, arguments->dir, whole);
	buf_puts(out, arguments->has_full ? "; a call with --full prints all]\n" : "]\n");
}

static void put_bounded(struct buf *out, const struct arguments *arguments, const char *text,
	size_t len, const char *whole)
{
	size_t shown = is_short(text, len) ? len : limit_size(text, limit_lines(text, len));
	buf_append(out, text, shown);
	if (shown == len)
		return;
	if (text[shown - 1] != '\n')
		buf_putc(out, '\n');
	put_notice(out, arguments, shown, len, whole);
}

int answer_result(const struct arguments *arguments, bool failed, const char *bytes, size_t len,
	const char *whole, struct buf *out)
{
	bool is_error_text = failed && arguments->show != ARGUMENTS_JSON;
	put_head(out, failed ? STATUS_FAILED : STATUS_DONE, is_error_text ? 2 : 1,
		&arguments->notes);
	if (arguments->show == ARGUMENTS_BOUNDED)
		put_bounded(out, arguments, bytes, len, whole);
	else
		buf_append(out, bytes, len);
	return out->failed;
}
