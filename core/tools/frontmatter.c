#include "core/tools/frontmatter.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* ---- lines */

struct line {
	const char *at;
	size_t len;       /* without its LF */
	const char *next; /* behind its LF, or the end of the text */
};

static struct line line_at(const char *at, const char *end)
{
	const char *stop = memchr(at, '\n', (size_t)(end - at));
	return (struct line){
		.at = at, .len = (size_t)((stop ? stop : end) - at), .next = stop ? stop + 1 : end
	};
}

static size_t count_blanks(const char *at, size_t len)
{
	size_t count = 0;
	while (count < len && (at[count] == ' ' || at[count] == '\t'))
		count++;
	return count;
}

static bool is_blank(struct line line)
{
	return count_blanks(line.at, line.len) == line.len;
}

/* The three bytes of mark, then blanks at most. */
static bool is_fence(struct line line, const char *mark)
{
	return line.len >= 3 && memcmp(line.at, mark, 3) == 0 &&
	       count_blanks(line.at + 3, line.len - 3) == line.len - 3;
}

static bool is_indented_fence(struct line line)
{
	size_t indent = count_blanks(line.at, line.len);
	return indent > 0 &&
	       is_fence((struct line){ line.at + indent, line.len - indent, NULL }, "---");
}

/* ---- bytes */

static int refuse(struct faults *faults, const char *code, size_t line, const char *text)
{
	faults_add(faults, FAULT_ERROR, code, line, 0, "%s", text);
	return -EINVAL;
}

static size_t count_lines(const char *at, const char *end)
{
	size_t count = 0;
	while ((at = memchr(at, '\n', (size_t)(end - at)))) {
		count++;
		at++;
	}
	return count;
}

static size_t count_chars(const char *at, const char *end)
{
	size_t count = 0;
	for (; at < end; at++)
		count += (*at & 0xc0) != 0x80;
	return count;
}

