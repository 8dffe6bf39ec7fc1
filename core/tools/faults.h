/*
 * What is wrong with tool directories, for people: each fault names a place and says what to do.
 * They are shown in .pegfs/errors and by `pegfs check`.
 *
 * Codes are stable: scripts may rely on them. E: the tool is not shown; W: it is usable.
 *
 *   the file TOOL.md (frontmatter.h)
 *     E utf-16              is UTF-16; save it as UTF-8
 *     E nul-byte            holds a NUL byte
 *     E too-large           larger than MANIFEST_SIZE_MAX, or its front matter than MANIFEST_FRONT_MAX
 *     E no-front-matter     does not begin with a line `---`
 *     E unclosed-fence      the front matter has no closing `---`
 *     W late-fence          blank lines or a comment before the opening `---`
 *     W dots-fence          closed by `...`
 *     W invalid-utf8        bytes that are no UTF-8: shown as U+FFFD, in the body left as they are
 *     W control-character   in the front matter: shown as U+FFFD
 *   its YAML (yaml.h, mend.h); W where the lenient second reading made sense of it
 *     EW yaml-syntax        no YAML
 *     EW yaml-alias, yaml-anchor, yaml-tag, yaml-directive, yaml-documents, yaml-depth, yaml-key,
 *        yaml-nul, yaml-duplicate-key   YAML that has no place here
 *     E not-a-mapping       the front matter is no `key: value` mapping
 *   its fields (manifest.h)
 *     E missing-name, missing-description   (A5)
 *     E unsafe-name         cannot be a directory of the tree
 *     W name-pattern        a model API would refuse the name
 *     W not-text            a list or mapping where a text belongs (E for name and description)
 *     W long-description    more than 1024 characters
 *     W comment-cut         ` #` cut a value that is not in quotes
 *     W missing-version, version-not-integer   (R18, A1)
 *     W unknown-language    (A9)
 *     W bad-timeout         no number of seconds
 *     W not-json            `parameters` or `annotations` are no JSON object
 *     W unknown-key         a key that is ignored and looks like a mistake (A10)
 *   its inputs (inputs.h)
 *     E inputs-not-mapping, too-many-inputs, too-many-values
 *     W input-not-mapping   `name: text`: a string input (E where lenient reading made it so)
 *     W input-name-pattern, input-missing-description, missing-type, unknown-type, unsupported-type
 *     W not-boolean         `optional` or `sensitive` is neither true nor false
 *     W missing-values, bad-value, duplicate-value, unused-values, bad-default
 *     W too-many-faults     further warnings are left out
 *   its place (source.h)
 *     W not-watched         changes are seen late: there are more directories than can be watched
 *     W missing-source      a directory of PI_TOOLS_DIRS that is not there or cannot be read
 *     E own-mount           a directory of PI_TOOLS_DIRS is a mount of pegfs
 *     E missing-manifest, missing-entry    one of the two is there without the other (R6)
 *     E entry-language      the entry does not fit `language` (A9)
 *     E unreadable          cannot be opened or read
 *     E not-a-file          TOOL.md or the entry is a directory, a FIFO, a device
 *     E dangling-link, link-outside        a symbolic link to nothing, or out of where it may lead
 *     E changing            TOOL.md is being written
 *     E too-many-directories   more than SOURCE_DIRS_MAX in one source
 *     E duplicate-name      another tool of the same source directory has the name (A7, R98)
 *     W hidden-file         a file of the tool has a name that the tree uses itself
 */
#ifndef PEGFS_TOOLS_FAULTS_H
#define PEGFS_TOOLS_FAULTS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"

enum fault_level {
	FAULT_WARNING, /* the tool is usable */
	FAULT_ERROR,   /* the tool is not shown */
};

struct fault {
	enum fault_level level;
	const char *code; /* borrowed, static: "yaml-syntax", "missing-entry", ... */
	char *file;       /* owned; a path, or NULL: the TOOL.md at hand */
	size_t line;      /* from 1; 0: the file as a whole */
	size_t column;    /* from 1, in characters; 0: the line as a whole */
	char *text;       /* owned; valid UTF-8 on one line, without control characters */
};

struct faults {
	struct fault *items; /* owned */
	size_t count, capacity;
};

#define FAULTS_INIT                                                                                \
	{                                                                                          \
		.items = NULL, .count = 0, .capacity = 0                                           \
	}

void faults_release(struct faults *faults);
void faults_add(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, ...) __attribute__((format(printf, 6, 7)));

void faults_vadd(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, va_list args) __attribute__((format(printf, 6, 0)));

bool faults_have_error(const struct faults *faults);
bool faults_equal(const struct faults *a, const struct faults *b);

/* Copies all of `from` to the end of `to`. */
void faults_copy(struct faults *to, const struct faults *from);

/* Moves all of `from` to the end of `to`; those without a file get a copy of file (may be NULL). */
void faults_move(struct faults *to, struct faults *from, const char *file);

/* A text from a file, short enough to be quoted in a fault. Use: faults_excerpt(name).text */
struct faults_excerpt {
	char text[68];
};
struct faults_excerpt faults_excerpt(const char *text);

/* One line a fault, as compilers write: "FILE:LINE:COLUMN: error: TEXT [CODE]". */
void faults_render(const struct faults *faults, struct buf *out);

#define auto_faults __attribute__((cleanup(faults_release)))

#endif
