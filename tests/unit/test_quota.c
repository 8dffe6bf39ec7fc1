/* Quotas: what a uid has, and no more. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "core/running/quota.h"

static void a_uid_may_have_so_much_and_no_more(void **state)
{
	(void)state;
	struct quota quota;
	quota_init(&quota, 100);
	assert_true(quota_take(&quota, 0, 60));
	assert_false(quota_take(&quota, 0, 41));
	assert_true(quota_take(&quota, 0, 40));
	assert_false(quota_take(&quota, 0, 1));
	assert_true(quota_take(&quota, 0, 0));
	assert_false(quota_take(&quota, 0, SIZE_MAX));
	quota_give(&quota, 0, 60);
	assert_false(quota_take(&quota, 0, 61));
	assert_true(quota_take(&quota, 0, 60));
	quota_release(&quota);
}

static void uids_do_not_share(void **state)
{
	(void)state;
	struct quota quota;
	quota_init(&quota, 100);
	for (uid_t uid = 0; uid < 1000; uid++)
		assert_true(quota_take(&quota, uid, 100));
	quota_give(&quota, 7, 100);
	assert_true(quota_take(&quota, 7, 1));
	assert_false(quota_take(&quota, 8, 1));
	quota_release(&quota);
}

static void who_has_nothing_takes_no_room(void **state)
{
	(void)state;
	struct quota quota;
	quota_init(&quota, 100);
	for (uid_t uid = 0; uid < 1000; uid++) {
		assert_true(quota_take(&quota, uid, 50));
		assert_true(quota_take(&quota, uid, 50));
		quota_give(&quota, uid, 50);
		quota_give(&quota, uid, 50);
		assert_true(quota_take(&quota, uid, 0));
	}
	assert_int_equal(quota.by_uid.count, 0);
	quota_give(&quota, 5, 0);
	quota_release(&quota);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_uid_may_have_so_much_and_no_more),
		cmocka_unit_test(uids_do_not_share),
		cmocka_unit_test(who_has_nothing_takes_no_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
