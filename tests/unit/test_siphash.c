/* The vectors are those of the algorithm's authors: inputs 00, 00 01, ... under the key 00 to 0f. */
#include "core/base/siphash.h"
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

static void gives_what_its_authors_say(void **state)
{
	(void)state;
	uint8_t secret[SIPHASH_SECRET_SIZE], bytes[16];
	for (uint8_t i = 0; i < 16; i++)
		secret[i] = bytes[i] = i;
	assert_true(siphash(secret, bytes, 0) == 0x726fdb47dd0e0e31u);
	assert_true(siphash(secret, bytes, 1) == 0x74f839c593dc67fdu);
	assert_true(siphash(secret, bytes, 8) == 0x93f5f5799a932462u);
	assert_true(siphash(secret, bytes, 15) == 0xa129ca6149be45e5u);
}

static void another_secret_gives_another_digest(void **state)
{
	(void)state;
	uint8_t secret[SIPHASH_SECRET_SIZE] = { 0 };
	uint64_t before = siphash(secret, "abc", 3);
	secret[15] = 1;
	assert_true(siphash(secret, "abc", 3) != before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_its_authors_say),
		cmocka_unit_test(another_secret_gives_another_digest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
