/*
 * The bytes of a TOOL.md -> its front matter and its body (R14, A13). Line by line:
 *
 *   opening fence   the first line that is neither blank nor an HTML comment, exactly `---`; blanks
 *                   may follow it. Not in line 1: a warning (other readers see no front matter)
 *   closing fence   the next line of that form; where there is none, the next line `...`
 *   body            everything behind the closing fence; a later `---` belongs to it
 *
 * A byte order mark is passed over; CRLF and lone CR become LF, in the body as well.
 */
#ifndef PEGFS_TOOLS_FRONTMATTER_H
#define PEGFS_TOOLS_FRONTMATTER_H

#include <stddef.h>

#include "core/base/buf.h"
#include "core/tools/faults.h"

#define FRONTMATTER_FILE_MAX (1024 * 1024) /* a whole file */
#define FRONTMATTER_YAML_MAX (64 * 1024)   /* its front matter */

struct frontmatter {
	struct buf text;  /* what had to be rewritten; empty where the bytes are used as they are */
	struct buf clean; /* the same for the YAML */
	const char *yaml; /* borrowed from text, clean or the bytes; valid UTF-8, no controls */
	size_t yaml_len;
	size_t yaml_line; /* the number of its first line in the file */
	const char *body; /* borrowed likewise; no NUL in it, else as written */
	size_t body_len;
};

/*
 * bytes must outlive *front, which the caller releases also after a failure. Returns 0, or a
 * negative errno and one FAULT_ERROR in faults; warnings are added in both cases.
 */
int frontmatter_split(
	const char *bytes, size_t len, struct frontmatter *front, struct faults *faults);
void frontmatter_release(struct frontmatter *front);

#define FRONTMATTER_INIT                                                                           \
	{                                                                                          \
		.yaml = NULL                                                                       \
	}
#define auto_frontmatter __attribute__((cleanup(frontmatter_release)))

#endif
