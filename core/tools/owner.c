#include "core/tools/owner.h"

#include <stdlib.h>

#include "core/base/xalloc.h"

struct owner *owner_new(const char *name)
{
	struct owner *owner = xcalloc(1, sizeof(*owner));
	*owner = (struct owner){ .refs = 1, .name = xstrdup(name) };
	return owner;
}

struct owner *owner_ref(struct owner *owner)
{
	owner->refs++;
	return owner;
}

static void free_env(char **env)
{
	for (char **at = env; at && *at; at++)
		free(*at);
	free(env);
}

void owner_unref(struct owner *owner)
{
	if (!owner || --owner->refs > 0)
		return;
	free_env(owner->env);
	free_env(owner->env_there);
	free(owner->name);
	free(owner);
}

static char **copy_env(const char *const *env)
{
	size_t count = 0;
	while (env[count])
		count++;
	char **copy = xcalloc(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(env[i]);
	return copy;
}

void owner_set_env(struct owner *owner, const char *const *env, const char *const *env_there)
{
	free_env(owner->env);
	free_env(owner->env_there);
	owner->env = copy_env(env);
	owner->env_there = copy_env(env_there);
}
