#include <math.h>

#include "core/tools/scalar.h"
#include "tests/unit/golden.h"

static void assert_type(const char *text, enum scalar_type type)
{
	struct scalar scalar = scalar_resolve(text);
	if (scalar.type != type)
		fail_msg("'%s': %d, expected %d", text, (int)scalar.type, (int)type);
}

static void assert_integer(const char *text, int64_t wanted)
{
	struct scalar scalar = scalar_resolve(text);
	if (scalar.type != SCALAR_INTEGER || scalar.integer != wanted)
		fail_msg("'%s': %lld", text, (long long)scalar.integer);
}

static void assert_number(const char *text, double wanted)
{
	struct scalar scalar = scalar_resolve(text);
	if (scalar.type != SCALAR_NUMBER || fabs(scalar.number - wanted) > fabs(wanted) * 1e-15)
		fail_msg("'%s': %g", text, scalar.number);
}

static void nothing_and_null_are_null(void **state)
{
	(void)state;
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	for (size_t i = 0; i < sizeof(nulls) / sizeof(*nulls); i++)
		assert_type(nulls[i], SCALAR_NULL);
	assert_type("nULL", SCALAR_STRING);
	assert_type("none", SCALAR_STRING);
}

static void only_true_and_false_are_booleans(void **state)
{
	(void)state;
	static const char *const yes[] = { "true", "True", "TRUE" };
	static const char *const no[] = { "false", "False", "FALSE" };
	for (size_t i = 0; i < 3; i++) {
		assert_type(yes[i], SCALAR_BOOLEAN);
		assert_true(scalar_resolve(yes[i]).boolean);
		assert_type(no[i], SCALAR_BOOLEAN);
		assert_false(scalar_resolve(no[i]).boolean);
	}
}

static void what_yaml_1_1_made_of_words_are_strings(void **state)
{
	(void)state;
	static const char *const strings[] = { "yes", "no", "on", "off", "y", "n", "Yes", "tRUE",
		"2024-01-01", "1_000", "0b101", "1:30", "=", "<<", "1.2.3", "v1", "0o8", "0xg",
		"0o", "0x", "-0x1", "+0o7", "-", "+", ".", "e5", ".e5", "1e", "1e+", "1.5.",
		"0x1.8p1", "inf", "nan", "Infinity", "1 2", "1,5", "--1", "+.", "0X1", "1e5x" };
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		assert_type(strings[i], SCALAR_STRING);
}

static void integers(void **state)
{
	(void)state;
	assert_integer("0", 0);
	assert_integer("-0", 0);
	assert_integer("010", 10);
	assert_integer("+12", 12);
	assert_integer("-12", -12);
	assert_integer("0o17", 15);
	assert_integer("0xfF", 255);
	assert_integer("9223372036854775807", INT64_MAX);
	assert_integer("-9223372036854775808", INT64_MIN);
	assert_true(scalar_resolve("42").number == 42);
}

static void integers_that_are_too_large_are_numbers(void **state)
{
	(void)state;
	assert_number("9223372036854775808", 9223372036854775808.0);
	assert_number("12345678901234567890123", 12345678901234567890123.0);
	assert_number("0xffffffffffffffffff", 4722366482869645213695.0);
	assert_type("0o7777777777777777777777777777", SCALAR_INFINITE);
}

static void numbers(void **state)
{
	(void)state;
	assert_number("1.0", 1);
	assert_number("0.5", 0.5);
	assert_number(".5", 0.5);
	assert_number("5.", 5);
	assert_number("-1.5e-3", -0.0015);
	assert_number("1e3", 1000);
	assert_number("1E+3", 1000);
}

static void what_json_cannot_say_is_infinite(void **state)
{
	(void)state;
	static const char *const texts[] = { ".inf", ".Inf", ".INF", "-.inf", "+.inf", ".nan",
		".NaN", ".NAN", "1e999", "-1e999" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_type(texts[i], SCALAR_INFINITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_and_null_are_null),
		cmocka_unit_test(only_true_and_false_are_booleans),
		cmocka_unit_test(what_yaml_1_1_made_of_words_are_strings),
		cmocka_unit_test(integers),
		cmocka_unit_test(integers_that_are_too_large_are_numbers),
		cmocka_unit_test(numbers),
		cmocka_unit_test(what_json_cannot_say_is_infinite),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
