#include "core/cmd/ownpath.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"

static bool holds_file(const char *dir, const char *name)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	struct stat st;
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static const char *entry_in(const char *dir)
{
	static const char *const entries[] = { "index.ts", "index.js", "index.py", "index.sh" };
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		if (holds_file(dir, entries[i]))
			return entries[i];
	return NULL;
}

static void warn_of(const char *dir)
{
	const char *entry = holds_file(dir, "TOOL.md") ? entry_in(dir) : NULL;
	if (!entry)
		return;
	auto_free char *real = realpath(dir, NULL);
	char *slash = real ? strrchr(real, '/') : NULL;
	if (slash)
		slash[slash == real] = '\0';
	log_msg(LOG_LEVEL_WARNING,
		"'%s' is a tool itself, for it holds TOOL.md and %s, and tools are looked for in the "
		"directories in it: name the directory that holds the tool, '%s'",
		dir, entry, slash ? real : "..");
}

void ownpath_warn(const char *dirs)
{
	for (const char *at = dirs; *at; at += strspn(at, ":")) {
		size_t len = strcspn(at, ":");
		auto_free char *dir = xstrndup(at, len);
		if (len > 0)
			warn_of(dir);
		at += len;
	}
}
