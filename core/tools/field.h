/* Values of the types that TOOL.md's fields have, read from YAML nodes, with faults at their place. */
#ifndef PEGFS_TOOLS_FIELD_H
#define PEGFS_TOOLS_FIELD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"
#include "core/tools/scalar.h"
#include "core/tools/yaml.h"

#define FIELD_WARNINGS_MAX 100     /* of one file; errors are few and always told */
#define FIELD_DESCRIPTION_MAX 1024 /* characters that every model API takes */

/* What reading one file needs to report. */
struct field_reader {
	struct faults *faults; /* borrowed */
	size_t warnings;       /* so far */
	bool failed;           /* an error was reported */
	bool mended;           /* by the lenient reading: texts may be what is left of a mapping */
};

/* A fault at the place of node (NULL: of the file as a whole). */
void field_warn(struct field_reader *reader, const struct yaml_node *node, const char *code,
	const char *format, ...) __attribute__((format(printf, 4, 5)));
void field_fail(struct field_reader *reader, const struct yaml_node *node, const char *code,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What a scalar means; a quoted one is a string, a list or mapping as well (ask for its kind). */
struct scalar field_resolve(const struct yaml_node *node);

/* Whether a key is one of those that are known. */
bool field_is_known(const char *key, const char *const *known, size_t count);

/* Whether there is a value at all: a node, and not a plain null. */
bool field_is_given(const struct yaml_node *node);

/*
 * A scalar's source text without blanks and line ends around it, so that `2024` and `on` are the
 * texts "2024" and "on"; the caller's. NULL where it is no scalar. Warns where a comment cut it.
 */
char *field_take_text(struct field_reader *reader, const struct yaml_node *node, const char *what);

/* Warns where a description is too long for some model APIs. */
void field_check_description(struct field_reader *reader, const struct yaml_node *node,
	const char *text, const char *what);

#endif
