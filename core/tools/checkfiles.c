#include "core/tools/checkfiles.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

static const struct {
	const char *pattern, *why;
} clutter[] = {
	{ "package.json", "a tool has no packages" },
	{ "package-lock.json", "a tool has no packages" },
	{ "yarn.lock", "a tool has no packages" },
	{ "pnpm-lock.yaml", "a tool has no packages" },
	{ "bun.lock*", "a tool has no packages" },
	{ "bunfig.toml", "tools run in Node.js" },
	{ "node_modules", "a tool uses the standard library alone" },
	{ "tsconfig*.json", "nothing compiles a tool" },
	{ "dist", "nothing compiles a tool" },
	{ "test", "tests are no part of a tool" },
	{ "tests", "tests are no part of a tool" },
	{ "__tests__", "tests are no part of a tool" },
	{ "*.test.[jt]s", "tests are no part of a tool" },
	{ "*.spec.[jt]s", "tests are no part of a tool" },
	{ "__pycache__", "made by Python, and made again" },
	{ ".git", "a tool is no repository of its own" },
	{ ".DS_Store", "left by a file manager" },
	{ "*~", "left by an editor" },
	{ "*.orig", "left by a merge" },
};

static const char *why_clutter(const char *name)
{
	for (size_t i = 0; i < sizeof(clutter) / sizeof(*clutter); i++)
		if (fnmatch(clutter[i].pattern, name, 0) == 0)
			return clutter[i].why;
	return NULL;
}

static int is_clutter(const struct dirent *entry)
{
	return why_clutter(entry->d_name) != NULL;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

void checkfiles_run(int dir_fd, const char *dir, struct faults *faults)
{
	struct dirent **entries = NULL;
	int count = scandirat(dir_fd, ".", &entries, is_clutter, by_name);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;
		struct faults one = FAULTS_INIT;
		auto_free char *file = xasprintf("%s/%s", dir, name);
		faults_add(&one, FAULT_WARNING, "clutter", 0, 0,
			"'%s' has no use here: %s; remove it", name, why_clutter(name));
		faults_move(faults, &one, file);
		free(entries[i]);
	}
	free(entries);
}
