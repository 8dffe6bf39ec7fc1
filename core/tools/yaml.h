/*
 * YAML text -> a tree of nodes, each with its place and, for scalars, its source text. libyaml does
 * the reading; what the scalars mean is said by scalar.h, so that YAML 1.1's surprises stay out.
 *
 * Refused, each with its place: aliases, anchors, tags, directives, a second document, keys that
 * are no scalars, equal keys in one mapping, nesting beyond YAML_DEPTH_MAX, the character U+0000.
 */
#ifndef PEGFS_TOOLS_YAML_H
#define PEGFS_TOOLS_YAML_H

#include <stdbool.h>
#include <stddef.h>

#define YAML_DEPTH_MAX 64
#define YAML_SIZE_MAX (64 * 1024)

enum yaml_kind { YAML_KIND_SCALAR, YAML_KIND_SEQUENCE, YAML_KIND_MAPPING };

struct yaml_node {
	enum yaml_kind kind;
	size_t line;             /* from 1 */
	size_t column;           /* from 1, in characters */
	bool plain;              /* a scalar without quotes, and not a block (| >) */
	bool cut;                /* a plain scalar that a comment (" #") ends */
	char *text;              /* owned; a scalar's text, without U+0000; else NULL */
	struct yaml_node *items; /* owned; of a mapping: key, value, key, value, ... */
	size_t count, capacity;  /* of items */
};

/* Why a text is refused. */
struct yaml_problem {
	const char *code;    /* static; see faults.h */
	size_t line, column; /* from 1 */
	char text[512];
};

/*
 * Fills *root, which the caller releases also after a failure. first_line is the number that the
 * text's first line has in its file. Text without any node gives an empty plain scalar. Valid UTF-8 without control characters but TAB and LF is expected. Returns 0, or
 * -EINVAL (-EFBIG, -ENOMEM) and *problem.
 */
int yaml_tree_load(const char *text, size_t len, size_t first_line, struct yaml_node *root,
	struct yaml_problem *problem);
void yaml_tree_release(struct yaml_node *root);

#define YAML_NODE_INIT                                                                             \
	{                                                                                          \
		.kind = YAML_KIND_SCALAR                                                           \
	}
#define auto_yaml __attribute__((cleanup(yaml_tree_release)))

/* The value of a key in a mapping, borrowed; NULL where there is none. */
const struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key);

#endif
