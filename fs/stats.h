/* .pegfs/stats: what the daemon counts, as Prometheus text (exposition format 0.0.4). */
#ifndef PEGFS_FS_STATS_H
#define PEGFS_FS_STATS_H

#include "core/base/buf.h"

struct server;

/* Returns 0 or a negative errno. */
int stats_render(const struct server *server, struct buf *out);

#endif
