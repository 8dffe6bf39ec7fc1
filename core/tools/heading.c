#include "core/tools/heading.h"

#include <cmark.h>
#include <stdbool.h>
#include <string.h>

#define LEVEL_MAX 6
#define TAB_WIDTH 4
#define INDENT_MAX 3 /* columns; from the next on it is code or a lazy line */
#define UTF8_MARK "\xef\xbb\xbf"

/* A place in the text that only moves forward, as headings come in order. */
struct cursor {
	const char *at; /* the beginning of a line */
	const char *end;
	int line; /* of at, from 1 */
};

/* One line of the text, without its end. */
struct span {
	const char *at;
	const char *end;
};

/* What is done to the text so far: everything before `done` has been appended to out. */
struct rewrite {
	struct buf *out;
	const char *done;
	struct cursor cursor;
	size_t mark; /* bytes of a byte order mark, which cmark does not count in columns */
};

/* The end of the line at `at`; a line ends as cmark ends it: LF, CRLF or CR. */
static const char *line_end(const char *at, const char *end)
{
	while (at < end && *at != '\n' && *at != '\r')
		at++;
	return at;
}

static const char *next_line(const char *at, const char *end)
{
	at = line_end(at, end);
	if (at < end && *at == '\r')
		at++;
	else if (at < end)
		return at + 1;
	if (at < end && *at == '\n')
		at++;
	return at;
}

static struct span seek_line(struct cursor *cursor, int line)
{
	for (; cursor->line < line && cursor->at < cursor->end; cursor->line++)
		cursor->at = next_line(cursor->at, cursor->end);
	return (struct span){ .at = cursor->at, .end = line_end(cursor->at, cursor->end) };
}

