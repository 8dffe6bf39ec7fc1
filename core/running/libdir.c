#include "core/running/libdir.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

char *libdir_find(struct fail *why)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len < 0) {
		fail_errno(why, "cannot find out where this program is");
		return NULL;
	}
	exe[len] = '\0';
	for (char *slash = strrchr(exe, '/'); slash; slash = strrchr(exe, '/')) {
		*slash = '\0';
		auto_free char *path = xasprintf("%s/lib/pegfs", exe);
		if (access(path, R_OK) == 0)
			return take_ptr(&path);
	}
	fail_set(why, -ENOENT,
		"the host scripts are missing: there is no lib/pegfs beside or above this program; "
		"run 'make' or 'make install', or give --lib-dir");
	return NULL;
}
