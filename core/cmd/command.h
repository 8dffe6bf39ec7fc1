/* The command line: a table of commands, each a main() of its own with its own --help. */
#ifndef PEGFS_CMD_COMMAND_H
#define PEGFS_CMD_COMMAND_H

#include <stddef.h>

enum { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2 }; /* exit statuses */

struct command {
	const char *name;
	const char *summary; /* one line for the list of commands */
	int (*run)(int argc, char **argv);
};

/* Those that need no mount; ends with a row of NULL. */
extern const struct command core_commands[];

/*
 * Runs the command that argv[1] names, of either table (more may be NULL); serves --help and
 * --version. Returns its exit status.
 */
int command_main(const struct command *more, int argc, char **argv);

/* "pegfs COMMAND: TEXT" and where to look it up, on standard error. Returns COMMAND_USAGE. */
int command_misuse(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "pegfs COMMAND: TEXT" on standard error. Returns COMMAND_FAILED. */
int command_failed(const char *command, const char *text);

#endif
