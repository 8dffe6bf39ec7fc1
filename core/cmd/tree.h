/*
 * Where a command looks at tools: a mount, whose files it reads, or tool directories, which it reads
 * itself; the texts are the same. In this order:
 *
 *   --tools DIR:DIR...   these directories
 *   --mount PATH         the tree that is mounted there
 *   PEGFS_MOUNT          the same
 *   /officer/tools       where a tree is mounted there
 *   PI_TOOLS_DIRS        these directories
 */
#ifndef PEGFS_CMD_TREE_H
#define PEGFS_CMD_TREE_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/cmd/command.h"
#include "core/tools/registry.h"

#define TREE_DEFAULT_MOUNT "/officer/tools"
#define TREE_TEXT_MAX ((size_t)256 * 1024 * 1024)

/* Rows for a command's table of options. */
#define TREE_OPTIONS                                                                               \
	{ "mount", 'm', "DIR",                                                                     \
		"the mounted tree to look at (default: PEGFS_MOUNT, else\n" TREE_DEFAULT_MOUNT     \
		" where one is mounted)",                                                          \
		NULL },                                                                            \
	{                                                                                          \
		"tools", 't', "DIR:DIR...",                                                        \
			"look at tool directories instead, the last one wins\n"                    \
			"(default, where no tree is mounted: PI_TOOLS_DIRS)",                      \
			NULL                                                                       \
	}

struct tree {
	const char *command;                   /* borrowed: whose it is */
	const char *asked_mount, *asked_tools; /* borrowed: of the options; NULL: not given */
	const char *mount;                     /* borrowed; NULL: directories are read */
	const char *tools;                     /* borrowed; NULL: a mount is read */
	struct registry *registry;             /* owned; of the directories */
};

/* Takes the options of TREE_OPTIONS; whether it was one. */
bool tree_take_option(struct tree *tree, int option, const char *value);

/*
 * Finds the mount or scans the directories. An exit status (command.h); what is wrong has been told.
 * To be closed in each case.
 */
int tree_open(struct tree *tree);
void tree_close(struct tree *tree);

/* Where each user has a tree of his own (pegfs mount --data), and this is what is above them. */
bool tree_is_of_users(const struct tree *tree);

enum tree_text {
	TREE_TABLE, /* .pegfs/tools */
	TREE_TOOLS_JSON,
	TREE_ERRORS,
	TREE_ALL_PROMPT,
	TREE_TOOL_PROMPT, /* from here on: of a tool */
	TREE_TOOL_SCHEMA,
};

/* Appends a text; tool is NULL where it is that of all. 0 or *why, which names the tool there is not. */
int tree_read(const struct tree *tree, enum tree_text text, const char *tool, struct buf *out,
	struct fail *why);

/* Appends a file of the mount. */
int tree_read_file(const struct tree *tree, const char *path, struct buf *out, struct fail *why);

/* "there is no tool 'x' ...; did you mean 'y'?" Returns why->code, -ENOENT. */
int tree_no_tool(const struct tree *tree, const char *tool, struct fail *why);

/* "the tree at '/officer/tools'" or "the directories 'a:b'". */
void tree_describe(const struct tree *tree, struct buf *out);

/*
 * The end of a command that prints: writes out to standard output, and what failed to standard error.
 * Returns the exit status.
 */
int tree_print(struct tree *tree, const struct buf *out, const struct fail *why);

#endif
