/* Reads a command's options by its table, and writes its --help from the same. */
#ifndef PEGFS_CMD_CMDLINE_H
#define PEGFS_CMD_CMDLINE_H

#include <stdio.h>

#include "core/cmd/command.h"

#define CMDLINE_END (-1)
#define CMDLINE_WRONG 0
#define CMDLINE_OPTIONS_MAX 64

/*
 * The next option's id, its value in optarg; CMDLINE_END behind the last one: the arguments are
 * argv[optind] and those that follow. --help is served here and ends the program. CMDLINE_WRONG
 * where there is no such option, which has been told: the command returns COMMAND_USAGE.
 */
int cmdline_next(const struct command *command, int argc, char **argv);

/* Begins with the first option. */
void cmdline_begin(void);

void cmdline_help(const struct command *command, FILE *out);

#endif
