#include "core/base/buf.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEGFS_TINY
#define BUF_FIRST_SIZE 1
#else
#define BUF_FIRST_SIZE 64
#endif

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf)BUF_INIT(max);
}

void buf_release(struct buf *buf)
{
	free(buf->data);
	buf_init(buf, buf->max);
}

void buf_reset(struct buf *buf)
{
	buf->len = 0;
	buf->failed = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

static int refuse(struct buf *buf, int code)
{
	if (!buf->failed)
		buf->failed = code;
	return code;
}

int buf_reserve(struct buf *buf, size_t more)
{
	if (more > buf->max || buf->len > buf->max - more)
		return refuse(buf, -EFBIG);
	if (buf->len + more == SIZE_MAX)
		return refuse(buf, -ENOMEM);
	size_t need = buf->len + more + 1;
	if (buf->data && need <= buf->size)
		return 0;
	size_t size = buf->size ? buf->size : BUF_FIRST_SIZE;
	while (size < need)
		size = size > SIZE_MAX / 2 ? need : size * 2;
	if (size > buf->max + 1 && buf->max + 1 >= need)
		size = buf->max + 1;
	char *data = realloc(buf->data, size);
	if (!data)
		return refuse(buf, -ENOMEM);
	buf->data = data;
	buf->size = size;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_append(struct buf *buf, const void *bytes, size_t len)
{
	int result = buf_reserve(buf, len);
	if (result < 0)
		return result;
	if (len)
		memcpy(buf->data + buf->len, bytes, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
	return 0;
}

int buf_puts(struct buf *buf, const char *text)
{
	return buf_append(buf, text, strlen(text));
}

int buf_putc(struct buf *buf, char byte)
{
	return buf_append(buf, &byte, 1);
}

int buf_vprintf(struct buf *buf, const char *format, va_list args)
{
	va_list again;
	va_copy(again, args);
	int wanted = vsnprintf(NULL, 0, format, args);
	int result = wanted < 0 ? refuse(buf, -EINVAL) : buf_reserve(buf, (size_t)wanted);
	if (result == 0) {
		vsnprintf(buf->data + buf->len, (size_t)wanted + 1, format, again);
		buf->len += (size_t)wanted;
	}
	va_end(again);
	return result;
}

int buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int result = buf_vprintf(buf, format, args);
	va_end(args);
	return result;
}

void buf_consume(struct buf *buf, size_t len)
{
	if (len == 0)
		return;
	buf->len -= len;
	memmove(buf->data, buf->data + len, buf->len + 1);
}

const char *buf_str(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
	if (!buf->data && buf_reserve(buf, 0) < 0)
		return NULL;
	buf->data[buf->len] = '\0';
	char *data = buf->data;
	buf_init(buf, buf->max);
	return data;
}
