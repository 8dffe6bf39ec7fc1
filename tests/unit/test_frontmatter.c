#include <errno.h>

#include "core/tools/frontmatter.h"
#include "tests/unit/golden.h"

/* What a file is split into, as "LINE|YAML|BODY|CODES", or "CODES" where it is refused. */
static void assert_split_bytes(const char *bytes, size_t len, const char *wanted)
{
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_faults struct faults faults = FAULTS_INIT;
	auto_buf struct buf out = BUF_INIT(GOLDEN_SIZE_MAX);
	int result = frontmatter_split(bytes, len, &front, &faults);
	if (result == 0) {
		buf_printf(&out, "%zu|", front.yaml_line);
		buf_append(&out, front.yaml, front.yaml_len);
		buf_putc(&out, '|');
		buf_append(&out, front.body, front.body_len);
		buf_putc(&out, '|');
	}
	for (size_t i = 0; i < faults.count; i++)
		buf_printf(&out, "%s%s", i ? " " : "", faults.items[i].code);
	assert_int_equal(result < 0, faults_have_error(&faults));
	assert_string_equal(buf_str(&out), wanted);
}

static void assert_split(const char *text, const char *wanted)
{
	assert_split_bytes(text, strlen(text), wanted);
}

static void the_first_closing_fence_counts(void **state)
{
	(void)state;
	assert_split("---\na: 1\n---\nbody\n---\nmore\n", "2|a: 1\n|body\n---\nmore\n|");
	assert_split("---\n---\n", "2|||");
	assert_split("---\n---", "2|||");
	assert_split("---\na: 1\n---\n\n\nx", "2|a: 1\n|\n\nx|");
}

static void only_whole_lines_are_fences(void **state)
{
	(void)state;
	assert_split("---\na: 1\n----\n---x\n--- x\n --- \n---\nb",
		"2|a: 1\n----\n---x\n--- x\n --- \n|b|");
	assert_split("---- \na: 1\n---\n", "no-front-matter");
	assert_split("---js\na: 1\n---\n", "no-front-matter");
	assert_split("--\na: 1\n--\n", "no-front-matter");
	assert_split("", "no-front-matter");
}

static void blanks_may_follow_a_fence(void **state)
{
	(void)state;
	assert_split("--- \t\na: 1\n---\t \nb", "2|a: 1\n|b|");
}

static void line_ends_become_lf(void **state)
{
	(void)state;
	assert_split("---\r\na: 1\r\n---\r\nx\r\ny", "2|a: 1\n|x\ny|");
	assert_split("---\ra: 1\r---\rx\r\ry", "2|a: 1\n|x\n\ny|");
	assert_split("---\r\na: 1\n---\rx\r", "2|a: 1\n|x\n|");
}

static void a_byte_order_mark_is_passed_over(void **state)
{
	(void)state;
	assert_split("\xef\xbb\xbf---\na: 1\n---\nb", "2|a: 1\n|b|");
	assert_split("\xef\xbb\xbf", "no-front-matter");
}

static void blank_lines_and_comments_may_come_first(void **state)
{
	(void)state;
	assert_split("\n \n---\na: 1\n---\nb", "4|a: 1\n|b|late-fence");
	assert_split("<!-- x -->\n---\na: 1\n---\nb", "3|a: 1\n|b|late-fence");
	assert_split("<!-- x\n---\ny -->\n\n---\na: 1\n---\nb", "6|a: 1\n|b|late-fence");
	assert_split("<!-- x --> y\n---\na: 1\n---\n", "no-front-matter");
	assert_split("<!-- x\n---\na: 1\n---\n", "no-front-matter");
	assert_split("<!---->\n---\n---\n", "3|||late-fence");
}

static void dots_close_where_no_fence_follows(void **state)
{
	(void)state;
	assert_split("---\na: 1\n...\nbody\n...\n", "2|a: 1\n|body\n...\n|dots-fence");
	assert_split("---\na: 1\n...\nb: 2\n---\nbody\n", "2|a: 1\n...\nb: 2\n|body\n|");
}

