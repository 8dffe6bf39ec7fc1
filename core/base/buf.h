/*
 * Growable bytes with a hard maximum. The maximum is part of the buffer, so that nothing which
 * somebody else sends can make it grow without bound. The bytes are always followed by a NUL that
 * is not counted in len, so data can be read as a string where it holds none.
 *
 * An append that fails leaves the buffer as it was and sets `failed`, which stays: a renderer may
 * append many times and check once at the end.
 */
#ifndef PEGFS_BASE_BUF_H
#define PEGFS_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf {
	char *data;  /* owned; NULL while empty and never grown */
	size_t len;  /* bytes in use */
	size_t size; /* bytes allocated, the trailing NUL included */
	size_t max;  /* largest len allowed */
	int failed;  /* 0, -EFBIG (max reached) or -ENOMEM */
};

#define BUF_INIT(maximum)                                                                          \
	{                                                                                          \
		.data = NULL, .len = 0, .size = 0, .max = (maximum), .failed = 0                   \
	}

void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf);

/* Empties the buffer, keeps its memory and its maximum, forgets a failure. */
void buf_reset(struct buf *buf);

/* Makes room for `more` further bytes. Returns 0, -EFBIG or -ENOMEM, as all of these do. */
int buf_reserve(struct buf *buf, size_t more);
int buf_append(struct buf *buf, const void *bytes, size_t len);
int buf_puts(struct buf *buf, const char *text);
int buf_putc(struct buf *buf, char byte);
int buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *buf, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Drops the first len bytes. */
void buf_consume(struct buf *buf, size_t len);

/* The contents as a string, never NULL; borrowed until the buffer changes. */
const char *buf_str(const struct buf *buf);

/* The memory becomes the caller's (free() it; never NULL but for -ENOMEM); the buffer is empty. */
char *buf_take(struct buf *buf);

#define auto_buf __attribute__((cleanup(buf_release)))

#endif
