/* The command line: a table of commands, each a main() of its own with its own --help. */
#ifndef PEGFS_CMD_COMMAND_H
#define PEGFS_CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

enum { COMMAND_OK = 0, COMMAND_FAILED = 1, COMMAND_USAGE = 2 }; /* exit statuses */

/* One option: getopt_long(3), --help and the shells' completions are made of it (cmdline.h). */
struct command_option {
	const char *name;
	int id;            /* what cmdline_next() returns; a letter is its short form, too */
	const char *value; /* as the help names it: DIR and FILE complete paths; NULL: takes none */
	const char *help;  /* a line, or several */
	const char *words; /* the values that there are, parted by blanks; NULL: any */
};

/* What the words behind the options are, for completions. */
enum command_argument {
	COMMAND_TAKES_NOTHING,
	COMMAND_TAKES_DIRS,
	COMMAND_TAKES_TOOLS,
	COMMAND_TAKES_TEXT,
};

struct command {
	const char *name;
	const char *summary;                  /* one line for the list of commands */
	const char *arguments;                /* what follows the options: "SEED TARGET" */
	const char *about;                    /* what it does: lines of the help */
	const struct command_option *options; /* ends with a row of NULL; --help is added */
	const char *notes;                    /* further lines at the end of the help; NULL: none */
	enum command_argument takes;
	bool is_hidden; /* not in the list of commands */
	int (*run)(int argc, char **argv);
};

/* A program: its commands, and the libraries that it has beyond the core's. */
struct program {
	const struct command *const
		*commands;     /* besides core_commands; ends with NULL; may be NULL */
	const char *libraries; /* ", libfuse 3.14.0"; "" where there is none */
};

/* Those that need no mount; ends with NULL. */
extern const struct command *const core_commands[];

/*
 * Runs the command that argv[1] names, of the program or the core; serves --help and --version.
 * Returns its exit status.
 */
int command_main(const struct program *program, int argc, char **argv);

/* All commands of the running program one after the other: *at begins at 0. NULL after the last. */
const struct command *command_next(size_t *at);

/* "pegfs COMMAND: TEXT" and where to look it up, on standard error. Returns COMMAND_USAGE. */
int command_misuse(const char *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "pegfs COMMAND: TEXT" on standard error. Returns COMMAND_FAILED. */
int command_failed(const char *command, const char *text);

#endif
