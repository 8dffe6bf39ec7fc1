#include "core/base/fail.h"

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <string.h>

#include "core/base/utf8.h"

static void the_first_failure_wins(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_int_equal(fail_set(&why, -EINVAL, "first '%s'", "x"), -EINVAL);
	assert_int_equal(fail_set(&why, -EIO, "second"), -EINVAL);
	errno = ENOENT;
	assert_int_equal(fail_errno(&why, "third"), -EINVAL);
	assert_string_equal(why.text, "first 'x'");
}

static void errno_gives_code_and_reason(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	errno = ENOENT;
	assert_int_equal(fail_errno(&why, "cannot open '%s'", "a"), -ENOENT);
	assert_string_equal(why.text, "cannot open 'a': No such file or directory");
}

static void errno_0_is_a_failure_all_the_same(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	errno = 0;
	assert_int_equal(fail_errno(&why, "x"), -EIO);
}

static void context_goes_before_the_text(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	assert_int_equal(fail_context(&why, "nothing failed"), 0);
	assert_string_equal(why.text, "");
	fail_set(&why, -EINVAL, "inner");
	assert_int_equal(fail_context(&why, "middle %d", 1), -EINVAL);
	fail_context(&why, "outer");
	assert_string_equal(why.text, "outer: middle 1: inner");
}

static void a_cleared_failure_takes_another(void **state)
{
	(void)state;
	struct fail why = FAIL_INIT;
	fail_set(&why, -EINVAL, "one");
	fail_clear(&why);
	assert_int_equal(fail_set(&why, -EIO, "two"), -EIO);
	assert_string_equal(why.text, "two");
}

static void long_texts_are_cut_between_characters(void **state)
{
	(void)state;
	char many[FAIL_TEXT_MAX * 2 + 1];
	for (size_t shift = 0; shift < 3; shift++) {
		struct fail why = FAIL_INIT;
		memset(many, 'x', shift);
		size_t at = shift;
		for (; at + 3 < sizeof(many); at += 3)
			memcpy(many + at, "\xe2\x82\xac", 3);
		many[at] = '\0';
		fail_set(&why, -EINVAL, "%s", many);
		size_t len = strlen(why.text);
		assert_true(len >= FAIL_TEXT_MAX - 4);
		assert_int_equal(utf8_valid_len(why.text, len), len);
		fail_context(&why, "%s", "context");
		len = strlen(why.text);
		assert_int_equal(utf8_valid_len(why.text, len), len);
		assert_int_equal(strncmp(why.text, "context: ", 9), 0);
		errno = EIO;
		fail_clear(&why);
		fail_errno(&why, "%s", many);
		len = strlen(why.text);
		assert_int_equal(utf8_valid_len(why.text, len), len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_failure_wins),
		cmocka_unit_test(errno_gives_code_and_reason),
		cmocka_unit_test(errno_0_is_a_failure_all_the_same),
		cmocka_unit_test(context_goes_before_the_text),
		cmocka_unit_test(a_cleared_failure_takes_another),
		cmocka_unit_test(long_texts_are_cut_between_characters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
