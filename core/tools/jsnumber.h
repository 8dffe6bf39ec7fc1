/*
 * Numbers as JavaScript reads and writes them (ECMA-262, Number::toString and StringToNumber), for
 * that is what a tool, and the pi agent, do with them. The locale's decimal point must be a dot, as
 * it is in a program that never sets LC_NUMERIC.
 */
#ifndef PEGFS_TOOLS_JSNUMBER_H
#define PEGFS_TOOLS_JSNUMBER_H

#include <stdbool.h>
#include <stddef.h>

#define JSNUMBER_TEXT_MAX 32
#define JSNUMBER_EXACT_MAX 9007199254740992.0 /* 2^53: whole numbers up to here are exact */

/*
 * Writes a finite number with the fewest digits that give it back: 1, 0.1, 1e+21, 1.5e-7. It is
 * also its JSON text. Returns the length.
 */
size_t jsnumber_render(double number, char text[JSNUMBER_TEXT_MAX]);

/*
 * Reads a whole text as one finite number: an optional sign, digits with an optional point and
 * exponent; or 0x, 0o, 0b without a sign. Blanks (ASCII) around it do not matter. Returns false for
 * anything else, also for blanks alone.
 */
bool jsnumber_parse(const char *text, size_t len, double *number);

/* Whether it is a whole number that int64_t and double both hold exactly. */
bool jsnumber_is_integer(double number);

#endif
