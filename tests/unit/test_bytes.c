/* Shared bytes: who holds a reference has them, whatever became of where they are from. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <string.h>

#include "core/base/bytes.h"

static void a_copy_is_of_its_own(void **state)
{
	(void)state;
	char text[] = "a\0b";
	struct bytes *bytes = bytes_copy(text, 3);
	text[0] = 'x';
	assert_int_equal(bytes->len, 3);
	assert_memory_equal(bytes->data, "a\0b", 4);
	bytes_unref(bytes);
}

static void no_bytes_are_an_empty_string(void **state)
{
	(void)state;
	struct bytes *copied = bytes_copy(NULL, 0);
	struct buf never_grown = BUF_INIT(10);
	struct bytes *taken = bytes_take(&never_grown);
	assert_string_equal(copied->data, "");
	assert_string_equal(taken->data, "");
	assert_int_equal(copied->len + taken->len, 0);
	bytes_unref(copied);
	bytes_unref(taken);
}

static void what_is_taken_leaves_the_buffer_empty(void **state)
{
	(void)state;
	struct buf buf = BUF_INIT(100);
	buf_puts(&buf, "text");
	struct bytes *bytes = bytes_take(&buf);
	assert_int_equal(buf.len, 0);
	assert_int_equal(bytes->len, 4);
	buf_puts(&buf, "other");
	assert_string_equal(bytes->data, "text");
	buf_release(&buf);
	bytes_unref(bytes);
}

static void the_last_reference_frees(void **state)
{
	(void)state;
	struct bytes *bytes = bytes_copy("text", 4);
	assert_ptr_equal(bytes_ref(bytes), bytes);
	bytes_unref(bytes);
	assert_string_equal(bytes->data, "text");
	bytes_unref(bytes); /* the leak checker sees to the rest */
	bytes_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_of_its_own),
		cmocka_unit_test(no_bytes_are_an_empty_string),
		cmocka_unit_test(what_is_taken_leaves_the_buffer_empty),
		cmocka_unit_test(the_last_reference_frees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
