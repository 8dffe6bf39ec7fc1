/*
 * The directories in which hosts keep translated TypeScript: STATE_DIR/cache/UID, one for each uid,
 * which belongs to it alone, since whoever writes there decides what runs.
 */
#ifndef PEGFS_RUNNING_CACHE_H
#define PEGFS_RUNNING_CACHE_H

#include "core/base/fail.h"
#include "core/running/identity.h"

/*
 * The path of who's directory, the caller's; made where there is none. A new one begins with copies
 * of what this process's own uid has in its: tools are prepared there, and are to be quick for
 * everybody's first call. NULL and *why where it cannot be: hosts work without.
 */
char *cache_make_dir(const char *state_dir, const struct identity *who, struct fail *why);

#endif
