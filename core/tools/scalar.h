/*
 * What a YAML scalar means: the core schema of YAML 1.2 and nothing else. `yes`, `off`, dates,
 * `1_000`, `0b1`, `1:30` and `<<` are strings; `010` is ten.
 */
#ifndef PEGFS_TOOLS_SCALAR_H
#define PEGFS_TOOLS_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

enum scalar_type {
	SCALAR_NULL,    /* ~ null Null NULL, and nothing at all */
	SCALAR_BOOLEAN, /* true True TRUE false False FALSE */
	SCALAR_INTEGER, /* [-+]?[0-9]+, 0o7, 0xF, that fits int64_t; both number and integer are set */
	SCALAR_NUMBER, /* finite; with a point or an exponent, or an integer too large for int64_t */
	SCALAR_INFINITE, /* .inf, .nan, 1e999: no JSON form */
	SCALAR_STRING,
};

struct scalar {
	enum scalar_type type;
	bool boolean;
	double number;
	int64_t integer;
};

/* What the text of a plain scalar means; a quoted one is always a string and never comes here. */
struct scalar scalar_resolve(const char *text);

#endif
