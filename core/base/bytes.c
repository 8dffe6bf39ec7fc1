#include "core/base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

static struct bytes *make(size_t len)
{
	struct bytes *bytes = xcalloc(1, sizeof(*bytes));
	bytes->refs = 1;
	bytes->len = len;
	return bytes;
}

struct bytes *bytes_take(struct buf *buf)
{
	struct bytes *bytes = make(buf->len);
	bytes->data = buf->data ? buf_take(buf) : xstrdup("");
	return bytes;
}

struct bytes *bytes_copy(const void *data, size_t len)
{
	struct bytes *bytes = make(len);
	bytes->data = xcalloc(len + 1, 1);
	if (len)
		memcpy(bytes->data, data, len);
	return bytes;
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
