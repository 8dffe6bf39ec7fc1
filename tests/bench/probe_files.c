/* Drivers that look at files, the same way whatever file system they are on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/bench/probe.h"

static char bytes[1 << 20];

static void stat_step(void *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		probe_die("stat", path);
}

static size_t read_file_at(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	size_t all = 0;
	ssize_t got = -1;
	if (fd >= 0)
		while ((got = read(fd, bytes, sizeof(bytes))) > 0)
			all += (size_t)got;
	if (got < 0)
		probe_die("reading", path);
	close(fd);
	return all;
}

static void cat_step(void *path)
{
	read_file_at(AT_FDCWD, path);
}

static void list_step(void *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	struct stat st;
	if (!dir)
		probe_die("listing", path);
	while ((entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			probe_die("stat", entry->d_name);
	closedir(dir);
}

int probe_stat(int argc, char **argv)
{
	return argc == 1 ? probe_drive(stat_step, argv[0]) : 2;
}

int probe_cat(int argc, char **argv)
{
	return argc == 1 ? probe_drive(cat_step, argv[0]) : 2;
}

int probe_list(int argc, char **argv)
{
	return argc == 1 ? probe_drive(list_step, argv[0]) : 2;
}

/* What a daemon has to read at the least: each tool's directory and its TOOL.md. */
static void walk_tool(int root_fd, const char *name)
{
	int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct stat st;
	if (!dir)
		probe_die("listing", name);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
			fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			probe_die("stat", entry->d_name);
	read_file_at(fd, "TOOL.md");
	closedir(dir);
}

int probe_walk(int argc, char **argv)
{
	int64_t start = probe_now_ns();
	DIR *root = argc == 1 ? opendir(argv[0]) : NULL;
	const struct dirent *entry;
	if (!root)
		return 2;
	while ((entry = readdir(root)))
		if (entry->d_name[0] != '.')
			walk_tool(dirfd(root), entry->d_name);
	closedir(root);
	printf("%lld\n", (long long)(probe_now_ns() - start));
	return 0;
}

struct noticing {
	int inotify_fd;
	char from[PATH_MAX], to[PATH_MAX];
};

static void rename_step(void *arg)
{
	struct noticing *noticing = arg;
	if (rename(noticing->from, noticing->to) < 0)
		probe_die("renaming", noticing->from);
	if (read(noticing->inotify_fd, bytes, sizeof(bytes)) <= 0)
		probe_die("waiting for", noticing->to);
	char path[PATH_MAX];
	memcpy(path, noticing->from, sizeof(path));
	memcpy(noticing->from, noticing->to, sizeof(path));
	memcpy(noticing->to, path, sizeof(path));
}

int probe_noticed(int argc, char **argv)
{
	struct noticing noticing = { .inotify_fd = inotify_init1(IN_CLOEXEC) };
	if (argc != 1)
		return 2;
	snprintf(noticing.from, sizeof(noticing.from), "%s/noticed-a", argv[0]);
	snprintf(noticing.to, sizeof(noticing.to), "%s/noticed-b", argv[0]);
	int fd = open(noticing.from, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || inotify_add_watch(noticing.inotify_fd, argv[0], IN_MOVED_TO) < 0)
		probe_die("watching", argv[0]);
	close(fd);
	return probe_drive(rename_step, &noticing);
}
