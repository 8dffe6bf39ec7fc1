#include "core/tools/jsontext.h"
#include "core/tools/result.h"
#include "tests/unit/golden.h"

static struct result from_json(const char *json)
{
	struct result result = RESULT_INIT;
	auto_json json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	assert_non_null(value);
	result_from_value(&result, value);
	return result;
}

/* The JSON is one line that ends in a newline, and both texts are as long as they say. */
static void assert_whole(const struct result *result)
{
	assert_int_equal(result->json[result->json_len - 1], '\n');
	assert_null(memchr(result->json, '\n', result->json_len - 1));
	assert_int_equal(result->json[result->json_len], '\0');
	assert_int_equal(result->text[result->text_len], '\0');
	if (result->text_len > 0)
		assert_int_equal(result->text[result->text_len - 1], '\n');
}

static void assert_result(struct result result, bool is_error, const char *json, const char *text)
{
	assert_whole(&result);
	assert_int_equal(result.is_error, is_error);
	assert_string_equal(result.json, json);
	assert_string_equal(result.text, text);
	result_release(&result);
}

/* A file of rows: {"name", "value", "json", "text", "is_error"}. */
static void r38_a17_a18_each_value_becomes_what_the_table_says(void **state)
{
	(void)state;
	auto_json json_t *rows = golden_json("result/table.json");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		struct result result = RESULT_INIT;
		result_from_value(&result, json_object_get(row, "value"));
		assert_whole(&result);
		auto_buf struct buf wanted = BUF_INIT(GOLDEN_SIZE_MAX);
		jsontext_append(&wanted, json_object_get(row, "json"), JSONTEXT_COMPACT);
		buf_putc(&wanted, '\n');
		const char *text = json_string_value(json_object_get(row, "text"));
		bool is_error = json_is_true(json_object_get(row, "is_error"));
		if (strcmp(result.json, buf_str(&wanted)) != 0 || strcmp(result.text, text) != 0 ||
			result.is_error != is_error)
			fail_msg("%s: got\n%s%s%s", json_string_value(json_object_get(row, "name")),
				result.json, result.text, result.is_error ? "(an error)" : "");
		result_release(&result);
	}
}

static void a17_undefined_is_an_error(void **state)
{
	(void)state;
	struct result result = RESULT_INIT;
	result_from_value(&result, NULL);
	assert_result(result, true,
		"{\"content\":[{\"type\":\"text\",\"text\":\"the tool returned nothing (undefined); "
		"execute must return { content: [{ type: 'text', text: '...' }] }\"}],"
		"\"isError\":true}\n",
		"the tool returned nothing (undefined); execute must return "
		"{ content: [{ type: 'text', text: '...' }] }\n");
}

static void r38_a_result_is_kept_as_it_is(void **state)
{
	(void)state;
	static const char json[] = "{\"details\":{\"n\":0.1},\"content\":[{\"text\":\"a\",\"type\":"
				   "\"text\"},{\"type\":\"text\",\"text\":\"b\",\"x\":null}],"
				   "\"isError\":false}\n";
	assert_result(from_json(json), false, json, "a\nb\n");
}

static void real_numbers_are_written_as_in_javascript(void **state)
{
	(void)state;
	assert_result(from_json("{\"content\":[],\"details\":[1.0,0.1,1e21,19.99,-0.0]}"), false,
		"{\"content\":[],\"details\":[1,0.1,1e+21,19.99,0]}\n", "");
}

static void nul_characters_in_a_text_are_kept(void **state)
{
	(void)state;
	struct result result =
		from_json("{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000b\"}]}");
	assert_int_equal(result.text_len, 4);
	assert_memory_equal(result.text, "a\0b\n", 4);
	assert_string_equal(
		result.json, "{\"content\":[{\"type\":\"text\",\"text\":\"a\\u0000b\"}]}\n");
	result_release(&result);
}

static void huge_texts_are_kept_whole(void **state)
{
	(void)state;
	size_t len = 20UL * 1024 * 1024;
	auto_free char *text = malloc(len);
	assert_non_null(text);
	memset(text, 'x', len);
	auto_json json_t *value = json_pack(
		"{s:[{s:s,s:o}]}", "content", "type", "text", "text", json_stringn(text, len));
	struct result result = RESULT_INIT;
	result_from_value(&result, value);
	assert_int_equal(result.text_len, len + 1);
	assert_false(result.is_error);
	result_release(&result);
	auto_json json_t *foreign = json_stringn(text, len);
	result_from_value(&result, foreign);
	assert_true(result.is_error && result.text_len > len);
	result_release(&result);
}

static void an_error_has_its_sentence_as_its_text(void **state)
{
	(void)state;
	struct result result = RESULT_INIT;
	result_from_error(&result, "input '%s': %d\nsecond line", "a\"b", 7);
	assert_result(result, true,
		"{\"content\":[{\"type\":\"text\",\"text\":\"input 'a\\\"b': 7\\nsecond line\"}],"
		"\"isError\":true}\n",
		"input 'a\"b': 7\nsecond line\n");
}

static void bytes_of_an_error_that_are_no_utf8_are_replaced(void **state)
{
	(void)state;
	struct result result = RESULT_INIT;
	result_from_error(&result, "file '%s'", "\xff\xc3.txt");
	assert_result(result, true,
		"{\"content\":[{\"type\":\"text\",\"text\":\"file '\xef\xbf\xbd\xef\xbf\xbd.txt'\"}],"
		"\"isError\":true}\n",
		"file '\xef\xbf\xbd\xef\xbf\xbd.txt'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r38_a17_a18_each_value_becomes_what_the_table_says),
		cmocka_unit_test(a17_undefined_is_an_error),
		cmocka_unit_test(r38_a_result_is_kept_as_it_is),
		cmocka_unit_test(real_numbers_are_written_as_in_javascript),
		cmocka_unit_test(nul_characters_in_a_text_are_kept),
		cmocka_unit_test(huge_texts_are_kept_whole),
		cmocka_unit_test(an_error_has_its_sentence_as_its_text),
		cmocka_unit_test(bytes_of_an_error_that_are_no_utf8_are_replaced),
	};
	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
