#include "core/base/utf8.h"

#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The range of the second byte shuts out overlong forms, surrogates and what lies above U+10FFFF. */
static bool second_fits(unsigned char first, unsigned char second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return is_continuation(second);
	}
}

static size_t wanted_len(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

size_t utf8_char_len(const char *bytes, size_t len)
{
	if (len == 0)
		return 0;
	const unsigned char *byte = (const unsigned char *)bytes;
	size_t wanted = wanted_len(byte[0]);
	if (wanted == 0 || wanted > len)
		return 0;
	if (wanted > 1 && !second_fits(byte[0], byte[1]))
		return 0;
	for (size_t i = 2; i < wanted; i++)
		if (!is_continuation(byte[i]))
			return 0;
	return wanted;
}

/* Most text is ASCII: eight bytes at a time. */
static size_t ascii_len(const char *bytes, size_t len)
{
	size_t at = 0;
	uint64_t word;
	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, bytes + at, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	return at;
}

size_t utf8_valid_len(const char *bytes, size_t len)
{
	size_t at = 0;
	while (at < len) {
		if ((unsigned char)bytes[at] < 0x80)
			at += ascii_len(bytes + at, len - at);
		if (at == len)
			break;
		size_t step = utf8_char_len(bytes + at, len - at);
		if (step == 0)
			break;
		at += step;
	}
	return at;
}

void utf8_trim_partial(char *text)
{
	size_t len = strlen(text), back = 0;
	while (back < 3 && back < len && is_continuation((unsigned char)text[len - 1 - back]))
		back++;
	if (back == len)
		return;
	size_t start = len - 1 - back;
	if ((unsigned char)text[start] >= 0x80 && utf8_char_len(text + start, len - start) == 0)
		text[start] = '\0';
}
