#include "core/base/buf.h"

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void an_empty_buffer_is_an_empty_string(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(10);
	assert_string_equal(buf_str(&buf), "");
	char *taken = buf_take(&buf);
	assert_string_equal(taken, "");
	free(taken);
}

static void it_grows_and_stays_terminated(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(100000);
	for (size_t i = 0; i < 100000; i++) {
		assert_int_equal(buf_putc(&buf, (char)('a' + i % 26)), 0);
		assert_int_equal(buf.len, i + 1);
		assert_int_equal(buf.data[buf.len], '\0');
	}
	for (size_t i = 0; i < buf.len; i++)
		assert_int_equal(buf.data[i], 'a' + i % 26);
}

static void the_maximum_can_be_reached_and_not_passed(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(5);
	assert_int_equal(buf_puts(&buf, "12345"), 0);
	assert_int_equal(buf.failed, 0);
	assert_int_equal(buf_putc(&buf, '6'), -EFBIG);
	assert_int_equal(buf.failed, -EFBIG);
	assert_string_equal(buf_str(&buf), "12345");
	assert_true(buf.size <= 6);
}

static void a_maximum_of_nothing_holds_nothing(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(0);
	assert_int_equal(buf_puts(&buf, ""), 0);
	assert_int_equal(buf_putc(&buf, 'x'), -EFBIG);
	assert_string_equal(buf_str(&buf), "");
}

static void a_failure_stays_until_reset(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(4);
	buf_puts(&buf, "12345");
	buf_puts(&buf, "1");
	assert_int_equal(buf.failed, -EFBIG);
	assert_string_equal(buf_str(&buf), "1");
	buf_reset(&buf);
	assert_int_equal(buf.failed, 0);
	assert_string_equal(buf_str(&buf), "");
	assert_int_equal(buf_puts(&buf, "1234"), 0);
}

static void impossible_sizes_are_refused(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(SIZE_MAX);
	assert_int_equal(buf_reserve(&buf, SIZE_MAX), -ENOMEM);
	buf_reset(&buf);
	assert_int_equal(buf_puts(&buf, "x"), 0);
	assert_int_equal(buf_reserve(&buf, SIZE_MAX), -EFBIG);
	assert_string_equal(buf_str(&buf), "x");
}

static void printf_appends(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(1000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&buf, "%d,%s;", i, "x"), 0);
	assert_int_equal(strncmp(buf_str(&buf), "0,x;1,x;2,x;", 12), 0);
	assert_int_equal(buf.len, strlen(buf_str(&buf)));
}

static void a_printf_that_does_not_fit_changes_nothing(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(5);
	buf_puts(&buf, "abc");
	assert_int_equal(buf_printf(&buf, "%d", 123), -EFBIG);
	assert_string_equal(buf_str(&buf), "abc");
	assert_int_equal(buf_printf(&buf, "%d", 12), 0);
	assert_string_equal(buf_str(&buf), "abc12");
}

static void consume_drops_the_beginning(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(100);
	buf_consume(&buf, 0);
	buf_puts(&buf, "hello world");
	buf_consume(&buf, 6);
	assert_string_equal(buf_str(&buf), "world");
	buf_consume(&buf, 5);
	assert_string_equal(buf_str(&buf), "");
	assert_int_equal(buf.len, 0);
}

static void bytes_of_any_kind_are_kept(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(100);
	buf_append(&buf, "a\0b\0", 4);
	buf_append(&buf, NULL, 0);
	assert_int_equal(buf.len, 4);
	assert_memory_equal(buf.data, "a\0b\0", 5);
}

static void what_is_taken_is_the_callers(void **state)
{
	(void)state;
	auto_buf struct buf buf = BUF_INIT(100);
	buf_puts(&buf, "mine");
	char *taken = buf_take(&buf);
	buf_puts(&buf, "other");
	assert_string_equal(taken, "mine");
	assert_string_equal(buf_str(&buf), "other");
	free(taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_is_an_empty_string),
		cmocka_unit_test(it_grows_and_stays_terminated),
		cmocka_unit_test(the_maximum_can_be_reached_and_not_passed),
		cmocka_unit_test(a_maximum_of_nothing_holds_nothing),
		cmocka_unit_test(a_failure_stays_until_reset),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(printf_appends),
		cmocka_unit_test(a_printf_that_does_not_fit_changes_nothing),
		cmocka_unit_test(consume_drops_the_beginning),
		cmocka_unit_test(bytes_of_any_kind_are_kept),
		cmocka_unit_test(what_is_taken_is_the_callers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
