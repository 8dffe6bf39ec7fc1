/* UTF-8: checking, repairing, cutting between characters (RFC 3629). */
#ifndef PEGFS_BASE_UTF8_H
#define PEGFS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The length in bytes (1 to 4) of the well-formed character at the start of bytes, or 0 where there
 * is none: a stray byte, an overlong form, a surrogate, or a character that len cuts short.
 */
size_t utf8_char_len(const char *bytes, size_t len);

/* The offset of the first byte that is not well-formed UTF-8, or len where all of it is. */
size_t utf8_valid_len(const char *bytes, size_t len);

/* Cuts the beginning of a character off the end of a string that was shortened at a byte limit. */
void utf8_trim_partial(char *text);

#endif
