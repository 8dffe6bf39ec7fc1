/*
 * The command line of the program that starts a tool host where its caller lives (core/host/enter),
 * from a place that is held. Its words, as sandbox.h makes those of another one.
 */
#ifndef PEGFS_RUNNING_ENTER_H
#define PEGFS_RUNNING_ENTER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/running/anchor.h"
#include "core/running/identity.h"
#include "core/running/spawn.h"

/* Everything is borrowed. */
struct enter_setup {
	const char *lib_dir;
	const struct identity *who;
	const struct anchor *anchor;
	const char *tool_dir; /* as it is called there */
	bool is_python;       /* else it is Node */
	const char *heap;     /* an argument for Node; NULL: none */
};

#define ENTER_WORDS_MAX 32

struct enter {
	const char *words[ENTER_WORDS_MAX]; /* NULL-terminated */
	size_t count;
	char *owned[ENTER_WORDS_MAX];
	size_t owned_count;
	int fds[SPAWN_FDS_MAX]; /* borrowed from the anchor; for spawn.h */
	size_t fd_count;
};

/* To be released. The host is the child of the child of what is executed, which is to keep its rights. */
void enter_make(struct enter *enter, const struct enter_setup *setup);
void enter_release(struct enter *enter);

#endif
