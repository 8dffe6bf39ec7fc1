#include "core/tools/schema.h"
#include "tests/unit/golden.h"

/* A document, made by build from the case's tool.json, is equal to the case's file, order included. */
static void check_document(const char *dir, const char *file, json_t *build(const struct tool *))
{
	auto_free char *tool_path = xasprintf("%s/tool.json", dir);
	auto_free char *path = xasprintf("%s/%s", dir, file);
	auto_tool struct tool *tool = golden_tool(tool_path);
	auto_json json_t *document = build(tool);
	auto_json json_t *wanted = golden_json(path);
	auto_free char *got_text = json_dumps(document, JSON_INDENT(2));
	auto_free char *wanted_text = json_dumps(wanted, JSON_INDENT(2));
	if (strcmp(got_text, wanted_text) != 0)
		fail_msg("%s: expected\n%s\nbut got\n%s", path, wanted_text, got_text);
}

static void check_case(const char *dir)
{
	check_document(dir, "schema.json", schema_build);
	check_document(dir, "typebox.json", schema_build_typebox);
	check_document(dir, "example.json", schema_example);
}

static void r32_schema_and_its_kin_are_as_the_files_say(void **state)
{
	(void)state;
	golden_each("schema", check_case);
}

static json_t *schema_of(const char *inputs)
{
	auto_json json_t *tool_json = json_pack("{s:o}", "inputs", json_loads(inputs, 0, NULL));
	auto_tool struct tool *tool = tooljson_read(tool_json);
	return schema_build(tool);
}

static const json_t *property(const json_t *schema, const char *name)
{
	return json_object_get(json_object_get(schema, "properties"), name);
}

static void assert_text(const json_t *object, const char *key, const char *wanted)
{
	assert_non_null(json_string_value(json_object_get(object, key)));
	assert_string_equal(json_string_value(json_object_get(object, key)), wanted);
}

static void r20_no_inputs_give_empty_properties_and_no_required(void **state)
{
	(void)state;
	auto_json json_t *schema = schema_of("[]");
	auto_free char *text = json_dumps(schema, JSON_COMPACT);
	assert_string_equal(text, "{\"type\":\"object\",\"properties\":{}}");
}

static void r21_r22_r23_each_type_has_its_json_type(void **state)
{
	(void)state;
	auto_json json_t *schema =
		schema_of("[{\"name\":\"s\"},{\"name\":\"n\",\"type\":\"number\"},"
			  "{\"name\":\"b\",\"type\":\"boolean\"}]");
	assert_text(property(schema, "s"), "type", "string");
	assert_text(property(schema, "n"), "type", "number");
	assert_text(property(schema, "b"), "type", "boolean");
}

static void r24_enum_is_a_string_with_its_values_in_order(void **state)
{
	(void)state;
	auto_json json_t *schema =
		schema_of("[{\"name\":\"m\",\"type\":\"enum\",\"values\":[\"b\",\"a\"]}]");
	auto_free char *text = json_dumps(property(schema, "m"), JSON_COMPACT);
	assert_string_equal(text, "{\"type\":\"string\",\"enum\":[\"b\",\"a\"]}");
}

static void r27_description_is_kept_as_written_and_left_out_when_empty(void **state)
{
	(void)state;
	auto_json json_t *schema = schema_of(
		"[{\"name\":\"a\",\"description\":\" Two\\nlines: \\\"x\\\" \"},{\"name\":\"b\"}]");
	assert_text(property(schema, "a"), "description", " Two\nlines: \"x\" ");
	assert_null(json_object_get(property(schema, "b"), "description"));
}

static void r28_a_default_does_not_make_an_input_optional(void **state)
{
	(void)state;
	auto_json json_t *schema = schema_of("[{\"name\":\"a\",\"default\":\"x\"},"
					     "{\"name\":\"b\",\"optional\":true}]");
	auto_free char *text = json_dumps(json_object_get(schema, "required"), JSON_COMPACT);
	assert_string_equal(text, "[\"a\"]");
}

static void r29_a21_sensitive_is_no_keyword_and_its_default_is_not_published(void **state)
{
	(void)state;
	auto_json json_t *schema =
		schema_of("[{\"name\":\"t\",\"sensitive\":true,\"default\":\"hunter2\"}]");
	auto_free char *text = json_dumps(schema, JSON_COMPACT);
	assert_null(strstr(text, "sensitive"));
	assert_null(strstr(text, "hunter2"));
}

static void r31_default_is_published(void **state)
{
	(void)state;
	auto_json json_t *schema =
		schema_of("[{\"name\":\"n\",\"type\":\"number\",\"default\":5}]");
	assert_int_equal(json_integer_value(json_object_get(property(schema, "n"), "default")), 5);
}

static void texts_that_are_no_utf8_are_mended(void **state)
{
	(void)state;
	auto_json json_t *tool_json = json_loads("{\"inputs\":[{\"name\":\"abc\"}]}", 0, NULL);
	auto_tool struct tool *tool = tooljson_read(tool_json);
	tool->inputs[0].name[1] = (char)0xff;
	auto_json json_t *schema = schema_build(tool);
	assert_non_null(property(schema, "a\xef\xbf\xbd"
					 "c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r32_schema_and_its_kin_are_as_the_files_say),
		cmocka_unit_test(r20_no_inputs_give_empty_properties_and_no_required),
		cmocka_unit_test(r21_r22_r23_each_type_has_its_json_type),
		cmocka_unit_test(r24_enum_is_a_string_with_its_values_in_order),
		cmocka_unit_test(r27_description_is_kept_as_written_and_left_out_when_empty),
		cmocka_unit_test(r28_a_default_does_not_make_an_input_optional),
		cmocka_unit_test(r29_a21_sensitive_is_no_keyword_and_its_default_is_not_published),
		cmocka_unit_test(r31_default_is_published),
		cmocka_unit_test(texts_that_are_no_utf8_are_mended),
	};
	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