static void copy_until(struct rewrite *rewrite, const char *until)
{
	buf_append(rewrite->out, rewrite->done, (size_t)(until - rewrite->done));
	rewrite->done = until;
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Behind a line cmark also passes over vertical tabs and form feeds. */
static struct span trim(struct span span)
{
	while (span.at < span.end && is_blank(*span.at))
		span.at++;
	while (span.end > span.at && strchr(" \t\v\f", span.end[-1]) && span.end[-1])
		span.end--;
	return span;
}

/* What is around a heading. */
struct containers {
	int quotes;
	bool in_list;
	bool list_in_quote;
};

static struct containers containers_of(cmark_node *node)
{
	struct containers around = { .quotes = 0, .in_list = false, .list_in_quote = false };
	for (node = cmark_node_parent(node); node; node = cmark_node_parent(node)) {
		bool is_quote = cmark_node_get_type(node) == CMARK_NODE_BLOCK_QUOTE;
		around.quotes += is_quote;
		around.list_in_quote = around.list_in_quote || (is_quote && around.in_list);
		around.in_list = around.in_list || cmark_node_get_type(node) == CMARK_NODE_ITEM;
	}
	return around;
}

/*
 * Takes the markers of the block quotes around a line off it. A lazy line has fewer of them, and
 * what is indented by four columns is none, unless a list asks for the indentation.
 */
static struct span strip_quotes(struct span line, struct containers around)
{
	int column = 0,
	    begin = 0; /* begin: behind the last marker and the blank that belongs to it */
	struct span text = line;
	for (; around.quotes > 0; around.quotes--) {
		for (; line.at < line.end && is_blank(*line.at); line.at++)
			column += *line.at == '\t' ? TAB_WIDTH - column % TAB_WIDTH : 1;
		bool is_indented = column - begin > INDENT_MAX && !around.in_list;
		if (line.at == line.end || *line.at != '>' || is_indented)
			break;
		line.at++;
		text = line;
		column++;
		begin = column + 1;
	}
	return trim(text);
}

/*
 * The line of a setext heading's underline. cmark closes a heading when it sees the next line, and
 * there always is one (parse() adds it), so the underline is the line before the end.
 */
static int underline_of(cmark_node *heading)
{
	return cmark_node_get_end_line(heading) - 1;
}

/* Level 1: the same heading, underlined with `-`. */
static void deepen_underline(struct rewrite *rewrite, cmark_node *heading)
{
	struct span line = seek_line(&rewrite->cursor, underline_of(heading));
	copy_until(rewrite, line.at);
	for (const char *at = line.at; at < line.end; at++)
		buf_putc(rewrite->out, *at == '=' ? '-' : *at);
	rewrite->done = line.end;
}

static bool has_definitions(const char *begin, const char *end)
{
	return *begin == '[' && memmem(begin, (size_t)(end - begin), "]:", 2) != NULL;
}

static bool has_hard_break(cmark_node *heading)
{
	bool found = false;
	cmark_iter *iter = cmark_iter_new(heading);
	while (cmark_iter_next(iter) != CMARK_EVENT_DONE && !found)
		found = cmark_node_get_type(cmark_iter_get_node(iter)) == CMARK_NODE_LINEBREAK;
	cmark_iter_free(iter);
	return found;
}

/* A hard line break at the end of a line has no meaning once the lines are joined. */
static struct span without_break(struct span line)
{
	size_t slashes = 0;
	while (line.end - slashes > line.at && line.end[-1 - (ptrdiff_t)slashes] == '\\')
		slashes++;
	line.end -= slashes % 2;
	return trim(line);
}

/* Level 2 -> ATX. title begins where the heading's own text begins, behind list and quote markers. */
static void write_as_atx(struct rewrite *rewrite, cmark_node *heading, struct span title)
{
	int last = underline_of(heading) - 1;
	struct containers around = containers_of(heading);
	bool breaks = has_hard_break(heading);
	copy_until(rewrite, title.at);
	buf_puts(rewrite->out, "### ");
	struct span text = trim(title);
	for (int line = cmark_node_get_start_line(heading); line < last;) {
		text = breaks ? without_break(text) : text;
		buf_append(rewrite->out, text.at, (size_t)(text.end - text.at));
		buf_putc(rewrite->out, ' ');
		text = strip_quotes(seek_line(&rewrite->cursor, ++line), around);
	}
	buf_append(rewrite->out, text.at, (size_t)(text.end - text.at));
	/* Or the text's own `#` would be taken for the closing ones. */
	if (text.end > text.at && text.end[-1] == '#')
		buf_puts(rewrite->out, " ###");
	rewrite->done = seek_line(&rewrite->cursor, last + 1).end;
}

static int columns_before(struct span line, char wanted)
{
	int column = 0;
	for (; line.at < line.end && *line.at != wanted; line.at++)
		column += *line.at == '\t' ? TAB_WIDTH - column % TAB_WIDTH : 1;
	return column;
}

/*
 * In a list, whether a '>' on a further line is a marker or text depends on the indentation that the
 * list asks for. It is surely a marker where it stands no further to the right than that of the
 * heading's first line.
 */
static bool has_unclear_markers(const struct rewrite *rewrite, cmark_node *heading)
{
	struct containers around = containers_of(heading);
	struct cursor cursor = rewrite->cursor;
	int line = cmark_node_get_start_line(heading), last = underline_of(heading) - 1;
	if (line == last || !around.in_list || around.quotes == 0)
		return false;
	int first = columns_before(seek_line(&cursor, line), '>');
	bool unclear = around.list_in_quote;
	while (line < last && !unclear) {
		struct span next = seek_line(&cursor, ++line);
		struct span text = trim(next);
		unclear =
			text.at < text.end && *text.at == '>' && columns_before(next, '>') > first;
	}
	return unclear;
}

static void deepen_setext(struct rewrite *rewrite, cmark_node *heading, struct span title)
{
	if (cmark_node_get_heading_level(heading) == 1) {
		deepen_underline(rewrite, heading);
		return;
	}
	if (has_unclear_markers(rewrite, heading))
		return;
	struct cursor ahead = rewrite->cursor;
	struct span underline = seek_line(&ahead, underline_of(heading));
	if (!has_definitions(title.at, underline.at))
		write_as_atx(rewrite, heading, title);
}

/* "## Title" or "##", but not "##title", which can be the text of a setext heading. */
static bool is_atx(struct span title, int level)
{
	int marks = 0;
	while (title.at < title.end && *title.at == '#') {
		title.at++;
		marks++;
	}
	return marks == level && (title.at == title.end || is_blank(*title.at));
}

static void deepen(struct rewrite *rewrite, cmark_node *heading)
{
	struct span line = seek_line(&rewrite->cursor, cmark_node_get_start_line(heading));
	int column = cmark_node_get_start_column(heading);
	int level = cmark_node_get_heading_level(heading);
	struct span title = { .at = line.at + column - 1, .end = line.end };
	if (rewrite->cursor.line == 1)
		title.at += rewrite->mark;
	if (column < 1 || title.at >= title.end)
		return;
	if (!is_atx(title, level)) {
		deepen_setext(rewrite, heading, title);
	} else if (level < LEVEL_MAX) {
		copy_until(rewrite, title.at);
		buf_putc(rewrite->out, '#');
	}
}

static cmark_node *parse(const char *text, size_t len)
{
	cmark_parser *parser = cmark_parser_new(CMARK_OPT_DEFAULT);
	cmark_parser_feed(parser, text, len);
	cmark_parser_feed(parser, "\n\n", 2);
	cmark_node *document = cmark_parser_finish(parser);
	cmark_parser_free(parser);
	return document;
}

static size_t mark_len(const char *text, size_t len)
{
	size_t mark = strlen(UTF8_MARK);
	return len >= mark && memcmp(text, UTF8_MARK, mark) == 0 ? mark : 0;
}

int heading_deepen(const char *text, size_t len, struct buf *out)
{
	if (len > HEADING_TEXT_MAX || len == 0)
		return buf_append(out, text, len);
	struct rewrite rewrite = { .out = out,
		.done = text,
		.cursor = { .at = text, .end = text + len, .line = 1 },
		.mark = mark_len(text, len) };
	cmark_node *document = parse(text, len);
	cmark_iter *iter = cmark_iter_new(document);
	while (cmark_iter_next(iter) != CMARK_EVENT_DONE) {
		cmark_node *node = cmark_iter_get_node(iter);
		if (cmark_node_get_type(node) == CMARK_NODE_HEADING &&
			cmark_iter_get_event_type(iter) == CMARK_EVENT_ENTER)
			deepen(&rewrite, node);
	}
	cmark_iter_free(iter);
	cmark_node_free(document);
	copy_until(&rewrite, text + len);
	return out->failed;
}
