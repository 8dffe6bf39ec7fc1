#include "core/tools/jsnumber.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"

#define DIGITS_MAX 17           /* a double never needs more */
#define PLAIN_EXPONENT_MAX 21   /* from 1e21 on the exponent is written */
#define PLAIN_EXPONENT_MIN (-6) /* so it is below 1e-6 */
#define NUMBER_SOURCE_MAX 4096  /* a longer text is not meant as a number */

/* 0.digits times ten to the power of point. */
struct decimal {
	char digits[DIGITS_MAX + 1];
	int count;
	int point;
};

static void shortest(double number, struct decimal *decimal)
{
	char text[DIGITS_MAX + 16];
	for (int count = 1; count <= DIGITS_MAX; count++) {
		snprintf(text, sizeof(text), "%.*e", count - 1, number);
		if (strtod(text, NULL) >= number && strtod(text, NULL) <= number)
			break;
	}
	const char *at = text;
	for (; *at != 'e'; at++)
		if (*at != '.')
			decimal->digits[decimal->count++] = *at;
	decimal->point = (int)strtol(at + 1, NULL, 10) + 1;
	while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
		decimal->count--;
}

/* The five forms of Number::toString; decimal holds a positive number. */
static void render_decimal(struct buf *out, const struct decimal *decimal)
{
	int count = decimal->count, point = decimal->point;
	const char *digits = decimal->digits;
	if (point > PLAIN_EXPONENT_MAX || point < PLAIN_EXPONENT_MIN + 1) {
		buf_putc(out, digits[0]);
		if (count > 1)
			buf_printf(out, ".%.*s", count - 1, digits + 1);
		buf_printf(out, "e%+d", point - 1);
	} else if (point <= 0) {
		buf_printf(out, "0.%.*s%.*s", -point, "000000", count, digits);
	} else if (point < count) {
		buf_printf(out, "%.*s.%.*s", point, digits, count - point, digits + point);
	} else {
		buf_printf(out, "%.*s", count, digits);
		for (int i = count; i < point; i++)
			buf_putc(out, '0');
	}
}

size_t jsnumber_render(double number, char text[JSNUMBER_TEXT_MAX])
{
	auto_buf struct buf out = BUF_INIT(JSNUMBER_TEXT_MAX - 1);
	assert(isfinite(number));
	if (fpclassify(number) == FP_ZERO) {
		buf_putc(&out, '0'); /* -0 too, as JSON.stringify writes it */
	} else {
		struct decimal decimal = { .digits = "", .count = 0, .point = 0 };
		shortest(fabs(number), &decimal);
		if (number < 0)
			buf_putc(&out, '-');
		render_decimal(&out, &decimal);
	}
	memcpy(text, buf_str(&out), out.len + 1);
	return out.len;
}

static bool is_blank(char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static size_t span_digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* Whether text is a decimal literal as a whole. */
static bool is_decimal(const char *text)
{
	if (*text == '+' || *text == '-')
		text++;
	size_t digits = span_digits(text);
	text += digits;
	if (*text == '.') {
		size_t more = span_digits(++text);
		digits += more;
		text += more;
	}
	if (digits == 0)
		return false;
	if (*text == 'e' || *text == 'E') {
		text++;
		if (*text == '+' || *text == '-')
			text++;
		size_t exponent = span_digits(text);
		if (exponent == 0)
			return false;
		text += exponent;
	}
	return *text == '\0';
}

static int radix_of(const char *text)
{
	if (text[0] != '0')
		return 0;
	switch (text[1]) {
	case 'x':
	case 'X':
		return 16;
	case 'o':
	case 'O':
		return 8;
	case 'b':
	case 'B':
		return 2;
	default:
		return 0;
	}
}

static bool parse_radix(const char *digits, int radix, double *number)
{
	static const char known[] = "0123456789abcdef";
	double value = 0;
	for (const char *at = digits; *at; at++) {
		char lower = *at >= 'A' && *at <= 'F' ? (char)(*at - 'A' + 'a') : *at;
		const char *found = strchr(known, lower);
		if (!found || found - known >= radix)
			return false;
		value = value * radix + (double)(found - known);
	}
	*number = value;
	return *digits != '\0' && isfinite(value);
}

bool jsnumber_parse(const char *text, size_t len, double *number)
{
	while (len > 0 && is_blank(text[0])) {
		text++;
		len--;
	}
	while (len > 0 && is_blank(text[len - 1]))
		len--;
	if (len == 0 || len > NUMBER_SOURCE_MAX || memchr(text, '\0', len))
		return false;
	char copy[NUMBER_SOURCE_MAX + 1];
	memcpy(copy, text, len);
	copy[len] = '\0';
	int radix = radix_of(copy);
	if (radix)
		return parse_radix(copy + 2, radix, number);
	if (!is_decimal(copy))
		return false;
	*number = strtod(copy, NULL);
	return isfinite(*number);
}

bool jsnumber_is_integer(double number)
{
	return fabs(number) <= JSNUMBER_EXACT_MAX && fabs(number - (double)(int64_t)number) <= 0;
}
