#include "core/base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

static struct bytes *make(char *data, size_t len)
{
	struct bytes *bytes = xcalloc(1, sizeof(*bytes));
	*bytes = (struct bytes){ .refs = 1, .len = len, .data = data };
	return bytes;
}

struct bytes *bytes_take(struct buf *buf)
{
	size_t len = buf->len;
	char *data = buf_take(buf);
	return data ? make(data, len) : make(xstrdup(""), 0);
}

struct bytes *bytes_copy(const void *data, size_t len)
{
	char *copy = xcalloc(len + 1, 1);
	if (len)
		memcpy(copy, data, len);
	return make(copy, len);
}

struct bytes *bytes_ref(struct bytes *bytes)
{
	bytes->refs++;
	return bytes;
}

void bytes_unref(struct bytes *bytes)
{
	if (!bytes || --bytes->refs > 0)
		return;
	free(bytes->data);
	free(bytes);
}
