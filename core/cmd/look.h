/* The whole of a command that prints one text of a tree, or of tools of it (tree.h). */
#ifndef PEGFS_CMD_LOOK_H
#define PEGFS_CMD_LOOK_H

#include "core/cmd/command.h"
#include "core/cmd/tree.h"

/*
 * Reads the command's options, which are TREE_OPTIONS, opens the tree and prints render's text.
 * Of arguments there are from `least` to `most`. Returns the exit status.
 */
typedef int look_render(
	const struct tree *tree, char **arguments, struct buf *out, struct fail *why);
int look_run(const struct command *command, int argc, char **argv, int least, int most,
	look_render *render);

#endif
