#include "core/tools/swapdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/tools/copytree.h"

/* ---- mending */

static int remove_left(int parent_fd, const char *name, struct fail *why)
{
	int result = copytree_remove(parent_fd, name);
	return result == 0 ? 0
			   : fail_set(why, result,
				     "'%s', left by a run that crashed, cannot be removed: %s",
				     name, strerror(-result));
}

static int put_back(int parent_fd, const char *aside, struct fail *why)
{
	const char *name = aside + strlen(SWAPDIR_OLD);
	struct stat st;
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return remove_left(parent_fd, aside, why);
	if (renameat(parent_fd, aside, parent_fd, name) < 0)
		return fail_errno(
			why, "'%s', set aside by a run that crashed, cannot be put back", name);
	return 0;
}

static int recover_entry(int parent_fd, const char *name, struct fail *why)
{
	if (strcmp(name, SWAPDIR_NEW) == 0)
		return remove_left(parent_fd, name, why);
	bool is_aside = strncmp(name, SWAPDIR_OLD, strlen(SWAPDIR_OLD)) == 0 &&
			name[strlen(SWAPDIR_OLD)] != '\0';
	return is_aside ? put_back(parent_fd, name, why) : 0;
}

int swapdir_recover(int parent_fd, struct fail *why)
{
	auto_close int fd = openat(parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return fail_errno(why, "the directory cannot be read");
	take_fd(&fd);
	const struct dirent *entry;
	while ((errno = 0, entry = readdir(dir)))
		if (recover_entry(parent_fd, entry->d_name, why) < 0)
			return why->code;
	return errno ? fail_errno(why, "the directory cannot be read") : 0;
}

/* ---- placing */

/* Where a file system has no exchange (some network and FUSE ones): two steps. */
static int place_in_two_steps(int parent_fd, const char *name, struct fail *why)
{
	char aside[NAME_MAX + 1];
	int len = snprintf(aside, sizeof(aside), SWAPDIR_OLD "%s", name);
	if (len < 0 || len >= (int)sizeof(aside))
		return fail_set(why, -ENAMETOOLONG,
			"the name is too long for a file system that cannot exchange directories; "
			"shorten it");
	if (renameat(parent_fd, name, parent_fd, aside) < 0)
		return fail_errno(why, "the old directory cannot be renamed");
	if (renameat(parent_fd, SWAPDIR_NEW, parent_fd, name) < 0) {
		fail_errno(why, "the new directory cannot be renamed");
		(void)renameat(parent_fd, aside, parent_fd, name);
		return why->code;
	}
	(void)fsync(parent_fd);
	return remove_left(parent_fd, aside, why);
}

int swapdir_place(int parent_fd, const char *name, bool had_old, struct fail *why)
{
	unsigned how = had_old ? RENAME_EXCHANGE : RENAME_NOREPLACE;
	if (renameat2(parent_fd, SWAPDIR_NEW, parent_fd, name, how) < 0) {
		if (errno != EINVAL && errno != ENOSYS)
			return fail_errno(why, "the copy cannot be put in place");
		if (had_old)
			return place_in_two_steps(parent_fd, name, why);
		/* A directory never replaces one that is not empty. */
		if (renameat(parent_fd, SWAPDIR_NEW, parent_fd, name) < 0)
			return fail_errno(why, "the copy cannot be put in place");
	}
	/* Not every file system can: the step itself was atomic all the same. */
	(void)fsync(parent_fd);
	return had_old ? remove_left(parent_fd, SWAPDIR_NEW, why) : 0;
}
