#include <errno.h>

#include "core/tools/jsontext.h"
#include "core/tools/params.h"
#include "tests/unit/golden.h"

static json_t *parse(const char *text, struct fail *why)
{
	return params_parse(text, strlen(text), why);
}

/* Fails unless got is the parameters of the case, in their order, or its error is the case's. */
static void assert_outcome(const json_t *row, const json_t *got, const struct fail *why)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *error = json_string_value(json_object_get(row, "error"));
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	auto_buf struct buf wanted = BUF_INIT(GOLDEN_SIZE_MAX);
	if (got)
		jsontext_append(&text, got, JSONTEXT_COMPACT);
	else
		buf_puts(&text, why->text);
	if (error)
		buf_puts(&wanted, error);
	else
		jsontext_append(&wanted, json_object_get(row, "params"), JSONTEXT_COMPACT);
	if (strcmp(buf_str(&text), buf_str(&wanted)) != 0)
		fail_msg("%s: expected\n%s\nbut got\n%s", name, buf_str(&wanted), buf_str(&text));
	assert_int_equal(why->code, error ? -EINVAL : 0);
}

static void t6_each_text_is_read_or_refused_as_the_file_says(void **state)
{
	(void)state;
	auto_json json_t *rows = golden_json("params/parse.json");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const json_t *text = json_object_get(row, "text");
		struct fail why = FAIL_INIT;
		auto_json json_t *got =
			params_parse(json_string_value(text), json_string_length(text), &why);
		assert_outcome(row, got, &why);
		assert_null(strstr(why.text, "secret"));
	}
}

static void t6_bytes_that_are_no_utf8_are_refused_with_their_place(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_null(parse("{\"a\":\"\xff\"}", &why));
	assert_non_null(strstr(why.text, "line 1, column 6"));
	assert_non_null(strstr(why.text, "not UTF-8"));
}

static char *nested(size_t depth)
{
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	buf_puts(&text, "{\"a\":");
	for (size_t i = 1; i < depth; i++)
		buf_putc(&text, '[');
	for (size_t i = 1; i < depth; i++)
		buf_putc(&text, ']');
	buf_putc(&text, '}');
	return buf_take(&text);
}

static void t6_deep_nesting_is_refused_with_its_place(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	auto_free char *allowed = nested(PARAMS_DEPTH_MAX);
	auto_json json_t *request = parse(allowed, &why);
	assert_non_null(request);
	for (size_t depth = PARAMS_DEPTH_MAX + 1; depth < 100000; depth *= 10) {
		auto_free char *deep = nested(depth);
		fail_clear(&why);
		assert_null(parse(deep, &why));
		assert_string_equal(why.text, "the request is no valid JSON at line 1, column 517: "
					      "nested deeper than 512 levels; flatten it");
	}
	auto_free char *number = xasprintf("%d", PARAMS_DEPTH_MAX);
	assert_string_equal(number, PARAMS_DEPTH_TEXT);
}

static void brackets_in_strings_are_no_nesting(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	buf_puts(&text, "{\"a\":\"\\\"");
	for (size_t i = 0; i < 2000; i++)
		buf_putc(&text, '[');
	buf_puts(&text, "\"}");
	struct fail why = FAIL_INIT;
	auto_json json_t *request = params_parse(text.data, text.len, &why);
	assert_non_null(request);
}

static void r40_a_large_text_arrives_whole(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	buf_puts(&text, "{\"a\":\"");
	for (size_t i = 0; i < 1024 * 1024; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\"}");
	struct fail why = FAIL_INIT;
	auto_json json_t *request = params_parse(text.data, text.len, &why);
	assert_int_equal(json_string_length(json_object_get(request, "a")), 1024 * 1024);
}

static void r22_to_r31_each_request_is_completed_or_refused_as_the_file_says(void **state)
{
	(void)state;
	auto_json json_t *cases = golden_json("params/check.json");
	auto_tool struct tool *tool = tooljson_read(json_object_get(cases, "tool"));
	const json_t *rows = json_object_get(cases, "requests");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *warnings = json_string_value(json_object_get(row, "warnings"));
		struct fail why = FAIL_INIT;
		auto_buf struct buf got_warnings = BUF_INIT(PARAMS_TEXT_MAX);
		auto_json json_t *got =
			params_check(tool, json_object_get(row, "request"), &got_warnings, &why);
		assert_outcome(row, got, &why);
		if (got)
			assert_string_equal(buf_str(&got_warnings), warnings ? warnings : "");
	}
}

