/* `pegfs serve`: what the supervisor starts. Not for people: it needs the descriptors it is given. */
#ifndef PEGFS_FS_CMD_SERVE_H
#define PEGFS_FS_CMD_SERVE_H

#include "core/cmd/command.h"

extern const struct command cmd_serve;

#endif
