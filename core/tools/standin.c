#include "core/tools/standin.h"

#include <string.h>

static const struct {
	const char *real, *stand_in;
} stand_ins[] = {
	{ "\xc2\x85", "\xf4\x8f\xbf\xbb" },
	{ "\xe2\x80\xa8", "\xf4\x8f\xbf\xbc" },
	{ "\xe2\x80\xa9", "\xf4\x8f\xbf\xbd" },
};
#define STAND_IN_COUNT (sizeof(stand_ins) / sizeof(*stand_ins))

bool standin_are_needed(const char *text, size_t len)
{
	bool needs = false;
	if (!memchr(text, 0xc2, len) && !memchr(text, 0xe2, len))
		return false;
	for (size_t i = 0; i < STAND_IN_COUNT; i++) {
		const char *real = stand_ins[i].real, *stand_in = stand_ins[i].stand_in;
		if (memmem(text, len, stand_in, strlen(stand_in)))
			return false;
		needs = needs || memmem(text, len, real, strlen(real));
	}
	return needs;
}

static bool starts_with(const char *text, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(text, prefix, strlen(prefix)) == 0;
}

void standin_put(const char *text, size_t len, struct buf *out)
{
	for (size_t at = 0; at < len;) {
		size_t i = 0;
		while (i < STAND_IN_COUNT && !starts_with(text + at, len - at, stand_ins[i].real))
			i++;
		if (i < STAND_IN_COUNT) {
			buf_puts(out, stand_ins[i].stand_in);
			at += strlen(stand_ins[i].real);
		} else {
			buf_putc(out, text[at++]);
		}
	}
}

void standin_take_out(char *text)
{
	char *to = text;
	for (const char *from = text; *from;) {
		size_t i = 0;
		while (i < STAND_IN_COUNT && strncmp(from, stand_ins[i].stand_in, 4) != 0)
			i++;
		if (i < STAND_IN_COUNT) {
			size_t len = strlen(stand_ins[i].real);
			memcpy(to, stand_ins[i].real, len);
			to += len;
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}
