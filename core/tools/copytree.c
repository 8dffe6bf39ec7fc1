#include "core/tools/copytree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"

#define COPY_STEP (64 * 1024)
#define MODE_KEPT 0777 /* not the set-user-id, set-group-id and sticky bits */

/* ---- a place, for messages: "bin/run.sh" below the directory that is copied */

struct place {
	char path[PATH_MAX];
	size_t len;
};

/* Goes into an entry. Returns the length to go back to. */
static size_t enter(struct place *place, const char *name)
{
	size_t before = place->len;
	int more = snprintf(place->path + before, sizeof(place->path) - before, "%s%s",
		before ? "/" : "", name);
	size_t len = before + (size_t)(more > 0 ? more : 0);
	place->len = len < sizeof(place->path) ? len : sizeof(place->path) - 1;
	return before;
}

static void leave(struct place *place, size_t before)
{
	place->len = before;
	place->path[before] = '\0';
}

/* ---- directories */

/* Takes fd. NULL and errno where it fails. */
static DIR *open_listing(int fd)
{
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int error = errno;
		close(fd);
		errno = error;
	}
	return dir;
}

/* The next entry that is neither "." nor ".."; NULL at the end, or with errno set. */
static const struct dirent *next_entry(DIR *dir)
{
	const struct dirent *entry;
	do {
		errno = 0;
		entry = readdir(dir);
	} while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry;
}

/* ---- copying */

/* Writes a file or a directory to disk. Some file systems cannot, and have nothing to lose. */
static int flush(int fd)
{
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int copy_bytes(int from, int to)
{
	char step[COPY_STEP];
	for (;;) {
		ssize_t got = read(from, step, sizeof(step));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		int result = io_write_all(to, step, (size_t)got);
		if (result < 0)
			return result;
	}
}

static int copy_file(int from_dir, int to_dir, const char *name)
{
	struct stat st;
	auto_close int from =
		openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	auto_close int to =
		openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	int result = copy_bytes(from, to);
	if (result == 0 && fchmod(to, st.st_mode & MODE_KEPT) < 0)
		result = -errno;
	if (result == 0)
		result = flush(to);
	if (result == 0 && close(take_fd(&to)) < 0)
		result = -errno;
	return result;
}

static int copy_link(int from_dir, int to_dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from_dir, name, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = '\0';
	return symlinkat(target, to_dir, name) < 0 ? -errno : 0;
}

static int copy_dir(int from_fd, int to_dir, const char *name, int depth, struct place *place,
	struct fail *why);

static int copy_subdir(int from_dir, int to_dir, const char *name, int depth, struct place *place,
	struct fail *why)
{
	auto_close int from =
		openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return fail_errno(why, "'%s' cannot be read", place->path);
	if (depth == COPYTREE_DEPTH_MAX)
		return fail_set(why, -ELOOP,
			"'%s' is nested deeper than %d directories; flatten it", place->path,
			COPYTREE_DEPTH_MAX);
	return copy_dir(from, to_dir, name, depth + 1, place, why);
}

static int copy_entry(int from_dir, int to_dir, const char *name, int depth, struct place *place,
	struct fail *why)
{
	struct stat st;
	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(why, "'%s' cannot be looked at", place->path);
	if (S_ISDIR(st.st_mode))
		return copy_subdir(from_dir, to_dir, name, depth, place, why);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return fail_set(why, -EINVAL,
			"'%s' is a FIFO, a socket or a device, and no part of a tool; remove it",
			place->path);
	int result = S_ISLNK(st.st_mode) ? copy_link(from_dir, to_dir, name)
					 : copy_file(from_dir, to_dir, name);
	if (result == 0)
		return 0;
	return fail_set(why, result, "'%s' cannot be copied: %s", place->path, strerror(-result));
}

static int copy_entries(int from_fd, int to_fd, int depth, struct place *place, struct fail *why)
{
	int listed = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *dir = listed < 0 ? NULL : open_listing(listed);
	if (!dir)
		return fail_errno(why, "'%s' cannot be read", place->len ? place->path : ".");
	const struct dirent *entry;
	while ((entry = next_entry(dir))) {
		size_t before = enter(place, entry->d_name);
		int result = copy_entry(from_fd, to_fd, entry->d_name, depth, place, why);
		leave(place, before);
		if (result < 0)
			return result;
	}
	return errno ? fail_errno(why, "'%s' cannot be read", place->len ? place->path : ".") : 0;
}

static int copy_dir(
	int from_fd, int to_dir, const char *name, int depth, struct place *place, struct fail *why)
{
	const char *shown = place->len ? place->path : ".";
	struct stat st;
	if (fstat(from_fd, &st) < 0)
		return fail_errno(why, "'%s' cannot be looked at", shown);
	if (mkdirat(to_dir, name, 0700) < 0)
		return fail_errno(why, "the copy of '%s' cannot be made", shown);
	auto_close int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return fail_errno(why, "the copy of '%s' cannot be opened", shown);
	int result = copy_entries(from_fd, to, depth, place, why);
	/* Last: the mode may not let its owner write. */
	if (result == 0 && fchmod(to, st.st_mode & MODE_KEPT) < 0)
		return fail_errno(why, "the mode of the copy of '%s' cannot be set", shown);
	if (result == 0 && flush(to) < 0)
		return fail_errno(why, "the copy of '%s' cannot be written to disk", shown);
	return result;
}

int copytree(int from_fd, int to_fd, const char *name, struct fail *why)
{
	struct place place = { .len = 0 };
	return copy_dir(from_fd, to_fd, name, 1, &place, why);
}

/* ---- removing */

/* Makes the directories of a tree writable for their owner, as far as that is possible. */
static void loosen(int parent_fd, const char *name, int depth)
{
	struct stat st;
	bool is_dir =
		fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
	if (!is_dir || depth > IO_REMOVE_DEPTH_MAX)
		return;
	if ((st.st_mode & 0700) != 0700 && fchmodat(parent_fd, name, st.st_mode | 0700, 0) < 0)
		return; /* who removes it will say why it cannot */
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_closedir DIR *dir = fd < 0 ? NULL : open_listing(fd);
	const struct dirent *entry;
	while (dir && (entry = next_entry(dir)))
		loosen(fd, entry->d_name, depth + 1);
}

int copytree_remove(int to_fd, const char *name)
{
	int result = io_remove_tree(to_fd, name);
	if (result != -EACCES)
		return result;
	loosen(to_fd, name, 0);
	return io_remove_tree(to_fd, name);
}
