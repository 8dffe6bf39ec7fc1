/* pegfs mount, pegfs umount, pegfs reload. */
#ifndef PEGFS_FS_CMD_MOUNT_H
#define PEGFS_FS_CMD_MOUNT_H

#include "core/cmd/command.h"

extern const struct command cmd_mount; /* less its options: options_table() */
extern const struct command cmd_umount;
extern const struct command cmd_reload;

int cmd_mount_helper(int argc, char **argv); /* as mount(8) runs it: SOURCE MOUNTPOINT -o ... */

#endif
