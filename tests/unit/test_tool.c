#include "core/tools/tool.h"
#include "tests/unit/golden.h"

static struct tool *sample(void)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup("t");
	tool->label = xstrdup("T");
	tool->description = xstrdup("Does it.");
	tool->version = 3;
	tool->language = LANGUAGE_BASH;
	tool->timeout_ms = 5;
	tool->body = xstrdup("body");
	tool->body_len = 4;
	tool->source = xstrdup("/s");
	tool->dir_name = xstrdup("d");
	tool->dir = xstrdup("/s/d");
	tool->entry = xstrdup("index.sh");
	tool->inputs = xcalloc(2, sizeof(*tool->inputs));
	tool->input_count = 2;
	tool->inputs[0] = (struct input){ .name = xstrdup("a"),
		.description = xstrdup("A."),
		.type = INPUT_ENUM,
		.optional = true,
		.values = xcalloc(1, sizeof(char *)),
		.value_count = 1,
		.default_value = json_string("x") };
	tool->inputs[0].values[0] = xstrdup("x");
	tool->inputs[1] = (struct input){
		.name = xstrdup("b"), .description = xstrdup(""), .sensitive = true
	};
	return tool;
}

static void a_tool_lives_as_long_as_its_last_reference(void **state)
{
	(void)state;
	struct tool *tool = sample();
	assert_ptr_equal(tool_ref(tool), tool);
	tool_unref(tool);
	assert_string_equal(tool->name, "t");
	tool_unref(tool);
	tool_unref(NULL);
}

static void a_copy_is_equal_and_apart(void **state)
{
	(void)state;
	struct tool *tool = sample();
	auto_tool struct tool *copy = tool_copy(tool);
	assert_ptr_not_equal(copy->name, tool->name);
	tool_unref(tool);
	assert_string_equal(copy->name, "t");
	assert_string_equal(copy->dir, "/s/d");
	assert_string_equal(copy->entry, "index.sh");
	assert_int_equal(copy->version, 3);
	assert_int_equal(copy->timeout_ms, 5);
	assert_int_equal(copy->language, LANGUAGE_BASH);
	assert_int_equal(copy->input_count, 2);
	assert_string_equal(copy->inputs[0].values[0], "x");
	assert_string_equal(json_string_value(copy->inputs[0].default_value), "x");
	assert_true(copy->inputs[0].optional);
	assert_true(copy->inputs[1].sensitive);
	assert_null(copy->inputs[1].default_value);
}

static void an_empty_tool_can_be_copied_and_freed(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_new();
	auto_tool struct tool *copy = tool_copy(tool);
	assert_null(copy->name);
}

static void inputs_are_found_by_name(void **state)
{
	(void)state;
	auto_tool struct tool *tool = sample();
	assert_ptr_equal(tool_find_input(tool, "b"), &tool->inputs[1]);
	assert_null(tool_find_input(tool, "c"));
}

static void names_of_languages_and_types(void **state)
{
	(void)state;
	assert_string_equal(language_name(LANGUAGE_TYPESCRIPT), "typescript");
	assert_string_equal(language_name(LANGUAGE_PYTHON), "python");
	assert_string_equal(language_name(LANGUAGE_BASH), "bash");
	assert_string_equal(input_type_name(INPUT_STRING), "string");
	assert_string_equal(input_type_name(INPUT_NUMBER), "number");
	assert_string_equal(input_type_name(INPUT_BOOLEAN), "boolean");
	assert_string_equal(input_type_name(INPUT_ENUM), "enum");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tool_lives_as_long_as_its_last_reference),
		cmocka_unit_test(a_copy_is_equal_and_apart),
		cmocka_unit_test(an_empty_tool_can_be_copied_and_freed),
		cmocka_unit_test(inputs_are_found_by_name),
		cmocka_unit_test(names_of_languages_and_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
