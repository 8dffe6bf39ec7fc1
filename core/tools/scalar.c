#include "core/tools/scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static bool is_null(const char *text)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL", NULL };
	return is_one_of(text, words);
}

static bool is_true(const char *text)
{
	static const char *const words[] = { "true", "True", "TRUE", NULL };
	return is_one_of(text, words);
}

static bool is_false(const char *text)
{
	static const char *const words[] = { "false", "False", "FALSE", NULL };
	return is_one_of(text, words);
}

static bool is_infinite(const char *text)
{
	static const char *const infinities[] = { ".inf", ".Inf", ".INF", NULL };
	static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };
	const char *unsigned_text = *text == '-' || *text == '+' ? text + 1 : text;
	return is_one_of(unsigned_text, infinities) || is_one_of(text, nans);
}

static size_t count_digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* [-+]?[0-9]+ */
static bool is_decimal(const char *text)
{
	if (*text == '-' || *text == '+')
		text++;
	size_t digits = count_digits(text);
	return digits > 0 && text[digits] == '\0';
}

/* 0o[0-7]+ and 0x[0-9a-fA-F]+: the base, or 0 */
static int prefixed_base(const char *text)
{
	if (strncmp(text, "0o", 2) == 0 && text[2] &&
		text[2 + strspn(text + 2, "01234567")] == '\0')
		return 8;
	if (strncmp(text, "0x", 2) == 0 && text[2] &&
		text[2 + strspn(text + 2, "0123456789abcdefABCDEF")] == '\0')
		return 16;
	return 0;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(const char *text)
{
	if (*text == '-' || *text == '+')
		text++;
	size_t before = count_digits(text), after = 0;
	text += before;
	if (*text == '.') {
		after = count_digits(++text);
		text += after;
	}
	if (before + after == 0)
		return false;
	if (*text == 'e' || *text == 'E') {
		text++;
		if (*text == '-' || *text == '+')
			text++;
		if (!isdigit((unsigned char)*text))
			return false;
		text += count_digits(text);
	}
	return *text == '\0';
}

static struct scalar from_double(double number)
{
	return (struct scalar){ .type = isfinite(number) ? SCALAR_NUMBER : SCALAR_INFINITE,
		.number = number };
}

static struct scalar from_integer(const char *digits, int base)
{
	errno = 0;
	long long integer = strtoll(digits, NULL, base);
	if (errno == ERANGE)
		/* strtod() knows hexadecimal; so many octal digits mean nothing to anybody. */
		return from_double(base == 8 ? HUGE_VAL : strtod(digits, NULL));
	return (struct scalar){
		.type = SCALAR_INTEGER, .integer = integer, .number = (double)integer
	};
}

struct scalar scalar_resolve(const char *text)
{
	if (is_null(text))
		return (struct scalar){ .type = SCALAR_NULL };
	if (is_true(text) || is_false(text))
		return (struct scalar){ .type = SCALAR_BOOLEAN, .boolean = is_true(text) };
	if (is_decimal(text))
		return from_integer(text, 10);
	int base = prefixed_base(text);
	if (base)
		return from_integer(base == 8 ? text + 2 : text, base);
	if (is_infinite(text))
		return (struct scalar){ .type = SCALAR_INFINITE };
	/* The locale is "C": nothing here calls setlocale(), so the point is a point. */
	if (is_float(text))
		return from_double(strtod(text, NULL));
	return (struct scalar){ .type = SCALAR_STRING };
}