static struct tool *tool_of(const char *inputs)
{
	auto_json json_t *json = json_pack("{s:o}", "inputs", json_loads(inputs, 0, NULL));
	return tooljson_read(json);
}

/* The text that a request leaves: its error or its warnings. */
static struct buf text_of(const struct tool *tool, json_t *request)
{
	struct fail why = FAIL_INIT;
	struct buf text = BUF_INIT(PARAMS_TEXT_MAX);
	json_decref(params_check(tool, request, &text, &why));
	buf_puts(&text, why.text);
	return text;
}

static void r28_a_required_input_must_be_given(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[{\"name\":\"a\"}]");
	auto_json json_t *request = json_object();
	auto_buf struct buf text = text_of(tool, request);
	assert_non_null(strstr(buf_str(&text), "a: missing, expected a string"));
}

static void r29_a21_no_text_holds_a_secret(void **state)
{
	(void)state;
	static const char *const types[] = { "string", "number", "boolean", "enum" };
	static const char *const requests[] = { "{\"api_token\":\"s3cret\"}",
		"{\"api_token\":[\"s3cret\"]}", "{\"api_tokne\":\"s3cret\"}", "{\"x\":\"s3cret\"}",
		"{\"x\":{\"s3cret\":1}}", "{\"token\":[\"s3cret\"]}" };
	for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
		auto_free char *inputs =
			xasprintf("[{\"name\":\"api_token\",\"type\":\"%s\",\"sensitive\":true,"
				  "\"values\":[\"a\"]}]",
				types[t]);
		auto_tool struct tool *tool = tool_of(inputs);
		for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
			auto_json json_t *request = json_loads(requests[i], 0, NULL);
			auto_buf struct buf text = text_of(tool, request);
			assert_null(strstr(buf_str(&text), "s3cret"));
		}
	}
}

static void r29_a_sensitive_default_reaches_the_tool_and_no_text(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of(
		"[{\"name\":\"t\",\"sensitive\":true,\"default\":\"s3cret\"},{\"name\":\"u\"}]");
	auto_json json_t *request = json_pack("{s:s}", "u", "x");
	struct fail why = FAIL_INIT;
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *params = params_check(tool, request, &warnings, &why);
	assert_string_equal(json_string_value(json_object_get(params, "t")), "s3cret");
	auto_json json_t *redacted = params_redact(tool, params);
	assert_string_equal(json_string_value(json_object_get(redacted, "t")), "[sensitive]");
}

static void r30_a_long_list_of_values_is_cut(void **state)
{
	(void)state;
	auto_buf struct buf inputs = BUF_INIT(GOLDEN_SIZE_MAX);
	buf_puts(&inputs, "[{\"name\":\"m\",\"type\":\"enum\",\"values\":[\"value-0\"");
	for (int i = 1; i < 5000; i++)
		buf_printf(&inputs, ",\"value-%d\"", i);
	buf_puts(&inputs, "]}]");
	auto_tool struct tool *tool = tool_of(buf_str(&inputs));
	auto_json json_t *request = json_pack("{s:s}", "m", "?");
	auto_buf struct buf text = text_of(tool, request);
	assert_non_null(
		strstr(buf_str(&text), "\"value-19\", ... (5000 in all), got the string \"?\""));
	assert_true(text.len < 1024);
}

