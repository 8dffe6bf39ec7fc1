/* The files of .pegfs/formats (core/tools/formats.h), as render functions of the table of kinds. */
#ifndef PEGFS_FS_FORMATVIEW_H
#define PEGFS_FS_FORMATVIEW_H

#include "core/base/buf.h"

struct node;
struct server;

/* All return 0 or a negative errno. */
int formatview_typebox(const struct server *server, const struct node *node, struct buf *out);
int formatview_mcp(const struct server *server, const struct node *node, struct buf *out);
int formatview_openai(const struct server *server, const struct node *node, struct buf *out);
int formatview_responses(const struct server *server, const struct node *node, struct buf *out);
int formatview_anthropic(const struct server *server, const struct node *node, struct buf *out);
int formatview_gemini(const struct server *server, const struct node *node, struct buf *out);
int formatview_names(const struct server *server, const struct node *node, struct buf *out);
int formatview_notes(const struct server *server, const struct node *node, struct buf *out);

#endif
