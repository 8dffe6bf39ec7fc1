/*
 * The command line of bubblewrap (bwrap(1)) around a tool host: namespaces of its own, the system to
 * be read only, and of all else only the tool's directory and the user's data.
 */
#ifndef PEGFS_RUNNING_SANDBOX_H
#define PEGFS_RUNNING_SANDBOX_H

#include <stddef.h>

enum sandbox_kind {
	SANDBOX_NONE,
	SANDBOX_BWRAP,         /* with the network */
	SANDBOX_BWRAP_OFFLINE, /* a network of its own, which leads nowhere */
};

#define SANDBOX_WORDS_MAX 128

/* Everything is borrowed. */
struct sandbox_setup {
	enum sandbox_kind kind;
	const char *bwrap;   /* its path */
	const char *program; /* that is run: bound where it lies, for it may lie anywhere */
	const char *lib_dir; /* the host scripts */
	const char *tool_dir;
	const char *cache_dir;   /* NULL: none */
	const char *const *env;  /* of the tool: says where the user's data are */
	const char *const *argv; /* what is run, NULL-terminated */
};

/* A command line; words are borrowed from the setup but for `owned`. */
struct sandbox {
	const char *words[SANDBOX_WORDS_MAX];
	size_t count;
	char *owned[4];
	size_t owned_count;
};

/*
 * sandbox->words is the command line, NULL-terminated. The program is the first process of a pid
 * namespace and the only child of bwrap, which waits for it.
 */
void sandbox_make(struct sandbox *sandbox, const struct sandbox_setup *setup);
void sandbox_release(struct sandbox *sandbox);

#endif
