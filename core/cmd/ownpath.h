/* A tool's own directory where one that holds tools belongs: the mistake that everybody makes once. */
#ifndef PEGFS_CMD_OWNPATH_H
#define PEGFS_CMD_OWNPATH_H

/*
 * Warns of each of the directories (colon-separated, as in --tools) that is a tool itself, by its TOOL.md
 * and entry file, and says what to name. It is no error: who may write to a directory of tools could
 * stop a mount with it.
 */
void ownpath_warn(const char *dirs);

#endif
