/* check: the linter for tool directories. */
#ifndef PEGFS_CMD_CMD_CHECK_H
#define PEGFS_CMD_CMD_CHECK_H

int cmd_check(int argc, char **argv);

#endif
