#include <errno.h>

#include "core/tools/formats.h"
#include "tests/unit/golden.h"

static struct tool *tool_of(const char *json)
{
	auto_json json_t *given = json_loads(json, 0, NULL);
	assert_non_null(given);
	return tooljson_read(given);
}

static void no_tools_give_an_empty_list(void **state)
{
	(void)state;
	for (int api = 0; api < MODELAPIS; api++) {
		auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
		assert_int_equal(formats_render((enum modelapi)api, NULL, 0, &text), 0);
		assert_string_equal(
			buf_str(&text), api == MODELAPI_MCP ? "{\n  \"tools\": []\n}\n" : "[]\n");
	}
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	assert_int_equal(formats_names(NULL, 0, &text), 0);
	assert_string_equal(buf_str(&text), "{}\n");
	buf_reset(&text);
	assert_int_equal(formats_notes(NULL, 0, &text), 0);
	assert_string_equal(buf_str(&text), "");
}

static void each_name_leads_to_its_tool_and_the_notes_tell_what_is_other(void **state)
{
	(void)state;
	struct tool *tools[3] = {
		tool_of("{\"name\":\"a.b\",\"label\":\"A\",\"description\":\"Dotted.\"}"),
		tool_of("{\"name\":\"hello\",\"label\":\"Hello\",\"description\":\"Greets.\"}"),
		tool_of("{\"name\":\"odd\",\"label\":\"Odd\",\"description\":\"Odd.\","
			"\"inputs\":[{\"name\":\"a b\"}]}"),
	};
	tools[0]->id = 1;
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	assert_int_equal(formats_names(tools, 3, &text), 0);
	assert_string_equal(buf_str(&text),
		"{\n  \"a_b_00000001\": \"a.b\",\n  \"a.b\": \"a.b\",\n  \"hello\": \"hello\",\n"
		"  \"odd\": \"odd\"\n}\n");
	buf_reset(&text);
	assert_int_equal(formats_notes(tools, 3, &text), 0);
	assert_non_null(strstr(buf_str(&text), "gemini.json: 'a.b' is called 'a_b_00000001'"));
	assert_non_null(strstr(buf_str(&text), "anthropic.json: 'odd' is left out"));
	assert_null(strstr(buf_str(&text), "mcp.json"));
	assert_null(strstr(buf_str(&text), "hello"));
	buf_reset(&text);
	assert_int_equal(formats_render(MODELAPI_GEMINI, tools + 2, 1, &text), 0);
	assert_string_equal(buf_str(&text), "[]\n");
	for (size_t i = 0; i < 3; i++)
		tool_unref(tools[i]);
}

static void a_full_buffer_is_an_error(void **state)
{
	(void)state;
	struct tool *tool =
		tool_of("{\"name\":\"hello\",\"label\":\"Hello\",\"description\":\"Greets.\"}");
	for (int api = 0; api < MODELAPIS; api++) {
		auto_buf struct buf text = BUF_INIT(16);
		assert_int_equal(formats_render((enum modelapi)api, &tool, 1, &text), -EFBIG);
	}
	tool_unref(tool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_tools_give_an_empty_list),
		cmocka_unit_test(each_name_leads_to_its_tool_and_the_notes_tell_what_is_other),
		cmocka_unit_test(a_full_buffer_is_an_error),
	};
	return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
