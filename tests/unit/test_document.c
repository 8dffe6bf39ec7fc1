#include <errno.h>

#include "core/tools/document.h"
#include "tests/unit/golden.h"

#define SIZE_LIMIT 4096

/* A literal with its NULs, without the compiler's. */
#define BYTES(literal) literal, sizeof(literal) - 1

/* Adds the bytes in pieces of `step`; returns the result of the write that failed, or 0. */
static int feed(
	struct document *document, const char *bytes, size_t len, size_t step, struct fail *why)
{
	for (size_t at = 0; at < len; at += step) {
		size_t size = len - at < step ? len - at : step;
		if (document_add(document, bytes + at, size, why) < 0)
			return why->code;
	}
	return 0;
}

/* Fails unless the bytes are complete with the last one and not before, however they are divided. */
static void assert_complete(const char *bytes, size_t len)
{
	for (size_t step = 1; step <= len; step++) {
		struct fail why = FAIL_INIT;
		struct document document;
		document_init(&document, SIZE_LIMIT);
		assert_int_equal(feed(&document, bytes, len - 1, step, &why), 0);
		assert_int_not_equal(document.state, DOCUMENT_COMPLETE);
		assert_int_equal(document_add(&document, bytes + len - 1, 1, &why), 0);
		assert_int_equal(document.state, DOCUMENT_COMPLETE);
		document_release(&document);
	}
}

static int refuse(const char *bytes, size_t len, struct fail *why)
{
	int code = 0;
	for (size_t step = len; step >= 1; step--) {
		fail_clear(why);
		struct document document;
		document_init(&document, SIZE_LIMIT);
		int now = feed(&document, bytes, len, step, why);
		assert_true(code == 0 || now == code);
		code = now;
		document_release(&document);
	}
	assert_int_not_equal(code, 0);
	return code;
}

static void an_object_ends_with_its_brace(void **state)
{
	(void)state;
	assert_complete(BYTES("{}"));
	assert_complete(BYTES(" \t\r\n{\"a\":{\"b\":[1,{}]}}"));
	assert_complete(BYTES("\xef\xbb\xbf {\"a\":\"}\\\"}\\\\\"}"));
}

static void what_follows_an_object_is_refused_but_for_blanks(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	struct document document;
	document_init(&document, SIZE_LIMIT);
	assert_int_equal(document_add(&document, BYTES("{} \n\t"), &why), 0);
	document_release(&document);
	assert_int_equal(refuse(BYTES("{}{}"), &why), -EINVAL);
	assert_int_equal(refuse(BYTES("{}\0"), &why), -EINVAL);
}

static void h9_the_usage_text_fails_at_its_first_byte(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	struct document document;
	document_init(&document, SIZE_LIMIT);
	assert_int_equal(document_add(&document, "#", 1, &why), -EINVAL);
	assert_non_null(strstr(why.text, "begins with '{', not with '#'"));
	document_release(&document);
}

static void a_nul_is_no_part_of_json(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_int_equal(refuse(BYTES("{\"a\":\"\0\"}"), &why), -EINVAL);
	assert_int_equal(refuse(BYTES("\0{}"), &why), -EINVAL);
}

static void what_is_larger_than_the_limit_is_refused(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	char large[SIZE_LIMIT + 1];
	memset(large, ' ', sizeof(large));
	assert_int_equal(refuse(large, sizeof(large), &why), -EFBIG);
	assert_non_null(strstr(why.text, "limit of 4096 bytes"));
}

static void words_end_with_the_last_ones_nul(void **state)
{
	(void)state;
	assert_complete(BYTES("run\0"
			      "0\0./run\0"));
	assert_complete(BYTES("run\0"
			      "3\0hello/run\0--name\0\0{\0"));
	assert_complete(BYTES("run\0"
			      "0+\0./run\0{}\0end\0"));
	assert_complete(BYTES("run\0"
			      "1+\0./run\0--json\0\0cut\0"));
}

static void words_and_text_are_handed_on_as_they_came(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	struct document document;
	document_init(&document, SIZE_LIMIT);
	assert_int_equal(feed(&document,
				 BYTES("run\0"
				       "2+\0a b/run\0--json\0\0{\"a\":1}\n\0end\0"),
				 3, &why),
		0);
	assert_int_equal(document.kind, DOCUMENT_RUN);
	struct document_run run = document_get_run(&document);
	assert_string_equal(run.program, "a b/run");
	assert_int_equal(run.word_count, 2);
	assert_memory_equal(run.words, "--json\0", 8);
	assert_string_equal(run.text, "{\"a\":1}\n");
	assert_int_equal(run.text_len, 8);
	assert_false(run.text_is_cut);
	document_release(&document);
}

