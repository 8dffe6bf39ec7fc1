#include <errno.h>

#include "core/tools/yaml.h"
#include "tests/unit/golden.h"

/* ---- helpers: a tree as text, with the place of each node */

static void write_node(struct buf *out, const struct yaml_node *node)
{
	buf_printf(out, "@%zu:%zu", node->line, node->column);
	if (node->kind == YAML_KIND_SCALAR) {
		buf_printf(
			out, "%s'%s'%s", node->plain ? "" : "q", node->text, node->cut ? "#" : "");
		return;
	}
	buf_puts(out, node->kind == YAML_KIND_SEQUENCE ? "[" : "{");
	for (size_t i = 0; i < node->count; i++) {
		buf_puts(out, i ? " " : "");
		write_node(out, &node->items[i]);
	}
	buf_puts(out, node->kind == YAML_KIND_SEQUENCE ? "]" : "}");
}

static void assert_tree(const char *text, const char *wanted)
{
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	auto_buf struct buf out = BUF_INIT(GOLDEN_SIZE_MAX);
	struct yaml_problem problem;
	if (yaml_tree_load(text, strlen(text), 1, &root, &problem) < 0)
		fail_msg("%s: %zu:%zu: %s", text, problem.line, problem.column, problem.text);
	write_node(&out, &root);
	assert_string_equal(buf_str(&out), wanted);
}

static struct yaml_problem refusal(const char *text, size_t len)
{
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem = { .code = "none" };
	if (yaml_tree_load(text, len, 1, &root, &problem) >= 0)
		fail_msg("accepted: %s", text);
	return problem;
}

static void assert_refused(const char *text, const char *code, size_t line, size_t column)
{
	struct yaml_problem problem = refusal(text, strlen(text));
	if (strcmp(problem.code, code) != 0 || problem.line != line || problem.column != column)
		fail_msg("%s: %s at %zu:%zu: %s", text, problem.code, problem.line, problem.column,
			problem.text);
}

/* ---- trees */

static void nodes_know_their_place_and_source_text(void **state)
{
	(void)state;
	assert_tree("a: 1.0\nb:\n  - on\n  - \"x\"\n",
		"@1:1{@1:1'a' @1:4'1.0' @2:1'b' @3:3[@3:5'on' @4:5q'x']}");
	assert_tree(
		"{a: [1, 2], \"b\": {}}", "@1:1{@1:2'a' @1:5[@1:6'1' @1:9'2'] @1:13q'b' @1:18{}}");
}

static void columns_count_characters(void **state)
{
	(void)state;
	assert_tree("größe: [€, 😀, x]", "@1:1{@1:1'größe' @1:8[@1:9'€' @1:12'😀' @1:15'x']}");
}

static void lines_count_from_where_the_text_begins(void **state)
{
	(void)state;
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem;
	assert_int_equal(yaml_tree_load("a: b\n", 5, 7, &root, &problem), 0);
	assert_int_equal(root.items[1].line, 7);
	yaml_tree_release(&root);
	assert_true(yaml_tree_load("a: b: c\n", 8, 7, &root, &problem) < 0);
	assert_int_equal(problem.line, 7);
}

static void no_text_is_an_empty_scalar(void **state)
{
	(void)state;
	assert_tree("", "@1:1''");
	assert_tree("# only a comment\n", "@1:1''");
	assert_tree("a:\nb: ~\n", "@1:1{@1:1'a' @1:3'' @2:1'b' @2:4'~'}");
}

static void a_comment_that_ends_a_plain_value_is_noticed(void **state)
{
	(void)state;
	assert_tree("a: x # y\nb: x#y\nc: 'x' # y\nd: |\n  x # y\n",
		"@1:1{@1:1'a' @1:4'x'# @2:1'b' @2:4'x#y' @3:1'c' @3:4q'x' @4:1'd' @4:4q'x # "
		"y\n'}");
	assert_tree("a: größe # €\nb: [u #\n , v]\n",
		"@1:1{@1:1'a' @1:4'größe'# @2:1'b' @2:4[@2:5'u'# @3:4'v']}");
	assert_tree("a: one\n  two # x\n", "@1:1{@1:1'a' @1:4'one two'#}");
}

static void yaml_1_1_line_breaks_are_ordinary_characters(void **state)
{
	(void)state;
	assert_tree("a: x\xe2\x80\xa8y # z\nb: \"p\xc2\x85q\xe2\x80\xa9r\"\n",
		"@1:1{@1:1'a' @1:4'x\xe2\x80\xa8y'# @2:1'b' @2:4q'p\xc2\x85q\xe2\x80\xa9r'}");
	/* Where a stand-in is in the text as itself, it stays; libyaml then breaks the line. */
	assert_tree("a: \"\xf4\x8f\xbf\xbcx\xe2\x80\xa8y\"",
		"@1:1{@1:1'a' @1:4q'\xf4\x8f\xbf\xbcx\xe2\x80\xa8y'}");
}