static void many_faults_are_counted_and_the_text_is_whole_lines(void **state)
{
	(void)state;
	auto_buf struct buf inputs = BUF_INIT(GOLDEN_SIZE_MAX);
	buf_puts(&inputs, "[{\"name\":\"input_0\"}");
	for (int i = 1; i < 200; i++)
		buf_printf(&inputs, ",{\"name\":\"input_%d\",\"description\":\"Number %d\"}", i, i);
	buf_putc(&inputs, ']');
	auto_tool struct tool *tool = tool_of(buf_str(&inputs));
	auto_json json_t *request = json_object();
	auto_buf struct buf text = text_of(tool, request);
	assert_memory_equal(buf_str(&text), "200 parameters do not fit", 25);
	const char *last = strstr(buf_str(&text), "  and ");
	assert_non_null(last);
	assert_int_equal(last[-1], '\n');
	assert_non_null(strstr(last, " more\n"));
}

static void a10_many_unknown_parameters_pass_and_are_counted(void **state)
{
	(void)state;
	auto_tool struct tool *tool =
		tool_of("[{\"name\":\"key\",\"sensitive\":true,\"optional\":true}]");
	auto_json json_t *request = json_object();
	for (int i = 0; i < 20000; i++) {
		auto_free char *name = xasprintf("unknown_%d", i);
		json_object_set_new(request, name, json_integer(i));
	}
	struct fail why = FAIL_INIT;
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *params = params_check(tool, request, &warnings, &why);
	assert_int_equal(json_object_size(params), 20000);
	assert_non_null(strstr(buf_str(&warnings), "19980 more unknown parameters"));
	/* Nobody compares so many names with the secret one: those that were not count as secret. */
	auto_json json_t *redacted = params_redact(tool, params);
	assert_int_equal(json_integer_value(json_object_get(redacted, "unknown_19")), 19);
	assert_string_equal(
		json_string_value(json_object_get(redacted, "unknown_20")), "[sensitive]");
}

static void r29_redact_hides_sensitive_values_and_their_misspellings(void **state)
{
	(void)state;
	auto_tool struct tool *tool =
		tool_of("[{\"name\":\"query\"},{\"name\":\"api_token\",\"sensitive\":true}]");
	auto_json json_t *params = json_loads("{\"query\":\"q\",\"api_token\":{\"a\":1},"
					      "\"apiToken\":\"s3cret\",\"other\":[1]}",
		0, NULL);
	auto_json json_t *redacted = params_redact(tool, params);
	auto_free char *text = json_dumps(redacted, JSON_COMPACT);
	assert_string_equal(text, "{\"query\":\"q\",\"api_token\":\"[sensitive]\","
				  "\"apiToken\":\"[sensitive]\",\"other\":[1]}");
	auto_free char *before = json_dumps(params, JSON_COMPACT);
	assert_non_null(strstr(before, "s3cret"));
}

static void the_request_itself_is_not_changed(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[{\"name\":\"n\",\"type\":\"number\"},"
					      "{\"name\":\"d\",\"default\":\"x\"}]");
	auto_json json_t *request = json_pack("{s:s,s:n}", "n", "5", "d");
	auto_json json_t *before = json_deep_copy(request);
	auto_buf struct buf text = text_of(tool, request);
	assert_int_equal(text.len, 0);
	assert_true(json_equal(request, before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t6_each_text_is_read_or_refused_as_the_file_says),
		cmocka_unit_test(t6_bytes_that_are_no_utf8_are_refused_with_their_place),
		cmocka_unit_test(t6_deep_nesting_is_refused_with_its_place),
		cmocka_unit_test(brackets_in_strings_are_no_nesting),
		cmocka_unit_test(r40_a_large_text_arrives_whole),
		cmocka_unit_test(r22_to_r31_each_request_is_completed_or_refused_as_the_file_says),
		cmocka_unit_test(r28_a_required_input_must_be_given),
		cmocka_unit_test(r29_a21_no_text_holds_a_secret),
		cmocka_unit_test(r29_a_sensitive_default_reaches_the_tool_and_no_text),
		cmocka_unit_test(r30_a_long_list_of_values_is_cut),
		cmocka_unit_test(many_faults_are_counted_and_the_text_is_whole_lines),
		cmocka_unit_test(a10_many_unknown_parameters_pass_and_are_counted),
		cmocka_unit_test(r29_redact_hides_sensitive_values_and_their_misspellings),
		cmocka_unit_test(the_request_itself_is_not_changed),
	};
	return cmocka_run_group_tests_name("params", tests, NULL, NULL);
}
