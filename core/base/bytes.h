/* Bytes that never change, shared and counted: a rendered text, a result, what a reader has open. */
#ifndef PEGFS_BASE_BYTES_H
#define PEGFS_BASE_BYTES_H

#include <stddef.h>

#include "core/base/buf.h"

struct bytes {
	size_t refs;
	size_t len;
	char *data; /* owned; NUL-terminated, never NULL */
};

/* Takes the contents of buf, which is empty afterwards. One reference, the caller's. */
struct bytes *bytes_take(struct buf *buf);
struct bytes *bytes_copy(const void *data, size_t len);
struct bytes *bytes_ref(struct bytes *bytes);
void bytes_unref(struct bytes *bytes); /* NULL is allowed */

#endif
