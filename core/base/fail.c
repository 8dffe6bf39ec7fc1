#include "core/base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"

/* A text that was cut must not end in half a character: it may go into a JSON string. */
static void settle(struct fail *why, int wanted)
{
	if (wanted >= (int)sizeof(why->text))
		utf8_trim_partial(why->text);
}

int fail_set(struct fail *why, int code, const char *format, ...)
{
	if (why->code)
		return why->code;
	va_list args;
	va_start(args, format);
	int wanted = vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	settle(why, wanted);
	why->code = code;
	return code;
}

int fail_errno(struct fail *why, const char *format, ...)
{
	int error = errno;
	if (why->code)
		return why->code;
	va_list args;
	va_start(args, format);
	int used = vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	if (used >= 0 && used < (int)sizeof(why->text))
		used += snprintf(why->text + used, sizeof(why->text) - (size_t)used, ": %s",
			strerror(error));
	settle(why, used);
	why->code = error ? -error : -EIO;
	return why->code;
}

int fail_context(struct fail *why, const char *format, ...)
{
	if (!why->code)
		return 0;
	char old[sizeof(why->text)];
	memcpy(old, why->text, sizeof(old));
	va_list args;
	va_start(args, format);
	int used = vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	if (used >= 0 && used < (int)sizeof(why->text))
		used += snprintf(why->text + used, sizeof(why->text) - (size_t)used, ": %s", old);
	settle(why, used);
	return why->code;
}

void fail_clear(struct fail *why)
{
	why->code = 0;
	why->text[0] = '\0';
}
