/*
 * The environment of a tool: the variables of the platform (R69 to R78) with their defaults, what a
 * program needs to run at all, and what was asked for. Nothing else of the daemon's own leaks in.
 */
#ifndef PEGFS_RUNNING_ENVIRONMENT_H
#define PEGFS_RUNNING_ENVIRONMENT_H

#include <stddef.h>

#include "core/base/fail.h"

struct environment {
	char **items; /* owned; NAME=VALUE, NULL-terminated; no name twice */
	size_t count, capacity;
};

#define ENVIRONMENT_INIT                                                                           \
	{                                                                                          \
		.items = NULL, .count = 0, .capacity = 0                                           \
	}

void environment_release(struct environment *environment);
#define auto_environment __attribute__((cleanup(environment_release)))

/* The platform's variables and PATH, LANG and the like, from this process's own environment. */
void environment_load(struct environment *environment, const char *tools_dirs);

/*
 * Sets what a file of NAME=VALUE lines says: blank lines and those that begin with # are passed
 * over, quotes around a value are taken off. 0, or *why with the line; never a value.
 */
int environment_load_file(struct environment *environment, const char *path, struct fail *why);

/*
 * Sets NAME=VALUE over what is there; HOME sets OFFICER_USER_HOME with it (R70). 0, or -EINVAL and
 * *why where it has no name.
 */
int environment_put(struct environment *environment, const char *assignment, struct fail *why);

#endif