static int refuse_binary(const char *bytes, size_t len, struct faults *faults)
{
	if (len > FRONTMATTER_FILE_MAX)
		return refuse(faults, "too-large", 0,
			"larger than 1 MiB; move what is not needed to use the tool into files "
			"beside it");
	bool has_mark = len >= 2 &&
			(memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
	const char *nul = memchr(bytes, '\0', len);
	if (has_mark || (nul && nul - bytes < 2))
		return refuse(faults, "utf-16", 0, "this is UTF-16; save the file as UTF-8");
	if (nul)
		return refuse(faults, "nul-byte", count_lines(bytes, nul) + 1,
			"a NUL byte; this is no text file, or a damaged one");
	return 0;
}

/* CRLF and lone CR -> LF. */
static int unify_line_ends(const char *bytes, size_t len, struct buf *out)
{
	int result = buf_reserve(out, len);
	for (size_t at = 0; at < len && result == 0;) {
		const char *stop = memchr(bytes + at, '\r', len - at);
		size_t plain = stop ? (size_t)(stop - bytes) - at : len - at;
		result = buf_append(out, bytes + at, plain);
		at += plain;
		if (!stop)
			break;
		buf_putc(out, '\n');
		at += at + 1 < len && bytes[at + 1] == '\n' ? 2 : 1;
	}
	return out->failed;
}

/* What neither YAML nor JSON takes as it is: C0 but TAB and LF, DEL, C1 but U+0085, U+FFFE, U+FFFF. */
static bool is_forbidden(const char *at, size_t step)
{
	const unsigned char *byte = (const unsigned char *)at;
	switch (step) {
	case 1:
		return (byte[0] < 0x20 && byte[0] != '\t' && byte[0] != '\n') || byte[0] == 0x7f;
	case 2:
		return byte[0] == 0xc2 && byte[1] < 0xa0 && byte[1] != 0x85;
	case 3:
		return byte[0] == 0xef && byte[1] == 0xbf && byte[2] >= 0xbe;
	default:
		return false;
	}
}

/* Those of one kind in the YAML: the first one's place, and how many. */
struct findings {
	size_t count, line, column;
};

static void find(struct findings *findings, const struct frontmatter *front, size_t at)
{
	if (findings->count++ > 0)
		return;
	const char *stop = front->yaml + at, *start = stop;
	while (start > front->yaml && start[-1] != '\n')
		start--;
	findings->line = front->yaml_line + count_lines(front->yaml, stop);
	findings->column = count_chars(start, stop) + 1;
}

static bool is_clean(const char *text, size_t len)
{
	for (size_t at = 0, step; at < len; at += step) {
		step = 1;
		if (text[at] >= ' ' && text[at] < 0x7f)
			continue;
		step = utf8_char_len(text + at, len - at);
		if (step == 0 || is_forbidden(text + at, step))
			return false;
	}
	return true;
}

static int clean_yaml(struct frontmatter *front, struct faults *faults)
{
	if (is_clean(front->yaml, front->yaml_len))
		return 0;
	struct findings invalid = { .count = 0 }, control = { .count = 0 };
	buf_init(&front->clean, FRONTMATTER_YAML_MAX * strlen(REPLACEMENT));
	for (size_t at = 0; at < front->yaml_len;) {
		const char *from = front->yaml + at;
		size_t step = utf8_char_len(from, front->yaml_len - at);
		if (step == 0)
			find(&invalid, front, at);
		else if (is_forbidden(from, step))
			find(&control, front, at);
		if (step == 0 || is_forbidden(from, step))
			buf_puts(&front->clean, REPLACEMENT);
		else
			buf_append(&front->clean, from, step);
		at += step ? step : 1;
	}
	if (invalid.count)
		faults_add(faults, FAULT_WARNING, "invalid-utf8", invalid.line, invalid.column,
			"no UTF-8 (%zu in all, the first one here); read as U+FFFD, save the file "
			"as UTF-8",
			invalid.count);
	if (control.count)
		faults_add(faults, FAULT_WARNING, "control-character", control.line, control.column,
			"control characters (%zu in all, the first one here); read as U+FFFD, "
			"remove them",
			control.count);
	front->yaml = buf_str(&front->clean);
	front->yaml_len = front->clean.len;
	return front->clean.failed;
}

static void check_body(const struct frontmatter *front, size_t first_line, struct faults *faults)
{
	size_t valid = utf8_valid_len(front->body, front->body_len);
	if (valid == front->body_len)
		return;
	const char *stop = front->body + valid, *start = stop;
	while (start > front->body && start[-1] != '\n')
		start--;
	faults_add(faults, FAULT_WARNING, "invalid-utf8",
		first_line + count_lines(front->body, stop), count_chars(start, stop) + 1,
		"a byte that is no UTF-8, in the body; left as it is, save the file as UTF-8");
}

/* ---- fences */

/* Passes over an HTML comment that begins at *line; false where it is none, or has no end. */
static bool skip_comment(struct line *line, const char *end, size_t *number)
{
	size_t indent = count_blanks(line->at, line->len);
	if (line->len - indent < 4 || memcmp(line->at + indent, "<!--", 4) != 0)
		return false;
	const char *from = line->at + indent + 4;
	const char *close = memmem(from, (size_t)(end - from), "-->", 3);
	if (!close)
		return false;
	struct line rest = line_at(close + 3, end);
	if (!is_blank(rest))
		return false;
	*number += count_lines(line->at, close) + 1;
	*line = line_at(rest.next, end);
	return true;
}

/* On success *line is the opening fence and *number its number. */
static int find_opening(struct line *line, const char *end, size_t *number, struct faults *faults)
{
	for (;;) {
		if (line->at < end && is_blank(*line)) {
			*line = line_at(line->next, end);
			(*number)++;
		} else if (!skip_comment(line, end, number)) {
			break;
		}
	}
	if (is_fence(*line, "---")) {
		if (*number > 1)
			faults_add(faults, FAULT_WARNING, "late-fence", *number, 0,
				"the front matter begins here and not in line 1; other readers of "
				"this format see none, so move it to the top");
		return 0;
	}
	if (is_indented_fence(*line))
		return refuse(faults, "no-front-matter", *number,
			"no front matter: this '---' is indented; move it to the beginning of the "
			"line");
	if (line->len > 3 && memcmp(line->at, "---", 3) == 0)
		return refuse(faults, "no-front-matter", *number,
			"no front matter: it begins with a line that is exactly '---', without "
			"text behind it");
	return refuse(faults, "no-front-matter", 1,
		"no front matter: the file must begin with a line '---', then 'name: ...' and "
		"'description: ...', then another line '---'");
}

/* On success *closing is the closing fence. `from` is the first line behind the opening one. */
static int find_closing(const char *from, const char *end, size_t number, struct line *closing,
	struct faults *faults)
{
	struct line dots = { .at = NULL };
	size_t dots_number = 0, indented = 0, opened = number - 1;
	for (const char *at = from; at < end; number++) {
		struct line line = line_at(at, end);
		if (is_fence(line, "---")) {
			*closing = line;
			return 0;
		}
		if (!dots.at && is_fence(line, "...")) {
			dots = line;
			dots_number = number;
		}
		if (!indented && is_indented_fence(line))
			indented = number;
		at = line.next;
	}
	if (dots.at) {
		faults_add(faults, FAULT_WARNING, "dots-fence", dots_number, 0,
			"the front matter is closed by '...'; other readers of this format want "
			"'---'");
		*closing = dots;
		return 0;
	}
	if (indented)
		return refuse(faults, "unclosed-fence", indented,
			"the front matter is not closed: this '---' is indented; move it to the "
			"beginning of the line");
	return refuse(faults, "unclosed-fence", opened,
		"the front matter that begins here is not closed; add a line '---' behind it");
}

int frontmatter_split(
	const char *bytes, size_t len, struct frontmatter *front, struct faults *faults)
{
	*front = (struct frontmatter)FRONTMATTER_INIT;
	int result = refuse_binary(bytes, len, faults);
	if (result < 0)
		return result;
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
		bytes += 3;
		len -= 3;
	}
	if (memchr(bytes, '\r', len)) {
		buf_init(&front->text, FRONTMATTER_FILE_MAX);
		result = unify_line_ends(bytes, len, &front->text);
		bytes = buf_str(&front->text);
		len = front->text.len;
	}
	if (result < 0)
		return refuse(faults, "too-large", 0, "not enough memory to read it");
	const char *end = bytes + len;
	struct line opening = line_at(bytes, end), closing = { .at = NULL };
	size_t number = 1;
	result = find_opening(&opening, end, &number, faults);
	if (result == 0)
		result = find_closing(opening.next, end, number + 1, &closing, faults);
	if (result < 0)
		return result;
	front->yaml = opening.next;
	front->yaml_len = (size_t)(closing.at - opening.next);
	front->yaml_line = number + 1;
	front->body = closing.next;
	front->body_len = (size_t)(end - closing.next);
	if (front->yaml_len > FRONTMATTER_YAML_MAX)
		return refuse(faults, "too-large", number,
			"the front matter is larger than 64 KiB; move text into the body");
	check_body(front, front->yaml_line + count_lines(front->yaml, closing.next), faults);
	if (clean_yaml(front, faults) < 0)
		return refuse(faults, "too-large", number, "not enough memory to read it");
	return 0;
}

void frontmatter_release(struct frontmatter *front)
{
	buf_release(&front->text);
	buf_release(&front->clean);
	*front = (struct frontmatter)FRONTMATTER_INIT;
}
