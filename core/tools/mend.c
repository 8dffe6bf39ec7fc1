#include "core/tools/mend.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/tools/yaml.h"

/* Levels of entries: front matter, inputs, one input. */
#define LEVEL_MAX 3

struct line {
	const char *at; /* borrowed from the text */
	size_t len;     /* without its LF */
	size_t indent;  /* in blanks; a tab is none */
	size_t key_len; /* of the key as written, quotes included; 0: the line begins no entry */
	size_t value;   /* offset of what follows the colon and its blanks */
};

struct mender {
	struct line *lines; /* owned */
	size_t count, capacity;
	struct buf *out;
	struct mended *mended;
	bool lost; /* an input, or a property of one, went into another value; or the name is a guess */
};

static bool is_blank_char(char c)
{
	return c == ' ' || c == '\t';
}

/* The length of a key at the start of text: "...", '...', or a word without blanks; or 0. */
static size_t key_len(const char *text, size_t len)
{
	size_t at = 0;
	if (len > 0 && (*text == '"' || *text == '\'')) {
		const char *close = memchr(text + 1, *text, len - 1);
		at = close ? (size_t)(close - text) + 1 : 0;
	} else {
		while (at < len && (isalnum((unsigned char)text[at]) ||
					   (text[at] && strchr("_-.$/", text[at])) ||
					   (unsigned char)text[at] >= 0x80))
			at++;
		if (at > 0 && *text == '-' && at == 1)
			return 0;
	}
	if (at == 0 || at >= len || text[at] != ':')
		return 0;
	return at + 1 == len || is_blank_char(text[at + 1]) ? at : 0;
}

static struct line line_of(const char *at, size_t len)
{
	struct line line = { .at = at, .len = len };
	while (line.indent < len && at[line.indent] == ' ')
		line.indent++;
	line.key_len = key_len(at + line.indent, len - line.indent);
	line.value = line.indent + line.key_len + (line.key_len ? 1 : 0);
	while (line.value < len && is_blank_char(at[line.value]))
		line.value++;
	return line;
}

static void cut_lines(struct mender *mender, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *stop = memchr(text + at, '\n', len - at);
		size_t line_len = stop ? (size_t)(stop - text) - at : len - at;
		mender->lines = xgrow(
			mender->lines, mender->count, &mender->capacity, sizeof(*mender->lines));
		mender->lines[mender->count++] = line_of(text + at, line_len);
		at += line_len + 1;
	}
}

static bool parses(const struct line *first, const struct line *last)
{
	struct yaml_problem problem;
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	size_t len = (size_t)(last->at - first->at) + last->len;
	return yaml_tree_load(first->at, len, 1, &root, &problem) == 0;
}

static void copy_lines(struct mender *mender, const struct line *first, const struct line *last)
{
	buf_append(mender->out, first->at, (size_t)(last->at - first->at) + last->len);
	buf_putc(mender->out, '\n');
}

/* ---- an entry's text, as what a person meant by it */

static void trim(const char **text, size_t *len)
{
	while (*len > 0 && is_blank_char(**text)) {
		(*text)++;
		(*len)--;
	}
	while (*len > 0 && is_blank_char((*text)[*len - 1]))
		(*len)--;
}

/* `|`, `>-` and the like, alone on the line of the key. */
static bool is_block_indicator(const char *value, size_t len)
{
	if (len == 0 || len > 3 || (*value != '|' && *value != '>'))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!strchr("+-123456789", value[i]))
			return false;
	return true;
}

static bool is_blank(const struct line *line)
{
	return line->value == line->len && line->key_len == 0;
}

/* A comment of its own, and no text of an entry at that indentation. */
static bool is_comment(const struct line *line, size_t indent)
{
	return line->indent <= indent && line->indent < line->len && line->at[line->indent] == '#';
}

static void join(const struct line *first, const struct line *last, struct buf *joined)
{
	const char *value = first->at + first->value;
	size_t len = first->len - first->value;
	trim(&value, &len);
	bool is_block = is_block_indicator(value, len), is_literal = is_block && *value == '|';
	if (!is_block)
		buf_append(joined, value, len);
	for (const struct line *line = first + 1; line <= last; line++) {
		if (is_comment(line, first->indent))
			continue;
		const char *more = line->at;
		size_t more_len = line->len;
		trim(&more, &more_len);
		bool at_start = joined->len == 0 || joined->data[joined->len - 1] == '\n';
		if (joined->len > 0 && (more_len == 0 || is_literal))
			buf_putc(joined, '\n');
		else if (!at_start)
			buf_putc(joined, ' ');
		buf_append(joined, more, more_len);
	}
}

/* Takes quotes off that enclose the whole and are not within it. */
static void unquote(const char **text, size_t *len)
{
	char quote = *len >= 2 ? **text : '\0';
	if ((quote != '"' && quote != '\'') || (*text)[*len - 1] != quote ||
		memchr(*text + 1, quote, *len - 2))
		return;
	(*text)++;
	*len -= 2;
}

