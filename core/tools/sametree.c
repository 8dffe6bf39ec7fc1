#include "core/tools/sametree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static bool same_link(int a_fd, int b_fd, const char *name)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t a_len = readlinkat(a_fd, name, a, sizeof(a));
	ssize_t b_len = readlinkat(b_fd, name, b, sizeof(b));
	return a_len >= 0 && a_len == b_len && memcmp(a, b, (size_t)a_len) == 0;
}

/* As much as there is, up to size. */
static ssize_t read_full(int fd, char *bytes, size_t size)
{
	size_t have = 0;
	while (have < size) {
		ssize_t got = read(fd, bytes + have, size - have);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

static bool same_file(int a_fd, int b_fd, const char *name)
{
	char a[32 * 1024], b[sizeof(a)];
	auto_close int a_file = openat(a_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int b_file = openat(b_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (a_file < 0 || b_file < 0)
		return false;
	for (;;) {
		ssize_t a_len = read_full(a_file, a, sizeof(a));
		ssize_t b_len = read_full(b_file, b, sizeof(b));
		if (a_len < 0 || a_len != b_len || memcmp(a, b, (size_t)a_len) != 0)
			return false;
		if (a_len < (ssize_t)sizeof(a))
			return true;
	}
}

static bool same_dir(int a_fd, int b_fd, int depth);

static bool same_entry(int a_fd, int b_fd, const char *name, int depth)
{
	struct stat a, b;
	if (fstatat(a_fd, name, &a, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstatat(b_fd, name, &b, AT_SYMLINK_NOFOLLOW) < 0 ||
		(a.st_mode & S_IFMT) != (b.st_mode & S_IFMT))
		return false;
	if (S_ISLNK(a.st_mode))
		return same_link(a_fd, b_fd, name);
	if (S_ISREG(a.st_mode))
		return a.st_size == b.st_size && (a.st_mode & 0100) == (b.st_mode & 0100) &&
		       same_file(a_fd, b_fd, name);
	if (!S_ISDIR(a.st_mode) || depth == SAMETREE_DEPTH_MAX)
		return false;
	auto_close int a_dir = openat(a_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int b_dir = openat(b_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return a_dir >= 0 && b_dir >= 0 && same_dir(a_dir, b_dir, depth + 1);
}

static void release(struct dirent **entries, int count)
{
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
}

static bool same_dir(int a_fd, int b_fd, int depth)
{
	struct dirent **a = NULL, **b = NULL;
	int a_count = scandirat(a_fd, ".", &a, is_entry, by_name);
	int b_count = scandirat(b_fd, ".", &b, is_entry, by_name);
	bool is_same = a_count >= 0 && a_count == b_count;
	for (int i = 0; is_same && i < a_count; i++)
		is_same = strcmp(a[i]->d_name, b[i]->d_name) == 0 &&
			  same_entry(a_fd, b_fd, a[i]->d_name, depth);
	release(a, a_count);
	release(b, b_count);
	return is_same;
}

bool sametree(int a_fd, int b_fd)
{
	return same_dir(a_fd, b_fd, 1);
}