static void a_text_that_could_not_be_read_says_so(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	struct document document;
	document_init(&document, SIZE_LIMIT);
	assert_int_equal(document_add(&document,
				 BYTES("run\0"
				       "0+\0./run\0\0cut\0"),
				 &why),
		0);
	assert_true(document_get_run(&document).text_is_cut);
	assert_string_equal(document_get_run(&document).text, "");
	document_reset(&document);
	assert_int_equal(document.kind, DOCUMENT_JSON);
	assert_int_equal(document.state, DOCUMENT_EMPTY);
	document_release(&document);
}

static void a_nul_in_the_text_is_noticed_by_what_follows(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	static const struct {
		const char *bytes;
		size_t len;
	} texts[] = {
		{ BYTES("run\0"
			"0+\0./run\0{}\0\0end\0") },
		{ BYTES("run\0"
			"0+\0./run\0{}\0enough\0end\0") },
		{ BYTES("run\0"
			"0+\0./run\0{}\0en\0") },
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(refuse(texts[i].bytes, texts[i].len, &why), -EINVAL);
		assert_non_null(strstr(why.text, "standard input holds a NUL byte"));
	}
}

static void what_is_not_the_mark_is_meant_as_json(void **state)
{
	(void)state;
	static const char *const texts[] = { "run\n", "rubbish", "run it", "runs" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fail why = FAIL_INIT;
		struct document document;
		document_init(&document, SIZE_LIMIT);
		assert_int_equal(
			document_add(&document, texts[i], strlen(texts[i]), &why), -EINVAL);
		assert_non_null(strstr(why.text, "begins with '{', not with 'r'"));
		assert_int_equal(document.kind, DOCUMENT_JSON);
		document_release(&document);
	}
	struct fail why = FAIL_INIT;
	assert_int_equal(refuse(BYTES(" run\0"), &why), -EINVAL);
}

static void a_count_that_is_none_is_refused(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_int_equal(refuse(BYTES("run\0\0"), &why), -EINVAL);
	assert_int_equal(refuse(BYTES("run\0+\0"), &why), -EINVAL);
	assert_int_equal(refuse(BYTES("run\0-1\0"), &why), -EINVAL);
	assert_int_equal(refuse(BYTES("run\0"
				      "1+1\0"),
				 &why),
		-EINVAL);
	assert_int_equal(refuse(BYTES("run\0"
				      "1++\0"),
				 &why),
		-EINVAL);
	assert_int_equal(refuse(BYTES("run\0"
				      "4097\0"),
				 &why),
		-EINVAL);
	assert_non_null(strstr(why.text, "more than 4096 words"));
	assert_int_equal(refuse(BYTES("run\0"
				      "99999999999999999999999999\0"),
				 &why),
		-EINVAL);
}

/* Whoever wrote by `run` reads the answer of `run`, also where the request was refused. */
static void the_kind_is_known_after_an_error(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	struct document document;
	document_init(&document, 8);
	assert_int_equal(document_add(&document,
				 BYTES("run\0"
				       "0\0./run\0"),
				 &why),
		-EFBIG);
	assert_int_equal(document.kind, DOCUMENT_RUN);
	document_release(&document);
	document_init(&document, SIZE_LIMIT);
	fail_clear(&why);
	assert_int_equal(document_add(&document,
				 BYTES("run\0"
				       "5000\0"),
				 &why),
		-EINVAL);
	assert_int_equal(document.kind, DOCUMENT_RUN);
	document_release(&document);
}

static void what_follows_the_words_is_refused(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_int_equal(refuse(BYTES("run\0"
				      "0\0./run\0\n"),
				 &why),
		-EINVAL);
	assert_int_equal(refuse(BYTES("run\0"
				      "0\0./run\0\0"),
				 &why),
		-EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_object_ends_with_its_brace),
		cmocka_unit_test(what_follows_an_object_is_refused_but_for_blanks),
		cmocka_unit_test(h9_the_usage_text_fails_at_its_first_byte),
		cmocka_unit_test(a_nul_is_no_part_of_json),
		cmocka_unit_test(what_is_larger_than_the_limit_is_refused),
		cmocka_unit_test(words_end_with_the_last_ones_nul),
		cmocka_unit_test(words_and_text_are_handed_on_as_they_came),
		cmocka_unit_test(a_text_that_could_not_be_read_says_so),
		cmocka_unit_test(a_nul_in_the_text_is_noticed_by_what_follows),
		cmocka_unit_test(what_is_not_the_mark_is_meant_as_json),
		cmocka_unit_test(a_count_that_is_none_is_refused),
		cmocka_unit_test(the_kind_is_known_after_an_error),
		cmocka_unit_test(what_follows_the_words_is_refused),
	};
	return cmocka_run_group_tests_name("document", tests, NULL, NULL);
}
