/* pegfs mount, pegfs umount, pegfs reload. */
#ifndef PEGFS_FS_CMD_MOUNT_H
#define PEGFS_FS_CMD_MOUNT_H

int cmd_mount(int argc, char **argv);
int cmd_mount_helper(int argc, char **argv); /* as mount(8) runs it: SOURCE MOUNTPOINT -o ... */
int cmd_umount(int argc, char **argv);
int cmd_reload(int argc, char **argv);

#endif
