#include "core/base/xalloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check(void *ptr)
{
	if (!ptr)
		abort();
	return ptr;
}

void *xcalloc(size_t count, size_t size)
{
	return check(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *ptr, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		abort();
	size_t bytes = count * size;
	return check(realloc(ptr, bytes > 0 ? bytes : 1));
}

char *xstrdup(const char *text)
{
	return check(strdup(text));
}

char *xstrndup(const char *text, size_t len)
{
	return check(strndup(text, len));
}

char *xasprintf(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		abort();
	return text;
}

void *xgrow(void *items, size_t count, size_t *capacity, size_t size)
{
	if (count < *capacity)
		return check(items);
	*capacity = *capacity ? *capacity * 2 : 8;
	return xrealloc(items, *capacity, size);
}
