/* A tool as its TOOL.md describes it: plain data, never changed once it is in a snapshot. */
#ifndef PEGFS_TOOLS_TOOL_H
#define PEGFS_TOOLS_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define TOOL_NAME_MAX 128
#define TOOL_FILE "TOOL.md"

enum input_type { INPUT_STRING, INPUT_NUMBER, INPUT_BOOLEAN, INPUT_ENUM }; /* R21 to R24 */

struct owner;
struct root;

struct input {
	char *name;        /* owned */
	char *description; /* owned, "" where missing (R27) */
	enum input_type type;
	bool optional;  /* R28 */
	bool sensitive; /* R29 */
	char **values;  /* owned; of INPUT_ENUM (R30), never empty there */
	size_t value_count;
	json_t *default_value; /* owned, of the input's type; NULL: none (R31) */
};

enum language { LANGUAGE_TYPESCRIPT, LANGUAGE_PYTHON, LANGUAGE_BASH }; /* R19 */

/* Shared and counted: a snapshot, and each call that runs, hold a reference. */
struct tool {
	size_t refs;
	/* from the front matter, owned */
	char *name;  /* R15; a safe file name */
	char *label; /* R16; never NULL */
	char *description;
	int64_t version; /* R18, A1; 0 where missing */
	enum language language;
	unsigned timeout_ms;  /* TOOL.md's `timeout` (seconds there); 0: none given */
	struct input *inputs; /* owned, in the order of TOOL.md */
	size_t input_count;
	json_t *parameters; /* owned; a JSON Schema of its own for the inputs; NULL: made of them */
	json_t *annotations; /* owned; as the Model Context Protocol has them; NULL: none */
	char *body; /* owned; what follows the closing fence, byte for byte (line ends are LF) */
	size_t body_len;
	/* from where it was found, owned */
	struct root *root; /* owned reference: the directory in which it was found (root.h) */
	char *source; /* absolute path of the directory in which it was found; NULL until placed */
	char *dir_name; /* its name there */
	char *dir;      /* source/dir_name */
	char *entry;    /* file name beside TOOL.md: index.ts, index.js, index.py or index.sh */
	struct timespec mtime; /* of TOOL.md, as it was read */
	uint32_t digest;       /* of TOOL.md's bytes: the same in every process, never secret */
	uint64_t place;        /* a hash of dir */
	uint32_t id;           /* unique in its snapshot, derived from the name */
	/* in a tree of an owner: all above but the id is borrowed from base */
	struct owner *owner; /* owned reference; NULL: there is only one tree */
	struct tool *base;   /* owned reference: the tool as it was found, shared by all trees */
	char *key;           /* owned; "owner/name" */
};

/* One reference, which is the caller's. All fields are zero. */
struct tool *tool_new(void);

/* The tool as it is shown in an owner's tree, one reference; costs little. base has no owner. */
struct tool *tool_new_of(struct tool *base, struct owner *owner);

/* The tool as it was found, which is shared by all trees that show it; borrowed. */
static inline const struct tool *tool_base(const struct tool *tool)
{
	return tool->base ? tool->base : tool;
}

/* What names it among the tools of all trees; borrowed. */
#define TOOL_KEY_MAX 512 /* an owner's name has at most 255 bytes */
static inline const char *tool_key(const struct tool *tool)
{
	return tool->key ? tool->key : tool->name;
}

/* A tool of its own with the same contents, one reference. */
struct tool *tool_copy(const struct tool *tool);
struct tool *tool_ref(struct tool *tool);
void tool_unref(struct tool *tool); /* NULL is allowed */

static inline void auto_tool_unref(struct tool **tool)
{
	tool_unref(*tool);
}
#define auto_tool __attribute__((cleanup(auto_tool_unref)))

/* The input of that name, or NULL. */
const struct input *tool_find_input(const struct tool *tool, const char *name);

/* "typescript", ... and "string", "number", "boolean", "enum". */
const char *language_name(enum language language);
const char *input_type_name(enum input_type type);

#endif
