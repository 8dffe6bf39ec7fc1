/* Whether two directories hold the same: names, kinds, execute permission, contents, links. */
#ifndef PEGFS_TOOLS_SAMETREE_H
#define PEGFS_TOOLS_SAMETREE_H

#include <stdbool.h>

#define SAMETREE_DEPTH_MAX 64

/*
 * Both descriptors are open for reading. What cannot be read, is no file, directory or link, or is
 * nested deeper than SAMETREE_DEPTH_MAX is different.
 */
bool sametree(int a_fd, int b_fd);

#endif
