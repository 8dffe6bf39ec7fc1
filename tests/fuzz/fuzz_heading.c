/*
 * Bodies of TOOL.md through heading_deepen. Beside memory errors it finds changes of meaning: what
 * cmark reads in the new text must be the old document with deeper headings.
 */
#include <cmark.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/tools/heading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_in_list_and_quote(cmark_node *node)
{
	bool in_list = false, in_quote = false;
	for (; node; node = cmark_node_parent(node)) {
		in_list = in_list || cmark_node_get_type(node) == CMARK_NODE_ITEM;
		in_quote = in_quote || cmark_node_get_type(node) == CMARK_NODE_BLOCK_QUOTE;
	}
	return in_list && in_quote;
}

/*
 * Where the meaning may differ: link definitions, hard breaks, and several lines in a list and a quote
 * at once in a heading, as heading.h says, and white space that cmark itself treats now as a blank, now as text.
 */
static bool is_exempt(const struct buf *text, cmark_node *document)
{
	bool exempt = memchr(text->data, '\0', text->len) || strstr(text->data, "]:") ||
		      strpbrk(text->data, "\v\f");
	bool in_heading = false;
	cmark_iter *iter = cmark_iter_new(document);
	for (cmark_event_type event = cmark_iter_next(iter); event != CMARK_EVENT_DONE;
		event = cmark_iter_next(iter)) {
		cmark_node_type type = cmark_node_get_type(cmark_iter_get_node(iter));
		if (type == CMARK_NODE_HEADING)
			in_heading = event == CMARK_EVENT_ENTER;
		exempt = exempt || (in_heading && type == CMARK_NODE_LINEBREAK) ||
			 (in_heading && type == CMARK_NODE_SOFTBREAK &&
				 is_in_list_and_quote(cmark_iter_get_node(iter)));
	}
	cmark_iter_free(iter);
	return exempt;
}

static void deepen_tree(cmark_node *document)
{
	cmark_iter *iter = cmark_iter_new(document);
	while (cmark_iter_next(iter) != CMARK_EVENT_DONE) {
		cmark_node *node = cmark_iter_get_node(iter);
		int level = cmark_node_get_heading_level(node);
		if (cmark_node_get_type(node) == CMARK_NODE_HEADING && level < 6 &&
			cmark_iter_get_event_type(iter) == CMARK_EVENT_ENTER)
			cmark_node_set_heading_level(node, level + 1);
	}
	cmark_iter_free(iter);
}

/* Lines are joined in a heading: how much white space there is in the HTML does not count. */
static char *html_of(cmark_node *document)
{
	char *html = cmark_render_html(document, CMARK_OPT_UNSAFE | CMARK_OPT_NOBREAKS);
	char *to = html;
	for (const char *at = html; *at; at++) {
		char byte = strchr(" \t\v\f\r\n", *at) ? ' ' : *at;
		if (byte == ' ' && (to == html || to[-1] == ' ' || to[-1] == '>'))
			continue;
		if (byte == '<' && to > html && to[-1] == ' ')
			to--;
		*to++ = byte;
	}
	*to = '\0';
	return html;
}

static void compare(const struct buf *before, const struct buf *after)
{
	cmark_node *old = cmark_parse_document(before->data, before->len, CMARK_OPT_DEFAULT);
	cmark_node *new = cmark_parse_document(buf_str(after), after->len, CMARK_OPT_DEFAULT);
	if (!is_exempt(before, old)) {
		deepen_tree(old);
		char *wanted = html_of(old), *got = html_of(new);
		if (strcmp(wanted, got) != 0) {
			fprintf(stderr, "expected\n%s\nbut got\n%s\n", wanted, got);
			abort();
		}
		free(wanted);
		free(got);
	}
	cmark_node_free(old);
	cmark_node_free(new);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf before = BUF_INIT(size), after = BUF_INIT(size * 16 + 64);
	buf_reserve(&before, size);
	buf_append(&before, data, size);
	if (heading_deepen(before.data, before.len, &after) < 0)
		abort();
	compare(&before, &after);
	buf_release(&before);
	buf_release(&after);
	return 0;
}
