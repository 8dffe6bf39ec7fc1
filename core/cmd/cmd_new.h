/* new: a fresh tool to begin with. */
#ifndef PEGFS_CMD_CMD_NEW_H
#define PEGFS_CMD_CMD_NEW_H

int cmd_new(int argc, char **argv);

#endif
