/* .pegfs/stats: what the daemon counts, as Prometheus text (exposition format 0.0.4). */
#ifndef PEGFS_FS_STATS_H
#define PEGFS_FS_STATS_H

#include "core/base/buf.h"

struct forest_tree;
struct server;

/* Both return 0 or a negative errno. The second is what a user is told of it in his own tree. */
int stats_render(const struct server *server, struct buf *out);
int stats_render_of_tree(
	const struct server *server, const struct forest_tree *tree, struct buf *out);

#endif