static void unclosed_front_matter_is_told_with_its_cause(void **state)
{
	(void)state;
	assert_split("---\na: 1\n", "unclosed-fence");
	assert_split("---", "unclosed-fence");
	assert_split("---\na: 1\n  ---\nbody", "unclosed-fence");
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_faults struct faults faults = FAULTS_INIT;
	assert_int_equal(frontmatter_split("\n---\na: 1\n  ---\n", 16, &front, &faults), -EINVAL);
	assert_int_equal(faults.items[faults.count - 1].line, 4);
	assert_non_null(strstr(faults.items[faults.count - 1].text, "indented"));
}

static void other_encodings_are_told_apart(void **state)
{
	(void)state;
	assert_split_bytes("\xff\xfe-\0-\0-\0", 8, "utf-16");
	assert_split_bytes("\xfe\xff\0-\0-\0-", 8, "utf-16");
	assert_split_bytes("-\0-\0-\0", 6, "utf-16");
	assert_split_bytes("\0-\0-\0-", 6, "utf-16");
	assert_split_bytes("---\na\0\n---\n", 11, "nul-byte");
}

static void bytes_that_are_no_utf8_are_replaced_in_front_and_kept_in_the_body(void **state)
{
	(void)state;
	assert_split("---\na: x\xffy\xe2\x82\n---\nb\xff",
		"2|a: x\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd\n|b\xff|invalid-utf8 invalid-utf8");
}

static void control_characters_are_replaced_in_front(void **state)
{
	(void)state;
	assert_split("---\na: \x1b\t\xc2\x85\xc2\x9b\x7f\xef\xbf\xbf\n---\n\x1b",
		"2|a: \xef\xbf\xbd\t\xc2\x85\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\n|\x1b|control-"
		"character");
}

static void the_place_of_a_bad_byte_is_that_in_the_file(void **state)
{
	(void)state;
	const char text[] = "\r\n---\r\na: 1\r\ngr\xc3\xb6\xc3\x9f"
			    "e: \xff\r\n---\r\n";
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_faults struct faults faults = FAULTS_INIT;
	assert_int_equal(frontmatter_split(text, sizeof(text) - 1, &front, &faults), 0);
	assert_string_equal(faults.items[1].code, "invalid-utf8");
	assert_int_equal(faults.items[1].line, 4);
	assert_int_equal(faults.items[1].column, 8);
}

static void sizes_are_limited(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(FRONTMATTER_FILE_MAX * 2);
	buf_puts(&text, "---\na: ");
	while (text.len < FRONTMATTER_YAML_MAX + 3)
		buf_putc(&text, 'x');
	buf_puts(&text, "\n---\n");
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_faults struct faults faults = FAULTS_INIT;
	assert_int_equal(frontmatter_split(buf_str(&text), text.len, &front, &faults), 0);
	frontmatter_release(&front);
	buf_reset(&text);
	buf_puts(&text, "---\na: 1\n---\n");
	while (text.len < FRONTMATTER_FILE_MAX)
		buf_putc(&text, 'x');
	assert_int_equal(frontmatter_split(buf_str(&text), text.len, &front, &faults), 0);
	frontmatter_release(&front);
	buf_putc(&text, 'x');
	assert_split_bytes(buf_str(&text), text.len, "too-large");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_closing_fence_counts),
		cmocka_unit_test(only_whole_lines_are_fences),
		cmocka_unit_test(blanks_may_follow_a_fence),
		cmocka_unit_test(line_ends_become_lf),
		cmocka_unit_test(a_byte_order_mark_is_passed_over),
		cmocka_unit_test(blank_lines_and_comments_may_come_first),
		cmocka_unit_test(dots_close_where_no_fence_follows),
		cmocka_unit_test(unclosed_front_matter_is_told_with_its_cause),
		cmocka_unit_test(other_encodings_are_told_apart),
		cmocka_unit_test(bytes_that_are_no_utf8_are_replaced_in_front_and_kept_in_the_body),
		cmocka_unit_test(control_characters_are_replaced_in_front),
		cmocka_unit_test(the_place_of_a_bad_byte_is_that_in_the_file),
		cmocka_unit_test(sizes_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
