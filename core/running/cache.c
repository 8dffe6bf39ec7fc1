#include "core/running/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

#define FILE_MAX ((size_t)1024 * 1024)
#define FILES_MAX 1000

/* A failure leaves the file out: it is made again when it is needed. */
static void copy_file(int from_fd, int to_fd, const char *name, const struct identity *who)
{
	auto_buf struct buf bytes = BUF_INIT(FILE_MAX);
	if (io_load_beneath(from_fd, name, &bytes) == 0 &&
		io_replace_file(to_fd, name, bytes.data, bytes.len, 0600) == 0 &&
		fchownat(to_fd, name, who->uid, who->gid, AT_SYMLINK_NOFOLLOW) < 0)
		unlinkat(to_fd, name, 0);
}

/* jiti knows by a hash in each file whether it is of the source at hand. */
static void copy_files(int cache_fd, int to_fd, const struct identity *who)
{
	char own[16];
	snprintf(own, sizeof(own), "%u", (unsigned)geteuid());
	int from_fd = openat(cache_fd, own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from_fd < 0)
		return;
	auto_closedir DIR *dir = fdopendir(from_fd);
	if (!dir) {
		close(from_fd);
		return;
	}
	const struct dirent *entry;
	for (size_t count = 0; count < FILES_MAX && (entry = readdir(dir));) {
		const char *dot = strrchr(entry->d_name, '.');
		if (!dot || (strcmp(dot, ".cjs") != 0 && strcmp(dot, ".mjs") != 0))
			continue;
		copy_file(from_fd, to_fd, entry->d_name, who);
		count++;
	}
}

char *cache_make_dir(const char *state_dir, const struct identity *who, struct fail *why)
{
	auto_free char *parent = xasprintf("%s/cache", state_dir);
	/* Others may pass through, and look at nothing but their own. */
	if (mkdir(parent, 0711) < 0 && errno != EEXIST) {
		fail_errno(why, "cannot make '%s'", parent);
		return NULL;
	}
	auto_close int cache_fd = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *path = xasprintf("%s/%u", parent, (unsigned)who->uid);
	const char *name = path + strlen(parent) + 1;
	if (cache_fd < 0 || (mkdirat(cache_fd, name, 0700) < 0 && errno != EEXIST)) {
		fail_errno(why, "cannot make '%s'", path);
		return NULL;
	}
	auto_close int fd = openat(cache_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		fail_errno(why, "cannot open '%s'", path);
		return NULL;
	}
	if (st.st_uid == who->uid)
		return take_ptr(&path);
	/* It has just been made by this process, which is root. */
	copy_files(cache_fd, fd, who);
	if (fchown(fd, who->uid, who->gid) < 0) {
		fail_errno(why, "cannot give '%s' to its uid", path);
		return NULL;
	}
	return take_ptr(&path);
}
