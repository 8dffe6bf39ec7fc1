/*
 * Gathers the bytes that are written to a call file until one JSON object is complete. It only
 * finds where the object ends (braces, brackets, strings), over any division into writes; whether
 * it is good JSON is for params_parse() to say. call-semantics.md 4.4, step 2.
 */
#ifndef PEGFS_TOOLS_DOCUMENT_H
#define PEGFS_TOOLS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"

enum document_state { DOCUMENT_EMPTY, DOCUMENT_OPEN, DOCUMENT_COMPLETE };

struct document {
	struct buf bytes; /* all that was written, what is around the object included */
	enum document_state state;
	unsigned depth;
	unsigned bom; /* bytes of a byte order mark seen so far */
	bool in_string, escaped;
};

void document_init(struct document *document, size_t size_max);
void document_release(struct document *document);

/* Drops what was gathered; the limit stays. */
void document_reset(struct document *document);

/*
 * Adds the bytes of one write. Returns 0 (look at state), or *why: -EINVAL where the first byte is no
 * '{', a NUL comes, or something follows the object in the same write; -EFBIG, -ENOMEM. After an
 * error the document is only good for document_reset.
 */
int document_add(struct document *document, const char *bytes, size_t len, struct fail *why);

/* Whether there is nothing in it but JSON's white space (RFC 8259, 2). */
bool document_is_blank(const char *bytes, size_t len);

#endif
