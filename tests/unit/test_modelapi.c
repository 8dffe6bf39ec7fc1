#include "core/tools/modelapi.h"
#include "tests/unit/golden.h"

static struct tool *named(const char *name, uint32_t id)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->id = id;
	return tool;
}

static void each_api_takes_the_names_that_it_publishes(void **state)
{
	(void)state;
	char name[130];
	memset(name, 'n', 129);
	name[64] = '\0';
	for (int api = 0; api < MODELAPIS; api++) {
		assert_true(modelapi_takes_tool_name((enum modelapi)api, "my_db-2"));
		assert_true(modelapi_takes_tool_name((enum modelapi)api, name));
		assert_false(modelapi_takes_tool_name((enum modelapi)api, ""));
		assert_false(modelapi_takes_tool_name((enum modelapi)api, "a b"));
		assert_false(modelapi_takes_tool_name((enum modelapi)api, "gr\xc3\xb6\xc3\x9f"));
		assert_true(modelapi_takes_input_name((enum modelapi)api, "page_url"));
	}
	name[64] = 'n';
	name[65] = '\0';
	assert_false(modelapi_takes_tool_name(MODELAPI_ANTHROPIC, name));
	assert_true(modelapi_takes_tool_name(MODELAPI_MCP, name));
	name[65] = 'n';
	name[129] = '\0';
	assert_false(modelapi_takes_tool_name(MODELAPI_MCP, name));
	assert_true(modelapi_takes_tool_name(MODELAPI_OPENAI, "1st"));
	assert_false(modelapi_takes_tool_name(MODELAPI_GEMINI, "1st"));
	assert_true(modelapi_takes_tool_name(MODELAPI_MCP, "a.b"));
	assert_false(modelapi_takes_tool_name(MODELAPI_OPENAI, "a.b"));
	assert_true(modelapi_takes_input_name(MODELAPI_ANTHROPIC, "a.b-c"));
	assert_false(modelapi_takes_input_name(MODELAPI_GEMINI, "a.b-c"));
	assert_true(modelapi_takes_input_name(MODELAPI_OPENAI, "any key!"));
	assert_false(modelapi_takes_input_name(MODELAPI_ANTHROPIC, "any key!"));
}

static void assert_made(const char *from, const char *wanted)
{
	auto_tool struct tool *tool = named(from, 0xab);
	char name[MODELAPI_NAME_SIZE];
	modelapi_make_name(tool, NULL, 0, name);
	assert_string_equal(name, wanted);
	for (int api = 0; api < MODELAPIS; api++)
		assert_true(modelapi_takes_tool_name((enum modelapi)api, name));
}

static void a_made_name_keeps_what_can_stay(void **state)
{
	(void)state;
	assert_made("it's awkward/*", "it_s_awkward__000000ab");
	assert_made("1st", "_1st_000000ab");
	assert_made("-dash", "_-dash_000000ab");
	assert_made("\xe6\x97\xa5\xe6\x9c\xac", "__000000ab");
	assert_made("a..b", "a_b_000000ab");
	char longest[TOOL_NAME_MAX + 1] = { 0 };
	memset(longest, 'n', TOOL_NAME_MAX);
	assert_made(longest, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_000000ab");
}

static void a_made_name_is_that_of_no_other_tool(void **state)
{
	(void)state;
	struct tool *tools[3] = { named("a.b", 0xffffffff), named("a_b_00000000", 2),
		named("a_b_ffffffff", 3) };
	char name[MODELAPI_NAME_SIZE];
	modelapi_make_name(tools[0], tools, 3, name);
	assert_string_equal(name, "a_b_00000001");
	for (size_t i = 0; i < 3; i++)
		tool_unref(tools[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_api_takes_the_names_that_it_publishes),
		cmocka_unit_test(a_made_name_keeps_what_can_stay),
		cmocka_unit_test(a_made_name_is_that_of_no_other_tool),
	};
	return cmocka_run_group_tests_name("modelapi", tests, NULL, NULL);
}
