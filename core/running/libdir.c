#include "core/running/libdir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"
#include "core/running/unpack.h"

/* Of core/embedded.S, where that is linked in; else both are NULL. */
extern const char libdir_archive[] __attribute__((weak));
extern const char libdir_archive_end[] __attribute__((weak));

/* ---- beside the program */

static char *find_beside(struct fail *why)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len < 0) {
		fail_errno(why, "cannot find out where this program is (is /proc mounted?)");
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

/* ---- out of the program */

/* Whether it is a directory of ours that nobody else writes to, and programs in it can be run. */
static bool is_good(const char *path)
{
	struct stat st;
	struct statvfs fs;
	auto_close int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && fstatvfs(fd, &fs) == 0 && st.st_uid == geteuid() &&
	       !(st.st_mode & 022) && !(fs.f_flag & ST_NOEXEC);
}

static bool can_hold(const char *parent)
{
	struct statvfs fs;
	return access(parent, W_OK | X_OK) == 0 && statvfs(parent, &fs) == 0 &&
	       !(fs.f_flag & (ST_NOEXEC | ST_RDONLY));
}

/* Unpacks beside the place and renames: others see all of it or nothing. */
static int fill(
	const char *parent, const char *path, const char *archive, size_t len, struct fail *why)
{
	auto_free char *fresh = xasprintf("%s/pegfs-lib-XXXXXX", parent);
	if (!mkdtemp(fresh))
		return fail_errno(why, "cannot make a directory in '%s'", parent);
	auto_close int fd = open(fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0755) < 0)
		fail_errno(why, "cannot open '%s'", fresh);
	else if (unpack_archive(archive, len, fd, why) == 0 && rename(fresh, path) < 0 &&
		 errno != EEXIST && errno != ENOTEMPTY)
		fail_errno(why, "cannot rename '%s' to '%s'", fresh, path);
	/* Another program was faster, or it failed; after the rename there is nothing left. */
	io_remove_tree(AT_FDCWD, fresh);
	return why->code;
}

static char *unpack_in(
	const char *parent, const char *name, const char *archive, size_t len, struct fail *why)
{
	auto_free char *path = xasprintf("%s/%s", parent, name);
	if (!is_good(path) && fill(parent, path, archive, len, why) < 0)
		return NULL;
	if (is_good(path))
		return take_ptr(&path);
	fail_set(why, -EPERM, "'%s' belongs to somebody else", path);
	return NULL;
}

char *libdir_unpack(const char *archive, size_t len, struct fail *why)
{
	const char *const parents[] = { getenv("TMPDIR"), geteuid() == 0 ? "/run" : NULL,
		getenv("XDG_RUNTIME_DIR"), "/tmp", "/var/tmp", "/dev/shm" };
	char name[64];
	snprintf(name, sizeof(name), "pegfs-lib-%016" PRIx64 "-%u",
		map_hash(MAP_HASH_SEED, archive, len), (unsigned)geteuid());
	struct fail last = FAIL_INIT;
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++) {
		if (!parents[i] || !*parents[i] || !can_hold(parents[i]))
			continue;
		fail_clear(&last);
		char *path = unpack_in(parents[i], name, archive, len, &last);
		if (path)
			return path;
	}
	fail_set(why, -EACCES,
		"there is no place for the host scripts that this program carries%s%s: name a "
		"directory in TMPDIR from which programs can be run, or give --lib-dir",
		last.code ? ": " : "", last.text);
	return NULL;
}

char *libdir_find(struct fail *why)
{
	if (libdir_archive)
		return libdir_unpack(
			libdir_archive, (size_t)(libdir_archive_end - libdir_archive), why);
	return find_beside(why);
}
