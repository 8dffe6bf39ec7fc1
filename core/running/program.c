#include "core/running/program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

const char *program_get_env(const char *const *env, const char *name)
{
	size_t len = strlen(name);
	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

char *program_find(const char *name, const char *const *env, struct fail *why)
{
	const char *path = program_get_env(env, "PATH");
	if (!path)
		path = USUAL_PATH;
	for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int len = (int)strcspn(at, ":");
		struct stat st;
		auto_free char *file = xasprintf("%.*s/%s", len, at, name);
		if (len > 0 && *at == '/' && access(file, X_OK) == 0 && stat(file, &st) == 0 &&
			S_ISREG(st.st_mode))
			return take_ptr(&file);
	}
	fail_set(why, -ENOENT,
		"'%s' is not installed: it is in none of the directories of PATH (%s)", name, path);
	return NULL;
}
