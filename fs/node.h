/*
 * The nodes of the tree. Each kind is one row of a table: where it stands, what it is called, its
 * mode, how it may be cached, and how its bytes are made. A new synthesized file is one row and one
 * render function (view.c).
 */
#ifndef PEGFS_FS_NODE_H
#define PEGFS_FS_NODE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "core/running/call.h"
#include "core/tools/tool.h"
#include "fs/file.h"
#include "fs/ino.h"

struct server;

enum node_kind {
	NODE_ROOT,
	NODE_README,
	NODE_ALL_PROMPT,
	NODE_TOOLS_JSON,
	NODE_META,
	NODE_VERSION,
	NODE_TOOLS,
	NODE_ERRORS,
	NODE_STATS,
	NODE_CONFIG,
	NODE_FORMATS,
	NODE_TYPEBOX,
	NODE_TOOL,
	NODE_SCHEMA,
	NODE_PROMPT,
	NODE_CALL,
	NODE_RESULT_JSON,
	NODE_RESULT_TEXT,
	NODE_LOG,
	NODE_RUN,
	NODE_CALLS,
	NODE_CALL_DIR,
	NODE_ID_CALL,
	NODE_ID_CANCEL,
	NODE_ID_STATUS,
	NODE_ID_REQUEST,
	NODE_ID_PROGRESS,
	NODE_ID_RESULT_JSON,
	NODE_ID_RESULT_TEXT,
	NODE_ID_LOG,
	NODE_FILE,
	/* New ones come here: their numbers are part of node numbers, which outlive a server. */
	NODE_FORMAT_MCP,
	NODE_FORMAT_OPENAI,
	NODE_FORMAT_RESPONSES,
	NODE_FORMAT_ANTHROPIC,
	NODE_FORMAT_GEMINI,
	NODE_FORMAT_NAMES,
	NODE_FORMAT_NOTES,
	NODE_EVENTS,
	NODE_USERS,
	NODE_KINDS,
};

/* How the kernel may cache a node: call-semantics.md 4.2. */
enum node_caching {
	NODE_CACHED,   /* long timeouts, keep_cache; a new number when the content changes */
	NODE_OF_CALL,  /* a number for each call: entry 0; attributes long, keep_cache at its end */
	NODE_VOLATILE, /* direct_io, all timeouts 0 */
	NODE_PASSED,   /* a tool's own file: short timeouts, keep_cache, can be mapped */
};

struct node;

struct node_type {
	const char *name; /* NULL: named by the tool, the call or the file */
	enum node_kind parent;
	mode_t mode;
	enum node_caching caching;
	/* The bytes of a file that is the same for all who read it; NULL for others. */
	int (*render)(const struct server *server, const struct node *node, struct buf *out);
	enum call_part part; /* what it shows of a call; CALL_PARTS: none */
};

extern const struct node_type node_types[NODE_KINDS];

/* A node number, understood. Pointers are borrowed for the time of one request. */
struct node {
	uint64_t ino;
	enum node_kind kind;
	struct forest_tree *tree; /* in which it is; never NULL */
	struct tool *tool;        /* NULL above the tools */
	const struct call *call;  /* what a call left; NULL: no call yet */
	const struct file *file;  /* NODE_FILE */
	const struct node_type *type;
};

/* Understands a number. Returns 0, or -ESTALE where what it meant is gone. */
int node_get(const struct server *server, uint64_t ino, struct node *node);

/* The kind of that name below parent (NODE_ROOT, NODE_META, NODE_TOOL, ...), or NODE_KINDS. */
enum node_kind node_kind_of(enum node_kind parent, const char *name);

/* A static node of a tree (tool NULL) or of a tool in it. */
void node_set_in(const struct server *server, struct node *node, enum node_kind kind,
	struct forest_tree *tree, struct tool *tool);

/* The same; tool NULL: of the tree at the mount point. The tool's tree is there. */
void node_set(
	const struct server *server, struct node *node, enum node_kind kind, struct tool *tool);

/* Whether the tree has nodes of that kind: above users' trees there are others than in them. */
bool node_is_shown(
	const struct server *server, enum node_kind kind, const struct forest_tree *tree);

/* A node of a call: kind is NODE_CALL_DIR, one below it, or one of NODE_RESULT_JSON and the like. */
void node_set_of_call(const struct server *server, struct node *node, enum node_kind kind,
	const struct call *call);

/* Whether it can be opened for writing. */
bool node_is_writable(const struct node *node);

bool node_is_dir(const struct node *node);

#endif
