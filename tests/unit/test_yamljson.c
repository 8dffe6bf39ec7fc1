/* JSON in TOOL.md is the same JSON; and the keys of TOOL.md that hold it. */
#include "core/tools/yamljson.h"

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdio.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/tools/manifest.h"
#include "core/tools/params.h"
#include "core/tools/schema.h"

static json_t *json_of(const char *text)
{
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem;
	assert_int_equal(yaml_tree_load(text, strlen(text), 1, &root, &problem), 0);
	return yamljson_build(&root);
}

static void expect_same(const char *json)
{
	auto_json json_t *found = json_of(json), *wanted = json_loads(json, JSON_DECODE_ANY, NULL);
	assert_non_null(wanted);
	assert_true(json_equal(found, wanted));
}

static void json_is_read_as_json(void **state)
{
	(void)state;
	expect_same("{}");
	expect_same(
		"{\"a\":[1,-2,2.5,1e21,true,false,null,\"\",\"yes\",\"1\"],\"b\":{\"c\":[[],{}]}}");
	expect_same("{\"type\": \"object\", \"a: b\": \"# no comment\", \"null\": null, \"1\": 1}");
	expect_same("{\"a\":\"\\u2028\\n\\t\\\"\\\\ \xc3\xa9\"}");
}

static void what_has_no_json_form_is_refused(void **state)
{
	(void)state;
	assert_null(json_of("{a: .inf}"));
	assert_null(json_of("[1e999]"));
	assert_null(json_of("{a: {b: [.nan]}}"));
}

static struct tool *parse(const char *more, struct faults *faults)
{
	char text[1024];
	snprintf(text, sizeof(text), "---\nname: a\ndescription: Does it.\nversion: 1\n%s---\n",
		more);
	struct tool *tool = tool_new();
	assert_int_equal(manifest_parse(text, strlen(text), tool, faults), 0);
	return tool;
}

static void a_schema_of_its_own_is_shown_and_known(void **state)
{
	(void)state;
	struct faults faults = FAULTS_INIT;
	auto_tool struct tool *tool = parse(
		"inputs:\n  s: {type: string, description: x}\n"
		"parameters: {\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},"
		"\"l\":{\"type\":\"array\"}},\"required\":[\"s\",\"l\"]}\n"
		"annotations: {\"readOnlyHint\":true}\n",
		&faults);
	assert_int_equal(faults.count, 0);
	assert_true(json_is_true(json_object_get(tool->annotations, "readOnlyHint")));
	auto_json json_t *schema = schema_build(tool), *example = schema_example(tool);
	assert_true(json_equal(schema, tool->parameters));
	assert_true(json_is_array(json_object_get(example, "l")));
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	struct fail why = FAIL_INIT;
	auto_json json_t *request = json_pack("{s:s,s:[i],s:i}", "s", "x", "l", 1, "other", 1);
	auto_json json_t *params = params_check(tool, request, &warnings, &why);
	assert_true(json_equal(params, request));
	assert_null(strstr(buf_str(&warnings), "\"l\""));
	assert_non_null(strstr(buf_str(&warnings), "\"other\""));
	faults_release(&faults);
}

static void what_is_no_schema_is_told_and_not_used(void **state)
{
	(void)state;
	static const char *const wrong[] = { "parameters: text\n", "parameters: [1]\n",
		"parameters: {type: string}\n", "parameters: {}\n",
		"parameters: {type: object, maximum: .inf}\n", "annotations: 7\n" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct faults faults = FAULTS_INIT;
		auto_tool struct tool *tool = parse(wrong[i], &faults);
		assert_int_equal(faults.count, 1);
		assert_string_equal(faults.items[0].code, "not-json");
		assert_null(tool->parameters);
		assert_null(tool->annotations);
		faults_release(&faults);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_read_as_json),
		cmocka_unit_test(what_has_no_json_form_is_refused),
		cmocka_unit_test(a_schema_of_its_own_is_shown_and_known),
		cmocka_unit_test(what_is_no_schema_is_told_and_not_used),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
