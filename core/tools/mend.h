/*
 * The lenient second reading of front matter that is no YAML. What people write most often and YAML
 * refuses is a value that needs quotes and has none (`description: Use this: it helps`), so:
 *
 *   - the text is cut into `key:` entries; lines before the first one are dropped
 *   - an entry that is valid by itself stays as it is
 *   - any other one becomes `key: "..."` with its own lines joined
 *   - below `inputs`, the same is done for each input and for each property of an input, so that a
 *     colon in one description does not cost the other inputs
 *
 * The number of lines stays the same. It must never be used on a text that parses.
 *
 * What is guessed here must not cost an input, or its `sensitive: true`: where a line that may have
 * said so would become part of another value, the text is not mended at all. Nor is it where `name`
 * needs quotes (R15): a name is chosen, not guessed.
 */
#ifndef PEGFS_TOOLS_MEND_H
#define PEGFS_TOOLS_MEND_H

#include <stddef.h>

#include "core/base/buf.h"

#define MEND_SIZE_MAX (256 * 1024)

/* The keys whose values were quoted, as "'a', 'b'"; the rest are counted. */
struct mended {
	struct buf keys; /* released by the caller */
	size_t count;
	size_t dropped;   /* lines */
	size_t name_line; /* from 1: there `name` has a value that is no YAML; 0: nowhere */
};

#define MENDED_INIT                                                                                \
	{                                                                                          \
		.keys = BUF_INIT(512), .count = 0, .dropped = 0, .name_line = 0                    \
	}

/*
 * Appends the mended text. Returns 0, -ENOENT where no entry was found, -ENOTSUP where part of an
 * input would be lost or the name would be guessed, -EFBIG or -ENOMEM.
 */
int mend_yaml(const char *text, size_t len, struct buf *out, struct mended *mended);

#endif
