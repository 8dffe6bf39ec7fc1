/*
 * Whose tree a tool is in, where several trees share tools (users.h): a name that is unique among
 * them, and the environments in which that one's tools run. Shared and counted: the tree, each of its
 * tools and each call of them hold a reference.
 */
#ifndef PEGFS_TOOLS_OWNER_H
#define PEGFS_TOOLS_OWNER_H

#include <stddef.h>

struct owner {
	size_t refs;
	char *name; /* owned; holds no slash */
	/* owned; NULL-terminated NAME=VALUE; NULL until it is set */
	char **env;       /* where the daemon lives */
	char **env_there; /* where who calls lives, if that is another place (place.h) */
};

/* One reference, which is the caller's. */
struct owner *owner_new(const char *name);
struct owner *owner_ref(struct owner *owner);
void owner_unref(struct owner *owner); /* NULL is allowed */

/* Takes copies, in the place of what was. */
void owner_set_env(struct owner *owner, const char *const *env, const char *const *env_there);

#endif