/* As a double-quoted scalar of YAML on one line. */
static void append_quoted(struct buf *out, const char *text, size_t len)
{
	buf_putc(out, '"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			buf_puts(out, "\\n");
		else if (text[i] == '\t')
			buf_puts(out, "\\t");
		else {
			if (text[i] == '"' || text[i] == '\\')
				buf_putc(out, '\\');
			buf_putc(out, text[i]);
		}
	}
	buf_putc(out, '"');
}

static void note(struct mended *mended, const struct line *line)
{
	if (mended->count++ < 3 && line->key_len <= 64)
		buf_printf(&mended->keys, "%s'%.*s'", mended->keys.len ? ", " : "",
			(int)line->key_len, line->at + line->indent);
}

static bool is_key(const struct line *line, const char *wanted)
{
	const char *key = line->at + line->indent;
	size_t len = line->key_len;
	unquote(&key, &len);
	return len == strlen(wanted) && memcmp(key, wanted, len) == 0;
}

/*
 * Whether joining these lines would take something else along: `inputs` itself, or, among inputs,
 * any line but those of a description that are indented below it.
 */
static bool loses_inputs(const struct line *first, const struct line *last, int level)
{
	for (const struct line *line = first + 1; line <= last; line++) {
		if (is_blank(line) || is_comment(line, first->indent))
			continue;
		if (level == 1 && is_key(line, "inputs"))
			return true;
		if (level > 1 && (line->indent <= first->indent || !is_key(first, "description")))
			return true;
	}
	return false;
}

static void quote_entry(
	struct mender *mender, const struct line *first, const struct line *last, int level)
{
	bool is_name = level == 1 && is_key(first, "name");
	if (is_name && mender->mended->name_line == 0)
		mender->mended->name_line = (size_t)(first - mender->lines) + 1;
	mender->lost = mender->lost || is_name || loses_inputs(first, last, level);
	auto_buf struct buf joined = BUF_INIT(YAML_SIZE_MAX);
	join(first, last, &joined);
	const char *text = buf_str(&joined);
	size_t len = joined.failed ? 0 : joined.len;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	unquote(&text, &len);
	buf_append(mender->out, first->at, first->indent + first->key_len + 1);
	buf_putc(mender->out, ' ');
	append_quoted(mender->out, text, len);
	for (const struct line *line = first; line <= last; line++)
		buf_putc(mender->out, '\n');
	note(mender->mended, first);
}

/* ---- entries */

/* The first line of a nested mapping below first, or NULL: its value is empty, a deeper key follows. */
static const struct line *nested(const struct line *first, const struct line *last)
{
	bool is_empty = first->value == first->len || first->at[first->value] == '#';
	for (const struct line *line = first + 1; is_empty && line <= last; line++) {
		if (is_blank(line) || is_comment(line, line->indent))
			continue;
		return line->key_len && line->indent > first->indent ? line : NULL;
	}
	return NULL;
}

static void mend_block(
	struct mender *mender, const struct line *first, const struct line *last, int level);

static void mend_entry(
	struct mender *mender, const struct line *first, const struct line *last, int level)
{
	if (parses(first, last)) {
		copy_lines(mender, first, last);
		return;
	}
	bool may_nest = level < LEVEL_MAX && (level > 1 || is_key(first, "inputs"));
	const struct line *below = may_nest ? nested(first, last) : NULL;
	if (!below) {
		quote_entry(mender, first, last, level);
		return;
	}
	copy_lines(mender, first, below - 1);
	mend_block(mender, below, last, level + 1);
}

/* The entries of the lines first to last, all at the indentation of the first, which begins one. */
static void mend_block(
	struct mender *mender, const struct line *first, const struct line *last, int level)
{
	const struct line *begin = first;
	for (const struct line *line = first + 1; line <= last; line++) {
		if (!line->key_len || line->indent != first->indent)
			continue;
		mend_entry(mender, begin, line - 1, level);
		begin = line;
	}
	mend_entry(mender, begin, last, level);
}

int mend_yaml(const char *text, size_t len, struct buf *out, struct mended *mended)
{
	struct mender mender = { .out = out, .mended = mended };
	cut_lines(&mender, text, len);
	size_t begin = 0;
	while (begin < mender.count && !mender.lines[begin].key_len)
		begin++;
	int result = -ENOENT;
	if (begin < mender.count) {
		for (size_t i = 0; i < begin; i++) {
			const struct line *line = &mender.lines[i];
			bool is_text = line->value < line->len && line->at[line->indent] != '#';
			mended->dropped += is_text;
			buf_putc(out, '\n');
		}
		mend_block(&mender, &mender.lines[begin], &mender.lines[mender.count - 1], 1);
		result = mender.lost ? -ENOTSUP : out->failed;
	}
	free(mender.lines);
	return result;
}