static void get_finds_values_by_key(void **state)
{
	(void)state;
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem;
	assert_int_equal(yaml_tree_load("a: 1\nb: [a]\n", 12, 1, &root, &problem), 0);
	assert_string_equal(yaml_get(&root, "a")->text, "1");
	assert_null(yaml_get(&root, "c"));
	assert_null(yaml_get(yaml_get(&root, "b"), "a"));
	assert_null(yaml_get(yaml_get(&root, "a"), "a"));
}

/* ---- refusals */

static void what_has_no_place_here_is_refused(void **state)
{
	(void)state;
	assert_refused("a: &x 1\n", "yaml-anchor", 1, 4);
	assert_refused("a: *x\n", "yaml-alias", 1, 4);
	assert_refused("a: !!str 1\n", "yaml-tag", 1, 4);
	assert_refused("a: ! 1\n", "yaml-tag", 1, 4);
	assert_refused("a: &x [1]\n", "yaml-anchor", 1, 4);
	assert_refused("a: !t {b: 1}\n", "yaml-tag", 1, 4);
	assert_refused("%YAML 1.1\n---\na: 1\n", "yaml-directive", 1, 1);
	assert_refused("%TAG ! tag:x,2000:\n---\na: 1\n", "yaml-directive", 1, 1);
	assert_refused("a: 1\n--- b\n", "yaml-documents", 2, 1);
	assert_refused("{{ X }}: 1\n", "yaml-key", 1, 1);
	assert_refused("? [a]\n: 1\n", "yaml-key", 1, 3);
	assert_refused("a: \"x\\0y\"\n", "yaml-nul", 1, 4);
	assert_refused("a: b: c\n", "yaml-syntax", 1, 5);
	assert_refused("a:\n\tb: 1\n", "yaml-syntax", 2, 1);
}

static void equal_keys_are_refused_with_both_lines(void **state)
{
	(void)state;
	assert_refused("a: 1\nb: 2\n'a': 3\n", "yaml-duplicate-key", 3, 1);
	struct yaml_problem problem = refusal("x:\n  a: 1\n  a: 2\n", 17);
	assert_int_equal(problem.line, 3);
	assert_non_null(strstr(problem.text, "line 2"));
	assert_refused("{a: 1, a: 2}", "yaml-duplicate-key", 1, 8);
	assert_tree("a: {b: 1}\nc: {b: 2}\n",
		"@1:1{@1:1'a' @1:4{@1:5'b' @1:8'1'} @2:1'c' @2:4{@2:5'b' @2:8'2'}}");
}

static void nesting_is_limited(void **state)
{
	(void)state;
	for (int depth = YAML_DEPTH_MAX - 1; depth <= YAML_DEPTH_MAX + 1; depth++) {
		auto_buf struct buf text = BUF_INIT(1000);
		for (int i = 0; i < depth; i++)
			buf_puts(&text, "[");
		for (int i = 0; i < depth; i++)
			buf_puts(&text, "]");
		auto_yaml struct yaml_node root = YAML_NODE_INIT;
		struct yaml_problem problem = { .code = "" };
		int result = yaml_tree_load(buf_str(&text), text.len, 1, &root, &problem);
		assert_int_equal(result, depth <= YAML_DEPTH_MAX ? 0 : -EINVAL);
		assert_string_equal(problem.code, depth <= YAML_DEPTH_MAX ? "" : "yaml-depth");
	}
}

static void the_size_is_limited(void **state)
{
	(void)state;
	auto_free char *text = xcalloc(1, YAML_SIZE_MAX + 2);
	memset(text, 'x', YAML_SIZE_MAX + 1);
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem;
	assert_int_equal(yaml_tree_load(text, YAML_SIZE_MAX, 1, &root, &problem), 0);
	yaml_tree_release(&root);
	assert_int_equal(yaml_tree_load(text, YAML_SIZE_MAX + 1, 1, &root, &problem), -EFBIG);
}

static void messages_are_for_people(void **state)
{
	(void)state;
	static const char *const texts[] = { "a: b: c\n", "a: @x\n", "a: 'x\n", "a: \"\\d\"\n",
		"a: [1\n", "a: {b\n", "a\nb: 1\n", "a: | x\n", "a: - b\n", "- a\nb: 1\n",
		"a: * b\n", "a: [x] y\n", "a: b\n  c: d\n" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct yaml_problem problem = refusal(texts[i], strlen(texts[i]));
		assert_string_equal(problem.code, "yaml-syntax");
		assert_null(strstr(problem.text, "did not find expected"));
		assert_null(strstr(problem.text, "in this context"));
		assert_null(strstr(problem.text, "found "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_know_their_place_and_source_text),
		cmocka_unit_test(columns_count_characters),
		cmocka_unit_test(lines_count_from_where_the_text_begins),
		cmocka_unit_test(no_text_is_an_empty_scalar),
		cmocka_unit_test(a_comment_that_ends_a_plain_value_is_noticed),
		cmocka_unit_test(yaml_1_1_line_breaks_are_ordinary_characters),
		cmocka_unit_test(get_finds_values_by_key),
		cmocka_unit_test(what_has_no_place_here_is_refused),
		cmocka_unit_test(equal_keys_are_refused_with_both_lines),
		cmocka_unit_test(nesting_is_limited),
		cmocka_unit_test(the_size_is_limited),
		cmocka_unit_test(messages_are_for_people),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
