/* What `pegfs mount` was asked for: on its command line, or with -o as mount(8) and fstab(5) do. */
#ifndef PEGFS_FS_OPTIONS_H
#define PEGFS_FS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/base/log.h"
#include "core/running/environment.h"
#include "core/running/executor.h"

struct command_option;

struct mount_options {
	char *mountpoint;   /* owned; absolute */
	char *shown_at;     /* owned; the path that the texts name */
	char *tools;        /* owned; colon-separated; with data: the global tools */
	char *data;         /* owned; absolute: the data directory of all users, or NULL */
	char *lib_dir;      /* owned; host scripts and node modules */
	char *seed;         /* owned; absolute: what is synced at the start (sync.h), or NULL */
	char *callers;      /* owned; ",UID,UID," of who may call; NULL: everybody */
	char *audit;        /* owned; where the audit trail goes as well (audit.h), or NULL */
	char *integrations; /* owned; a file (integrations.h), or NULL */
	bool has_tools;     /* --tools was given */
	bool foreground;
	int ready_fd; /* -1: none; gets "READY\n" */
	bool allow_other;
	unsigned long mount_flags;       /* MS_ of mount(2) */
	unsigned keep;                   /* finished calls of each caller and tool */
	size_t request_max;              /* bytes of one request */
	size_t open_per_uid;             /* `call` files that one user has open to write */
	struct executor_config executor; /* limits; its strings and env are not set here */
	unsigned watchdog_ms; /* longest time of the server for one request; 0: for ever */
	bool replays;         /* the server repeats requests, also where the kernel could */
	enum log_level log_level;
	struct environment asked; /* --env and --env-file, in their order */
};

/*
 * Parses the arguments behind `mount` (argv[0] is the command's name); those that mount(8) gives to
 * its helpers begin with what is mounted: the tool directories. Returns 0; 1 where --help is wanted;
 * or -EINVAL and *why. options is to be released in every case.
 */
int options_parse(
	struct mount_options *options, bool is_helper, int argc, char **argv, struct fail *why);
void options_release(struct mount_options *options);

/* The options as a table for the help and completions, with defaults; ends with a row of NULL. */
const struct command_option *options_table(void);

/*
 * The environment of tools as it is now: the platform's variables, over them the integrations, over
 * them what was asked for. Fills *environment, which is released by the caller. 0 or *why.
 */
int options_load_environment(
	const struct mount_options *options, struct environment *environment, struct fail *why);

/*
 * Puts the options into a memory file, for the servers that follow one another. Its descriptor, the
 * caller's, or *why. The tools' environment is not looked up again in there, but in the process's.
 */
int options_save(const struct mount_options *options, struct fail *why);

/* Reads what options_save() wrote. To be released in every case. 0 or *why. */
int options_load(struct mount_options *options, int fd, struct fail *why);

/* Appends the options in force, one NAME=VALUE a line, without the tools' environment's values. */
int options_render(const struct mount_options *options, struct buf *out);

#endif
