#include "core/cmd/callrequest.h"
#include "tests/unit/scratch.h"

#define WORDS_MAX 4
#define REQUEST_MAX 4096

static int read_words(const char *const words[WORDS_MAX], struct buf *out, struct fail *why)
{
	char copies[WORDS_MAX][256], *list[WORDS_MAX + 1] = { NULL };
	int count = 0;
	for (; count < WORDS_MAX && words[count]; count++) {
		strcpy(copies[count], words[count]);
		list[count] = copies[count];
	}
	return callrequest_read(list, count, out, why);
}

static void check(const char *const words[WORDS_MAX], const char *expected)
{
	struct buf out = BUF_INIT(REQUEST_MAX);
	struct fail why = FAIL_INIT;
	assert_int_equal(read_words(words, &out, &why), 0);
	assert_string_equal(buf_str(&out), expected);
	buf_release(&out);
}

static void check_refused(const char *const words[WORDS_MAX], const char *told)
{
	struct buf out = BUF_INIT(REQUEST_MAX);
	struct fail why = FAIL_INIT;
	assert_int_equal(read_words(words, &out, &why), -EINVAL);
	assert_non_null(strstr(why.text, told));
	assert_null(strstr(why.text, "s3cret"));
	buf_release(&out);
}

#define WORDS(...)                                                                                 \
	(const char *const[WORDS_MAX])                                                             \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void no_words_are_an_empty_request(void **state)
{
	(void)state;
	check(WORDS(NULL), "{}");
}

static void key_and_value_part_at_the_first_equals(void **state)
{
	(void)state;
	check(WORDS("a=1", "b=", "c==x=y"), "{\"a\":\"1\",\"b\":\"\",\"c\":\"=x=y\"}");
	check(WORDS("a={\"x\": 1}"), "{\"a\":\"{\\\"x\\\": 1}\"}");
}

static void json_is_handed_on_as_it_is(void **state)
{
	(void)state;
	check(WORDS(" {\"a\": 1.0}\n"), " {\"a\": 1.0}\n");
}

static void what_is_neither_is_refused_and_not_told(void **state)
{
	(void)state;
	check_refused(WORDS("s3cret"), "word 1");
	check_refused(WORDS("a=1", "s3cret"), "word 2");
	check_refused(WORDS("=s3cret"), "word 1");
	check_refused(WORDS("a=1", "{\"s3cret\":1}"), "JSON must be the only one");
	check_refused(WORDS("a=1", "a=s3cret"), "'a' is given twice");
	check_refused(WORDS("a=s3cret\xff"), "byte 9");
}

static void half_an_object_is_refused(void **state)
{
	(void)state;
	check_refused(WORDS("{\"a\""), "line 1");
	check_refused(WORDS("{} {}"), "line 1");
}

static void a_request_has_its_limit(void **state)
{
	(void)state;
	struct buf out = BUF_INIT(8);
	struct fail why = FAIL_INIT;
	assert_int_equal(read_words(WORDS("abc=defgh"), &out, &why), -EFBIG);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_words_are_an_empty_request),
		cmocka_unit_test(key_and_value_part_at_the_first_equals),
		cmocka_unit_test(json_is_handed_on_as_it_is),
		cmocka_unit_test(what_is_neither_is_refused_and_not_told),
		cmocka_unit_test(half_an_object_is_refused),
		cmocka_unit_test(a_request_has_its_limit),
	};
	return cmocka_run_group_tests_name("callrequest", tests, NULL, NULL);
}
