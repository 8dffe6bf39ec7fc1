#include "core/running/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"

#define LOCK_NAME "lock"
#define SECRET_NAME "secret"
#define SHM_SIZE_MIN ((uint64_t)256 << 20) /* a container has 64 MiB there: too few for results */
#define WAIT_STEP_MS 10
#define LOCK_LIMIT_MS 5000

static bool is_tmpfs(const char *path, uint64_t size_min)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
	       (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize >= size_min;
}

static bool is_own_or_free(const char *path)
{
	struct stat st;
	return lstat(path, &st) < 0 ? errno == ENOENT
				    : S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/* On a disk each call costs milliseconds; in /dev/shm somebody else may have taken the name. */
static char *base_path(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	bool is_root = geteuid() == 0;
	if (is_root && is_tmpfs("/run", 0))
		return xstrdup("/run/pegfs");
	if (!is_root && runtime && *runtime == '/')
		return xasprintf("%s/pegfs", runtime);
	auto_free char *shared = xasprintf("/dev/shm/pegfs-%u", (unsigned)geteuid());
	if (is_tmpfs("/dev/shm", SHM_SIZE_MIN) && is_own_or_free(shared))
		return take_ptr(&shared);
	/* A bare container has no /run, or one that cannot be written to. */
	return is_root && access("/run", W_OK) == 0
		       ? xstrdup("/run/pegfs")
		       : xasprintf("/tmp/pegfs-%u", (unsigned)geteuid());
}

static char *path_of(const char *mountpoint)
{
	auto_free char *base = base_path();
	return xasprintf(
		"%s/%016" PRIx64, base, map_hash(MAP_HASH_SEED, mountpoint, strlen(mountpoint)));
}

/* In /tmp somebody else may have been first: it must be a directory, ours, and not writable. */
static int make_dir(const char *path, mode_t mode, struct fail *why)
{
	struct stat st;
	bool made = mkdir(path, mode) == 0;
	if (!made && errno != EEXIST)
		return fail_errno(why, "cannot make the state directory '%s'", path);
	/* Whatever the umask has taken. */
	if (made && chmod(path, mode) < 0 && errno != ENOENT)
		return fail_errno(why, "cannot open the state directory '%s' to hosts", path);
	if (lstat(path, &st) < 0)
		return fail_errno(why, "cannot look at the state directory '%s'", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return fail_set(why, -EPERM,
			"the state directory '%s' is not this user's own: remove it", path);
	return 0;
}

static void pause_ms(unsigned ms)
{
	const struct timespec step = { .tv_nsec = ms * 1000000L };
	nanosleep(&step, NULL);
}

/* 1 where the lock is ours now, 0 where it is not the one that others see any more, -1 taken. */
static int take_lock(const struct statedir *dir)
{
	struct stat st;
	if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return -1;
	return fstat(dir->lock_fd, &st) == 0 && st.st_nlink > 0;
}

/*
 * Opens the directory and its lock. Returns 1 where it is ours, 0 where somebody else removed it
 * meanwhile, or *why.
 */
static int try_open(struct statedir *dir, struct fail *why)
{
	if (make_dir(dir->path, 0711, why) < 0)
		return why->code == -ENOENT ? 0 : why->code;
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	dir->lock_fd =
		dir->fd < 0 ? -1 : openat(dir->fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (dir->lock_fd < 0 && errno == ENOENT)
		return 0;
	if (dir->lock_fd < 0)
		return fail_errno(why, "cannot open the state directory '%s'", dir->path);
	int taken = take_lock(dir);
	if (taken < 0)
		return fail_set(why, -EBUSY,
			"another pegfs serves this mount point: run 'pegfs umount' first");
	return taken;
}

static void close_both(struct statedir *dir)
{
	if (dir->fd >= 0)
		close(take_fd(&dir->fd));
	if (dir->lock_fd >= 0)
		close(take_fd(&dir->lock_fd));
}

/* The server before may have been unmounted a moment ago and be about to end, and to remove all. */
static int open_locked(struct statedir *dir, struct fail *why)
{
	for (unsigned waited = 0;; waited += WAIT_STEP_MS) {
		fail_clear(why);
		int result = try_open(dir, why);
		if (result == 1)
			return 0;
		if ((result < 0 && result != -EBUSY) || waited >= LOCK_LIMIT_MS) {
			/* Does nothing where it has failed for a reason already. */
			fail_set(why, -EBUSY, "the state directory '%s' does not stay", dir->path);
			return why->code;
		}
		close_both(dir);
		pause_ms(WAIT_STEP_MS);
	}
}

/* What a server that was killed has left. */
static int clear(struct statedir *dir, struct fail *why)
{
	static const char *const leftovers[] = { "calls", "cache", "files", "opened", SECRET_NAME };
	for (size_t i = 0; i < sizeof(leftovers) / sizeof(*leftovers); i++) {
		int result = io_remove_tree(dir->fd, leftovers[i]);
		if (result < 0)
			return fail_set(why, result, "cannot clear '%s/%s': %s", dir->path,
				leftovers[i], strerror(-result));
	}
	return 0;
}

/* The lock goes last: until then nobody else takes the directory, and afterwards it is not touched. */
static void remove_locked(struct statedir *dir)
{
	struct fail ignored = FAIL_INIT;
	if (clear(dir, &ignored) < 0)
		return;
	unlinkat(dir->fd, LOCK_NAME, 0);
	rmdir(dir->path);
}

/* Directories of mounts that nobody serves any more: their servers were killed. */
static void clear_abandoned(const char *base)
{
	auto_closedir DIR *stream = opendir(base);
	const struct dirent *entry;
	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.')
			continue;
		struct statedir left = STATEDIR_INIT;
		left.path = xasprintf("%s/%s", base, entry->d_name);
		left.fd = open(left.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (left.fd >= 0)
			left.lock_fd =
				openat(left.fd, LOCK_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (left.lock_fd >= 0 && take_lock(&left) == 1)
			remove_locked(&left);
		statedir_release(&left);
	}
}

int statedir_make(struct statedir *dir, const char *mountpoint, struct fail *why)
{
	auto_free char *base = base_path();
	dir->path = path_of(mountpoint);
	/* 0711: hosts of other users find their caches below it, and see nothing else. */
	if (make_dir(base, 0711, why) < 0)
		return why->code;
	clear_abandoned(base);
	if (open_locked(dir, why) < 0 || clear(dir, why) < 0)
		return why->code;
	if (mkdirat(dir->fd, "calls", 0700) < 0)
		return fail_errno(why, "cannot make '%s/calls'", dir->path);
	dir->calls_fd = openat(dir->fd, "calls", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir->calls_fd < 0 ? fail_errno(why, "cannot open '%s/calls'", dir->path) : 0;
}

int statedir_open(struct statedir *dir, const char *mountpoint, struct fail *why)
{
	dir->path = path_of(mountpoint);
	dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir->fd >= 0)
		dir->calls_fd = openat(dir->fd, "calls", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir->calls_fd < 0
		       ? fail_errno(why, "cannot open the state directory '%s'", dir->path)
		       : 0;
}

int statedir_get_secret(const struct statedir *dir, uint8_t *bytes, size_t len, struct fail *why)
{
	auto_buf struct buf kept = BUF_INIT(len);
	if (io_load_beneath(dir->fd, SECRET_NAME, &kept) == 0 && kept.len == len) {
		memcpy(bytes, kept.data, len);
		return 0;
	}
	int result = getrandom(bytes, len, 0) == (ssize_t)len ? 0 : -EIO;
	if (result == 0)
		result = io_replace_file(dir->fd, SECRET_NAME, bytes, len, 0600);
	return result == 0 ? 0
			   : fail_set(why, result, "cannot keep a secret in '%s': %s", dir->path,
				     strerror(-result));
}

int statedir_adopt(struct statedir *dir, const char *mountpoint, int lock_fd, struct fail *why)
{
	struct stat there, held;
	dir->lock_fd = lock_fd;
	if (statedir_open(dir, mountpoint, why) < 0)
		return why->code;
	if (fstatat(dir->fd, LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		fstat(lock_fd, &held) < 0 || there.st_dev != held.st_dev ||
		there.st_ino != held.st_ino)
		return fail_set(why, -ESTALE, "the state directory '%s' is another one", dir->path);
	return 0;
}

void statedir_release(struct statedir *dir)
{
	if (dir->calls_fd >= 0)
		close(dir->calls_fd);
	close_both(dir);
	free(dir->path);
	*dir = (struct statedir)STATEDIR_INIT;
}

int statedir_tell(const struct statedir *dir, const struct statedir_news *news)
{
	char text[96];
	int len = snprintf(text, sizeof(text), "%d %" PRIu64 " %" PRIu64 "\n", news->holder,
		news->generation, news->failed_reloads);
	return pwrite(dir->lock_fd, text, (size_t)len, 0) == len ? 0 : -EIO;
}

int statedir_ask(const char *mountpoint, struct statedir_news *news)
{
	auto_free char *dir = path_of(mountpoint);
	auto_free char *path = xasprintf("%s/" LOCK_NAME, dir);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[96];
	ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	if (got <= 0)
		return -ESRCH;
	text[got] = '\0';
	if (flock(fd, LOCK_SH | LOCK_NB) == 0) /* left by one that is gone */
		return -ESRCH;
	char *at = text;
	news->holder = (int)strtol(at, &at, 10);
	news->generation = strtoull(at, &at, 10);
	news->failed_reloads = strtoull(at, &at, 10);
	return news->holder > 0 ? 0 : -ESRCH;
}

void statedir_remove(struct statedir *dir)
{
	/* Only what is locked is ours to remove. */
	if (dir->calls_fd >= 0)
		remove_locked(dir);
	statedir_release(dir);
}

int statedir_wait_free(const char *mountpoint, unsigned timeout_ms)
{
	auto_free char *dir = path_of(mountpoint);
	auto_free char *path = xasprintf("%s/" LOCK_NAME, dir);
	for (unsigned waited = 0; waited <= timeout_ms; waited += WAIT_STEP_MS) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return 0;
		if (flock(fd, LOCK_SH | LOCK_NB) == 0)
			return 0;
		pause_ms(WAIT_STEP_MS);
	}
	return -ETIMEDOUT;
}
