#include "core/base/utf8.h"

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>
#include <string.h>

static size_t char_len(const char *text)
{
	return utf8_char_len(text, strlen(text));
}

static void well_formed_characters_have_their_length(void **state)
{
	(void)state;
	assert_int_equal(char_len("a"), 1);
	assert_int_equal(char_len("\x7f"), 1);
	assert_int_equal(char_len("\xc2\x80"), 2);
	assert_int_equal(char_len("\xdf\xbf"), 2);
	assert_int_equal(char_len("\xe0\xa0\x80"), 3);
	assert_int_equal(char_len("\xed\x9f\xbf"), 3);
	assert_int_equal(char_len("\xee\x80\x80"), 3);
	assert_int_equal(char_len("\xef\xbf\xbf"), 3);
	assert_int_equal(char_len("\xf0\x90\x80\x80"), 4);
	assert_int_equal(char_len("\xf4\x8f\xbf\xbf"), 4);
	assert_int_equal(utf8_char_len("\0", 1), 1);
	assert_int_equal(utf8_char_len("", 0), 0);
}

static void ill_formed_ones_have_none(void **state)
{
	(void)state;
	static const char *const bad[] = { "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2",
		"\xc2\x41", "\xc2\xc2", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xe2\x82", "\xe2\x82\x41",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
		"\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (char_len(bad[i]) != 0)
			fail_msg("number %zu", i);
}

static void the_first_bad_byte_is_found_wherever_it_is(void **state)
{
	(void)state;
	char text[64];
	for (size_t len = 0; len < sizeof(text); len++)
		for (size_t at = 0; at < len; at++) {
			memset(text, 'a', len);
			text[at] = '\xff';
			assert_int_equal(utf8_valid_len(text, len), at);
		}
	assert_int_equal(utf8_valid_len("\xe2\x82\xac\xe2\x82", 5), 3);
	assert_int_equal(utf8_valid_len("abcdefgh\xc3\xa4ijklmnop\xf0\x9f\x98\x80", 22), 22);
	assert_int_equal(utf8_valid_len("", 0), 0);
}

/* Every 16-bit pattern and every code point against the definition. */
static bool is_two_byte_text(unsigned first, unsigned second)
{
	return (first < 0x80 && second < 0x80) ||
	       (first >= 0xc2 && first <= 0xdf && second >= 0x80 && second <= 0xbf);
}

static void all_pairs_of_bytes(void **state)
{
	(void)state;
	for (unsigned pair = 0; pair < 0x10000; pair++) {
		char text[2] = { (char)(pair >> 8), (char)(pair & 0xff) };
		bool valid = utf8_valid_len(text, 2) == 2;
		if (valid != is_two_byte_text(pair >> 8, pair & 0xff))
			fail_msg("%04x", pair);
	}
}

static size_t encode(unsigned point, char *to)
{
	if (point < 0x800) {
		to[0] = (char)(0xc0 | point >> 6);
		to[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	size_t len = point < 0x10000 ? 3 : 4;
	for (size_t i = len - 1; i > 0; i--, point >>= 6)
		to[i] = (char)(0x80 | (point & 0x3f));
	to[0] = (char)((len == 3 ? 0xe0 : 0xf0) | point);
	return len;
}

static void all_code_points(void **state)
{
	(void)state;
	for (unsigned point = 0x80; point < 0x120000; point++) {
		char text[4];
		size_t len = encode(point, text);
		bool valid = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
		if (utf8_char_len(text, len) != (valid ? len : 0))
			fail_msg("U+%04X", point);
	}
}

static void assert_trimmed(const char *text, const char *wanted)
{
	char copy[64];
	strcpy(copy, text);
	utf8_trim_partial(copy);
	assert_string_equal(copy, wanted);
}

static void half_a_character_is_cut_off(void **state)
{
	(void)state;
	assert_trimmed("", "");
	assert_trimmed("abc", "abc");
	assert_trimmed("a\xe2\x82\xac", "a\xe2\x82\xac");
	assert_trimmed("a\xe2\x82", "a");
	assert_trimmed("a\xe2", "a");
	assert_trimmed("\xe2", "");
	assert_trimmed("a\xf0\x9f\x98\x80", "a\xf0\x9f\x98\x80");
	assert_trimmed("a\xf0\x9f\x98", "a");
	assert_trimmed("a\xf0\x9f", "a");
	assert_trimmed("a\xf0", "a");
	assert_trimmed("\xc3\xa4\xc3", "\xc3\xa4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_formed_characters_have_their_length),
		cmocka_unit_test(ill_formed_ones_have_none),
		cmocka_unit_test(the_first_bad_byte_is_found_wherever_it_is),
		cmocka_unit_test(all_pairs_of_bytes),
		cmocka_unit_test(all_code_points),
		cmocka_unit_test(half_a_character_is_cut_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
