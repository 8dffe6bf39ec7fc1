#include <float.h>
#include <math.h>

#include "core/tools/jsnumber.h"
#include "tests/unit/golden.h"

static void numbers_print_as_in_javascript(void **state)
{
	(void)state;
	static const struct {
		double number;
		const char *text;
	} rows[] = {
		{ 0.0, "0" },
		{ -0.0, "0" },
		{ 1.0, "1" },
		{ -1.0, "-1" },
		{ 100.0, "100" },
		{ 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 19.99, "19.99" },
		{ 123456.789, "123456.789" },
		{ 1e20, "100000000000000000000" },
		{ 1e21, "1e+21" },
		{ 1.5e300, "1.5e+300" },
		{ 1e-6, "0.000001" },
		{ 1.5e-6, "0.0000015" },
		{ 1e-7, "1e-7" },
		{ -1.25e-9, "-1.25e-9" },
		{ DBL_MAX, "1.7976931348623157e+308" },
		{ -DBL_MAX, "-1.7976931348623157e+308" },
		{ 5e-324, "5e-324" },
		{ 9007199254740993.0, "9007199254740992" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[JSNUMBER_TEXT_MAX];
		assert_int_equal(jsnumber_render(rows[i].number, text), strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
	}
}

static void texts_read_as_in_javascript(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double number; /* NAN: no number */
	} rows[] = {
		{ "5", 5 },
		{ " 5\t\n", 5 },
		{ "+5", 5 },
		{ "-5", -5 },
		{ "5.", 5 },
		{ ".5", 0.5 },
		{ "007", 7 },
		{ "1e3", 1000 },
		{ "1E-3", 0.001 },
		{ "0x10", 16 },
		{ "0XfF", 255 },
		{ "0o17", 15 },
		{ "0b101", 5 },
		{ "", NAN },
		{ " ", NAN },
		{ ".", NAN },
		{ "+", NAN },
		{ "e3", NAN },
		{ "1e", NAN },
		{ "1e+", NAN },
		{ "1 2", NAN },
		{ "1_000", NAN },
		{ "1,5", NAN },
		{ "5px", NAN },
		{ "0x", NAN },
		{ "0xg", NAN },
		{ "0b2", NAN },
		{ "-0x10", NAN },
		{ "inf", NAN },
		{ "Infinity", NAN },
		{ "nan", NAN },
		{ "0x1p3", NAN },
		{ "1e999", NAN },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double number = 0;
		bool is_number = jsnumber_parse(rows[i].text, strlen(rows[i].text), &number);
		if (is_number == (bool)isnan(rows[i].number))
			fail_msg("'%s'", rows[i].text);
		if (is_number)
			assert_true(fabs(number - rows[i].number) <= 0);
	}
}

static void long_texts_and_nul_are_no_numbers(void **state)
{
	(void)state;
	char text[8192];
	double number;
	memset(text, '1', sizeof(text));
	assert_false(jsnumber_parse(text, sizeof(text), &number));
	assert_false(jsnumber_parse("1\0002", 3, &number));
}

static void whole_numbers_are_told_apart(void **state)
{
	(void)state;
	assert_true(jsnumber_is_integer(-3.0));
	assert_true(jsnumber_is_integer(JSNUMBER_EXACT_MAX));
	assert_false(jsnumber_is_integer(JSNUMBER_EXACT_MAX * 2));
	assert_false(jsnumber_is_integer(0.5));
	assert_false(jsnumber_is_integer(-0.5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_print_as_in_javascript),
		cmocka_unit_test(texts_read_as_in_javascript),
		cmocka_unit_test(long_texts_and_nul_are_no_numbers),
		cmocka_unit_test(whole_numbers_are_told_apart),
	};
	return cmocka_run_group_tests_name("jsnumber", tests, NULL, NULL);
}
