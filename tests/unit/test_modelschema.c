#include "core/tools/jsontext.h"
#include "core/tools/modelschema.h"
#include "tests/unit/golden.h"

static struct tool *tool_of(const char *inputs)
{
	auto_json json_t *tool = json_pack("{s:o}", "inputs", json_loads(inputs, 0, NULL));
	return tooljson_read(tool);
}

static void check(enum modelapi api, const char *inputs, const char *wanted)
{
	auto_tool struct tool *tool = tool_of(inputs);
	auto_json json_t *schema = modelschema_build(api, tool);
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	if (schema)
		jsontext_append(&text, schema, JSONTEXT_COMPACT);
	assert_string_equal(buf_str(&text), wanted);
}

#define KINDS                                                                                      \
	"[{\"name\":\"a\"},{\"name\":\"n\",\"type\":\"number\",\"default\":7},"                    \
	"{\"name\":\"e\",\"type\":\"enum\",\"values\":[\"x\",\"y\"],\"optional\":true,"            \
	"\"description\":\"Which.\"}]"

static void openai_requires_every_key_and_takes_null_for_none(void **state)
{
	(void)state;
	check(MODELAPI_OPENAI, KINDS,
		"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},"
		"\"n\":{\"type\":[\"number\",\"null\"],\"description\":\"(default: 7)\"},"
		"\"e\":{\"type\":[\"string\",\"null\"],\"enum\":[\"x\",\"y\",null],"
		"\"description\":\"Which.\"}},\"required\":[\"a\",\"n\",\"e\"],"
		"\"additionalProperties\":false}");
}

static void gemini_has_its_own_types_and_no_empty_object(void **state)
{
	(void)state;
	check(MODELAPI_GEMINI, KINDS,
		"{\"type\":\"OBJECT\",\"properties\":{\"a\":{\"type\":\"STRING\"},"
		"\"n\":{\"type\":\"NUMBER\",\"description\":\"(default: 7)\"},"
		"\"e\":{\"type\":\"STRING\",\"format\":\"enum\",\"enum\":[\"x\",\"y\"],"
		"\"description\":\"Which.\"}},\"required\":[\"a\"],"
		"\"propertyOrdering\":[\"a\",\"n\",\"e\"]}");
	check(MODELAPI_GEMINI, "[]", "");
	check(MODELAPI_GEMINI, "[{\"name\":\"a b\",\"optional\":true}]", "");
}

static void others_have_the_schema_without_what_they_refuse(void **state)
{
	(void)state;
	const char *inputs =
		"[{\"name\":\"a b\",\"default\":\"x\"},{\"name\":\"c\",\"optional\":true}]";
	check(MODELAPI_ANTHROPIC, inputs,
		"{\"type\":\"object\",\"properties\":{\"c\":{\"type\":\"string\"}}}");
	check(MODELAPI_MCP, inputs,
		"{\"type\":\"object\",\"properties\":{\"a b\":{\"type\":\"string\",\"default\":\"x\"},"
		"\"c\":{\"type\":\"string\"}},\"required\":[\"a b\"]}");
}

static void only_what_is_required_is_an_obstacle(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of(
		"[{\"name\":\"a b\",\"optional\":true},{\"name\":\"c d\",\"default\":\"x\"},{\"name\":\"e f\"}]");
	assert_ptr_equal(modelschema_obstacle(MODELAPI_GEMINI, tool), &tool->inputs[2]);
	assert_null(modelschema_obstacle(MODELAPI_OPENAI, tool));
	tool->inputs[2].optional = true;
	assert_null(modelschema_obstacle(MODELAPI_GEMINI, tool));
}

static void a_sensitive_default_stays_a_secret(void **state)
{
	(void)state;
	auto_tool struct tool *tool =
		tool_of("[{\"name\":\"t\",\"sensitive\":true,\"default\":\"hunter2\"}]");
	for (int api = 0; api < MODELAPIS; api++) {
		auto_json json_t *schema = modelschema_build((enum modelapi)api, tool);
		auto_free char *text = json_dumps(schema, JSON_COMPACT);
		assert_null(strstr(text, "hunter2"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openai_requires_every_key_and_takes_null_for_none),
		cmocka_unit_test(gemini_has_its_own_types_and_no_empty_object),
		cmocka_unit_test(others_have_the_schema_without_what_they_refuse),
		cmocka_unit_test(only_what_is_required_is_an_obstacle),
		cmocka_unit_test(a_sensitive_default_stays_a_secret),
	};
	return cmocka_run_group_tests_name("modelschema", tests, NULL, NULL);
}
