/*
 * (snapshot, node) -> bytes. Each text is made once for a snapshot, at the first need: its size is
 * kept for good, for `ls -l` shows true sizes; its bytes as long as there is room.
 */
#ifndef PEGFS_FS_VIEW_H
#define PEGFS_FS_VIEW_H

#include "core/base/buf.h"
#include "core/base/bytes.h"
#include "core/base/fail.h"
#include "core/base/map.h"
#include "core/tools/tool.h"

struct forest_tree;
struct server;
struct node;

struct views {
	struct map by_node; /* owned struct view */
	size_t held;        /* bytes in there */
};

/* Forgets and frees all texts: the snapshot has changed, or the server ends. */
void views_reset(struct views *views);

/* The same for those of one tree. */
void views_forget(struct views *views, const struct forest_tree *tree);

/* The bytes of a node with a render function; a new reference, or NULL and *why. */
struct bytes *view_get(struct server *server, const struct node *node, struct fail *why);

/* Its exact size. Returns 0 or a negative errno. */
int view_size(struct server *server, const struct node *node, size_t *size);

/* What a result node holds while there is no result: "null\n" in JSON, else nothing; static. */
const char *view_without_result(const struct node *node);

/* The bytes of a node of a call, as they are now; a new reference, or NULL and *why. */
struct bytes *view_get_of_call(
	const struct server *server, const struct node *node, struct fail *why);

/* How many they are. */
size_t view_size_of_call(const struct node *node);

/* The render functions of the table of kinds. */
int view_readme(const struct server *server, const struct node *node, struct buf *out);
int view_all_prompt(const struct server *server, const struct node *node, struct buf *out);
int view_tools_json(const struct server *server, const struct node *node, struct buf *out);
int view_version(const struct server *server, const struct node *node, struct buf *out);
int view_tools(const struct server *server, const struct node *node, struct buf *out);
int view_errors(const struct server *server, const struct node *node, struct buf *out);
int view_stats(const struct server *server, const struct node *node, struct buf *out);
int view_users(const struct server *server, const struct node *node, struct buf *out);
int view_config(const struct server *server, const struct node *node, struct buf *out);
int view_schema(const struct server *server, const struct node *node, struct buf *out);
int view_prompt(const struct server *server, const struct node *node, struct buf *out);
int view_run(const struct server *server, const struct node *node, struct buf *out);
int view_usage(const struct server *server, const struct node *node, struct buf *out);

#endif
