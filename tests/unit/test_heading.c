#include <cmark.h>

#include "core/tools/heading.h"
#include "tests/unit/golden.h"

static struct buf deepened(const char *text, size_t len)
{
	struct buf out = BUF_INIT(GOLDEN_SIZE_MAX);
	assert_int_equal(heading_deepen(text, len, &out), 0);
	return out;
}

/* The document as HTML after its headings have gone a level deeper in cmark's tree, or as it is. */
static char *html_of(const struct buf *text, int deeper)
{
	cmark_node *document = cmark_parse_document(text->data, text->len, CMARK_OPT_DEFAULT);
	cmark_iter *iter = cmark_iter_new(document);
	while (cmark_iter_next(iter) != CMARK_EVENT_DONE) {
		cmark_node *node = cmark_iter_get_node(iter);
		int level = cmark_node_get_heading_level(node);
		if (cmark_node_get_type(node) == CMARK_NODE_HEADING && level < 6 &&
			cmark_iter_get_event_type(iter) == CMARK_EVENT_ENTER)
			cmark_node_set_heading_level(node, level + deeper);
	}
	char *html = cmark_render_html(document, CMARK_OPT_UNSAFE | CMARK_OPT_NOBREAKS);
	cmark_iter_free(iter);
	cmark_node_free(document);
	return html;
}

static void check_case(const char *dir)
{
	auto_free char *in_path = xasprintf("%s/in.md", dir);
	auto_free char *out_path = xasprintf("%s/out.md", dir);
	auto_buf struct buf in = golden_load(in_path);
	auto_buf struct buf out = deepened(in.data, in.len);
	golden_check(out_path, &out);
}

static void r34_headings_go_one_level_deeper_and_no_other_byte_changes(void **state)
{
	(void)state;
	golden_each("heading", check_case);
}

/* What cmark reads in the new text is the old document with deeper headings. */
static void check_meaning(const char *dir)
{
	auto_free char *in_path = xasprintf("%s/in.md", dir);
	auto_buf struct buf in = golden_load(in_path);
	auto_buf struct buf out = deepened(in.data, in.len);
	auto_free char *wanted = html_of(&in, 1);
	auto_free char *got = html_of(&out, 0);
	/* What heading.h says of setext headings that keep their level, and hard breaks become blanks. */
	if (!strstr(dir, "/definitions") && !strstr(dir, "/setext") &&
		!strstr(dir, "/list_and_quote"))
		assert_string_equal(got, wanted);
}

static void r34_the_rest_of_the_document_means_the_same(void **state)
{
	(void)state;
	golden_each("heading", check_meaning);
}

static void texts_without_headings_stay(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "\n", "text", "a\n\nb\n", "#x\n", "\t# x\n",
		"`#`\n#\\\n" };
	for (size_t i = 0; i + 1 < sizeof(texts) / sizeof(texts[0]); i++) {
		auto_buf struct buf out = deepened(texts[i], strlen(texts[i]));
		assert_string_equal(buf_str(&out), texts[i]);
	}
}

static void nul_bytes_do_no_harm(void **state)
{
	(void)state;
	static const char text[] = "# a\0b\n\0\n---\n> \0\n> ---\n# c";
	auto_buf struct buf out = deepened(text, sizeof(text) - 1);
	assert_memory_equal(out.data, "## a\0b\n", 7);
	assert_string_equal(out.data + out.len - 4, "## c");
}

static void a_text_beyond_the_limit_stays(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	while (text.len <= HEADING_TEXT_MAX)
		buf_puts(&text, "# x\n");
	auto_buf struct buf out = deepened(text.data, text.len);
	assert_int_equal(out.len, text.len);
	assert_memory_equal(out.data, text.data, text.len);
}

static void deep_nesting_ends_in_time(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	for (size_t i = 0; i < 100000; i++)
		buf_puts(&text, "> ");
	buf_puts(&text, "# x\n");
	auto_buf struct buf out = deepened(text.data, text.len);
	assert_int_equal(out.len, text.len + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r34_headings_go_one_level_deeper_and_no_other_byte_changes),
		cmocka_unit_test(r34_the_rest_of_the_document_means_the_same),
		cmocka_unit_test(texts_without_headings_stay),
		cmocka_unit_test(nul_bytes_do_no_harm),
		cmocka_unit_test(a_text_beyond_the_limit_stays),
		cmocka_unit_test(deep_nesting_ends_in_time),
	};
	return cmocka_run_group_tests_name("heading", tests, NULL, NULL);
}
