#include <errno.h>

#include "core/tools/jsontext.h"
#include "tests/unit/golden.h"

static void check(const char *json, int indent, const char *wanted)
{
	auto_json json_t *value = json_loads(json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	auto_buf struct buf text = BUF_INIT(GOLDEN_SIZE_MAX);
	assert_non_null(value);
	assert_int_equal(jsontext_append(&text, value, indent), 0);
	assert_string_equal(buf_str(&text), wanted);
}

static void compact_text_is_what_json_stringify_writes(void **state)
{
	(void)state;
	check("{\"b\" : [1.0, 0.1, -0.0, 1e21, 7], \"a\":{}, \"c\":[], \"d\":null, \"e\":[true,false]}",
		JSONTEXT_COMPACT,
		"{\"b\":[1,0.1,0,1e+21,7],\"a\":{},\"c\":[],\"d\":null,\"e\":[true,false]}");
	check("\"a\\n\\u0000\\\"\\\\ \xc3\xa9/\"", JSONTEXT_COMPACT,
		"\"a\\n\\u0000\\\"\\\\ \xc3\xa9/\"");
	check("{\"a\\\"\\n\":1}", JSONTEXT_COMPACT, "{\"a\\\"\\n\":1}");
}

static void pretty_text_is_indented(void **state)
{
	(void)state;
	check("{\"a\":[1,{\"b\":[]}],\"c\":{}}", JSONTEXT_PRETTY,
		"{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
}

static void too_large_a_text_is_refused(void **state)
{
	(void)state;
	auto_json json_t *value = json_string("0123456789");
	auto_buf struct buf text = BUF_INIT(8);
	assert_int_equal(jsontext_append(&text, value, JSONTEXT_COMPACT), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compact_text_is_what_json_stringify_writes),
		cmocka_unit_test(pretty_text_is_indented),
		cmocka_unit_test(too_large_a_text_is_refused),
	};
	return cmocka_run_group_tests_name("jsontext", tests, NULL, NULL);
}
