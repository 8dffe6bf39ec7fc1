#include "core/tools/pathwalk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/ownmount.h"
#include "core/base/xalloc.h"

struct walk {
	int fd;     /* owned; where it is now */
	char *rest; /* owned; what is to follow */
	int links;  /* followed so far */
	const struct covered *covered;
	pathwalk_on_step *on_step;
	void *arg;
};

static int open_top(void)
{
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whether the mount whose root fd is has the mount point of ours. */
static bool is_ours(const struct covered *covered, int fd)
{
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = covered && covered->path ? readlink(link, path, sizeof(path)) : -1;
	return len > 0 && (size_t)len == strlen(covered->path) &&
	       memcmp(path, covered->path, (size_t)len) == 0;
}

/* The name is a mount point. Its root is looked up without asking who serves the mount. */
static int cross(const struct walk *walk, const char *name)
{
	auto_close int fd = io_open_resolve(walk->fd, name, O_PATH | O_DIRECTORY, 0);
	if (fd < 0 || !ownmount_has(fd))
		return take_fd(&fd);
	if (!is_ours(walk->covered, fd))
		return -EXDEV;
	int below = fcntl(walk->covered->fd, F_DUPFD_CLOEXEC, 0);
	return below < 0 ? -errno : below;
}

/* Whether the name before the rest is in the part without links; these never shorten the rest. */
static bool is_plain(const struct walk *walk)
{
	return walk->covered && strlen(walk->rest) < walk->covered->plain;
}

static int look_up(const struct walk *walk, const char *name)
{
	if (strcmp(name, "..") == 0) {
		int fd = openat(walk->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (walk->on_step && (is_plain(walk) || !walk->covered || !walk->covered->plain))
		walk->on_step(walk->arg, walk->fd, name);
	int fd = io_open_resolve(walk->fd, name, O_PATH | O_NOFOLLOW, RESOLVE_NO_XDEV);
	return fd == -EXDEV ? cross(walk, name) : fd;
}

/* Puts what the link says before the rest. */
static int follow(struct walk *walk, int link_fd)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(link_fd, "", target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	if (len == 0)
		return -ENOENT;
	if (++walk->links > PATHWALK_LINKS_MAX)
		return -ELOOP;
	target[len] = '\0';
	if (*target == '/') {
		int top = open_top();
		if (top < 0)
			return top;
		close(walk->fd);
		walk->fd = top;
	}
	char *rest = xasprintf("%s/%s", target, walk->rest);
	free(walk->rest);
	walk->rest = rest;
	return strlen(rest) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Takes the first name off the rest. False where there is none. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 1], int *result)
{
	const char *at = walk->rest;
	for (;;) {
		at += strspn(at, "/");
		size_t len = strcspn(at, "/");
		if (len == 0)
			return false;
		bool is_here = len == 1 && *at == '.';
		if (!is_here) {
			*result = len > NAME_MAX ? -ENAMETOOLONG : 0;
			snprintf(name, NAME_MAX + 1, "%.*s", (int)(len > NAME_MAX ? 0 : len), at);
			memmove(walk->rest, at + len, strlen(at + len) + 1);
			return true;
		}
		at += len;
	}
}

static int step(struct walk *walk, const char *name)
{
	auto_close int fd = look_up(walk, name);
	struct stat st;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return is_plain(walk) ? -ELOOP : follow(walk, fd);
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	close(walk->fd);
	walk->fd = take_fd(&fd);
	return 0;
}

int pathwalk_open(
	const char *path, const struct covered *covered, pathwalk_on_step *on_step, void *arg)
{
	struct walk walk = { .fd = open_top(),
		.rest = xstrdup(path),
		.covered = covered,
		.on_step = on_step,
		.arg = arg };
	char name[NAME_MAX + 1];
	int result = walk.fd < 0 ? walk.fd : 0;
	while (result == 0 && next_name(&walk, name, &result) && result == 0)
		result = step(&walk, name);
	free(walk.rest);
	if (result < 0 && walk.fd >= 0)
		close(walk.fd);
	return result < 0 ? result : walk.fd;
}
