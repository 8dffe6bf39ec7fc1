/* sync: tools from a seed to the directory that agents use, by version. */
#ifndef PEGFS_CMD_CMD_SYNC_H
#define PEGFS_CMD_CMD_SYNC_H

int cmd_sync(int argc, char **argv);

#endif
