#include "core/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/auto.h"

#define READ_STEP (64 * 1024)
#define OPEN_TRIES 100

int io_read_all(int fd, struct buf *out)
{
	for (;;) {
		size_t room = out->max - out->len;
		size_t step = room < READ_STEP ? room : READ_STEP;
		char probe;
		if (step > 0 && buf_reserve(out, step) < 0)
			return out->failed;
		ssize_t got = step > 0 ? read(fd, out->data + out->len, step) : read(fd, &probe, 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		if (step == 0)
			return -EFBIG;
		out->len += (size_t)got;
		out->data[out->len] = '\0';
	}
}

int io_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;
	while (len > 0) {
		ssize_t done = write(fd, at, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		len -= (size_t)done;
	}
	return 0;
}

int io_open_resolve(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	/*
	 * EAGAIN: something was renamed meanwhile and the kernel could not be sure; or somebody holds
	 * a lease on the file (fcntl(2)), for which nobody here can wait, hence the limit.
	 */
	for (int tries = 0;; tries++) {
		long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EINTR && (errno != EAGAIN || tries >= OPEN_TRIES))
			return -errno;
	}
}

int io_open_beneath(int dir_fd, const char *path, int flags)
{
	return io_open_resolve(dir_fd, path, flags, 0);
}

int io_reopen(int path_fd)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int io_look_regular(int dir_fd, const char *path, struct stat *st)
{
	auto_close int fd = io_open_beneath(dir_fd, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	if (!S_ISREG(st->st_mode))
		return S_ISDIR(st->st_mode) ? -EISDIR : -EINVAL;
	return take_fd(&fd);
}

int io_open_regular(int dir_fd, const char *path)
{
	/* Looked at before it is opened: opening a device can have effects of its own. */
	struct stat st;
	auto_close int seen = io_look_regular(dir_fd, path, &st);
	return seen < 0 ? seen : io_reopen(seen);
}

int io_load_beneath(int dir_fd, const char *path, struct buf *out)
{
	auto_close int fd = io_open_regular(dir_fd, path);
	return fd < 0 ? fd : io_read_all(fd, out);
}

/* What an earlier process left in its place is no use: it may have another mode, or be a link. */
static int create_fresh(int dir_fd, const char *name, mode_t mode)
{
	for (;;) {
		int fd = openat(
			dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST || unlinkat(dir_fd, name, 0) < 0)
			return -errno;
	}
}

int io_replace_file(int dir_fd, const char *name, const void *bytes, size_t len, mode_t mode)
{
	char temp[NAME_MAX + 1];
	int used = snprintf(temp, sizeof(temp), ".%s.new", name);
	if (used < 0 || used >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	auto_close int fd = create_fresh(dir_fd, temp, mode);
	if (fd < 0)
		return fd;
	int result = io_write_all(fd, bytes, len);
	if (result == 0 && close(take_fd(&fd)) < 0)
		result = -errno;
	if (result == 0 && renameat(dir_fd, temp, dir_fd, name) < 0)
		result = -errno;
	if (result < 0)
		unlinkat(dir_fd, temp, 0);
	return result;
}

static int remove_tree(int dir_fd, const char *name, int depth);

static int remove_contents(int parent_fd, const char *name, int depth)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir) {
		int error = errno;
		close(fd);
		return -error;
	}
	const struct dirent *entry;
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		int result = remove_tree(fd, entry->d_name, depth);
		if (result < 0)
			return result;
	}
	return 0;
}

static int remove_tree(int dir_fd, const char *name, int depth)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* Linux says EISDIR for a directory, POSIX EPERM, which may mean just that as well. */
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	int refused = -errno;
	if (depth == IO_REMOVE_DEPTH_MAX)
		return -ELOOP;
	int result = remove_contents(dir_fd, name, depth + 1);
	if (result == -ENOTDIR && refused == -EPERM)
		return refused;
	if (result < 0)
		return result;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int io_remove_tree(int dir_fd, const char *name)
{
	return remove_tree(dir_fd, name, 0);
}

int io_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}
