#include "core/running/place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/map.h"

static const struct {
	const char *link, *name;
} parts[] = {
	[PLACE_USER] = { "ns/user", "user namespace" },
	[PLACE_MOUNT] = { "ns/mnt", "mount namespace" },
	[PLACE_PID] = { "ns/pid", "pid namespace" },
	[PLACE_NET] = { "ns/net", "network namespace" },
	[PLACE_IPC] = { "ns/ipc", "ipc namespace" },
	[PLACE_ROOT] = { "root", "root directory" },
};
_Static_assert(sizeof(parts) / sizeof(*parts) == PLACE_PARTS, "a row for each part");

struct file_id {
	uint64_t dev, ino;
};

/* All that makes a place. */
struct look {
	struct file_id ids[PLACE_PARTS];
	uint64_t root_mount; /* its number, which is never used again from Linux 6.8 on */
};

static struct {
	uint8_t bytes[SIPHASH_SECRET_SIZE];
	bool is_set;
} secret;

void place_use_secret(const uint8_t given[SIPHASH_SECRET_SIZE])
{
	memcpy(secret.bytes, given, sizeof(secret.bytes));
	secret.is_set = true;
}

static uint64_t digest(const struct buf *bytes)
{
	if (!secret.is_set) {
		uint8_t fresh[SIPHASH_SECRET_SIZE];
		if (getrandom(fresh, sizeof(fresh), 0) != (ssize_t)sizeof(fresh))
			abort(); /* it cannot fail for so few bytes */
		place_use_secret(fresh);
	}
	return siphash(secret.bytes, bytes->data, bytes->len) | 1;
}

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

/*
 * Nobody is asked: a caller chooses its root directory, which may lie on a file system that it serves,
 * or on ours, which would wait for us. So the numbers are those that are known.
 */
static int identify(struct look *look, size_t part, int dir_fd, const char *path, int flags)
{
	struct statx st;
	if (statx(dir_fd, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
		    STATX_INO | STATX_MNT_ID_UNIQUE, &st) < 0)
		return -errno;
	look->ids[part] =
		(struct file_id){ (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor, st.stx_ino };
	if (part == PLACE_ROOT && st.stx_mask & STATX_MNT_ID_UNIQUE)
		look->root_mount = st.stx_mnt_id;
	return 0;
}

/*
 * The same of a root directory on a file system that a user has mounted and that tells nobody else
 * anything (FUSE without allow_other, or in a user namespace): its device can be had by who asks for
 * nothing, the rest is what the kernel says of a descriptor of it.
 */
static int identify_closed(struct look *look, int dir_fd, const char *path, int flags)
{
	struct statx st;
	char name[64], text[512];
	auto_close int fd = flags & AT_EMPTY_PATH
				    ? fcntl(dir_fd, F_DUPFD_CLOEXEC, 0)
				    : openat(dir_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	auto_close int info_fd = open(name, O_RDONLY | O_CLOEXEC);
	ssize_t got = info_fd < 0 ? -1 : read(info_fd, text, sizeof(text) - 1);
	text[got > 0 ? got : 0] = '\0';
	const char *mount = strstr(text, "mnt_id:"), *inode = strstr(text, "\nino:");
	if (!mount || !inode)
		return -EACCES; /* before Linux 5.14 */
	look->ids[PLACE_ROOT] =
		(struct file_id){ (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor,
			strtoull(inode + 5, NULL, 10) };
	look->root_mount = strtoull(mount + 7, NULL, 10);
	return 0;
}

static int identify_root(struct look *look, int dir_fd, const char *path, int flags)
{
	int result = identify(look, PLACE_ROOT, dir_fd, path, flags);
	return result == -EACCES ? identify_closed(look, dir_fd, path, flags) : result;
}

static int read_text(pid_t tid, const char *name, char text[PLACE_TEXT_MAX])
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, PLACE_TEXT_MAX - 1);
	if (got < 0)
		return -errno;
	text[got] = '\0';
	return got < PLACE_TEXT_MAX - 1 ? 0 : -E2BIG;
}

int place_read_cgroups(pid_t tid, char text[PLACE_TEXT_MAX])
{
	return read_text(tid, "cgroup", text);
}

int place_read_label(pid_t tid, char text[PLACE_TEXT_MAX])
{
	int result = read_text(tid, "attr/current", text);
	if (result == -EINVAL || result == -ENOENT || result == -EOPNOTSUPP) {
		*text = '\0'; /* no security module has labels */
		return 0;
	}
	if (result == 0)
		text[strcspn(text, "\n")] = '\0';
	return result;
}

/* 0 or a negative errno: all or nothing. */
static int look(struct look *look, pid_t tid)
{
	*look = (struct look){ .root_mount = 0 };
	for (size_t i = 0; i < PLACE_PARTS; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, parts[i].link);
		int result = i == PLACE_ROOT ? identify_root(look, AT_FDCWD, path, 0)
					     : identify(look, i, AT_FDCWD, path, 0);
		if (result < 0)
			return result;
	}
	return 0;
}

/*
 * Who has the same ids may look (ptrace(2), PTRACE_MODE_READ_FSCREDS). Changing them clears the
 * signal that ties this process to its parent, which is set again.
 */
static int look_as(struct look *found, pid_t tid, uid_t uid, gid_t gid)
{
	int death_signal = 0;
	prctl(PR_GET_PDEATHSIG, &death_signal);
	pid_t parent = getppid();
	setfsgid(gid);
	setfsuid(uid);
	int result = look(found, tid);
	setfsuid(geteuid());
	setfsgid(getegid());
	if (death_signal != 0 && prctl(PR_SET_PDEATHSIG, death_signal) == 0 && getppid() != parent)
		raise(death_signal); /* it died in between */
	return result;
}

/* Whether /proc tells of this pid namespace; else its numbers are those of other processes. */
static bool is_own_proc(void)
{
	char text[16];
	ssize_t len = readlink("/proc/self", text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	return strtol(text, NULL, 10) == (long)getpid();
}

/* It never changes. */
static const struct look *own_look(void)
{
	static struct look own;
	static bool is_loaded;
	if (!is_loaded)
		is_loaded = is_own_proc() && look(&own, getpid()) == 0;
	return is_loaded ? &own : NULL;
}

static uint32_t find_differences(const struct look *found, const struct look *own)
{
	uint32_t differs = 0;
	for (size_t i = 0; i < PLACE_PARTS; i++)
		if (found->ids[i].dev != own->ids[i].dev || found->ids[i].ino != own->ids[i].ino)
			differs |= 1U << i;
	return differs;
}

static uint64_t make_key(const struct look *found, const char *cgroups, const char *label)
{
	auto_buf struct buf bytes = BUF_INIT(sizeof(*found) + (size_t)2 * PLACE_TEXT_MAX);
	buf_append(&bytes, (const char *)found, sizeof(*found));
	buf_append(&bytes, cgroups, strlen(cgroups) + 1);
	buf_append(&bytes, label, strlen(label) + 1);
	return bytes.failed ? 0 : digest(&bytes);
}

static uint64_t find_tenant(pid_t tid, const struct look *own)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, parts[PLACE_PID].link);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t tenant = 0;
	struct stat st;
	while (fd >= 0 && fstat(fd, &st) == 0 && st.st_ino != own->ids[PLACE_PID].ino) {
		tenant = st.st_ino;
		int parent = ioctl(fd, NS_GET_PARENT);
		close(fd);
		fd = parent;
	}
	return tenant;
}

void place_load(struct place *place, pid_t tid, uid_t uid, gid_t gid)
{
	struct look found;
	const struct look *own = own_look();
	*place = (struct place){ .is_known = false };
	if (tid <= 0 || !own)
		return;
	int result = look(&found, tid);
	if ((result == -EACCES || result == -EPERM) && geteuid() == 0)
		result = look_as(&found, tid, uid, gid);
	if (result < 0)
		return;
	place->differs = find_differences(&found, own);
	char cgroups[PLACE_TEXT_MAX], label[PLACE_TEXT_MAX];
	if (place->differs && place_read_cgroups(tid, cgroups) == 0 &&
		place_read_label(tid, label) == 0)
		place->key = make_key(&found, cgroups, label);
	place->is_known = !place->differs || place->key != 0;
	if (place->differs & 1U << PLACE_PID)
		place->tenant = find_tenant(tid, own);
}

bool place_of(
	struct place *place, const int fds[PLACE_PARTS], const char *cgroups, const char *label)
{
	struct look found = { .root_mount = 0 };
	const struct look *own = own_look();
	*place = (struct place){ .is_known = false };
	for (size_t i = 0; i < PLACE_PARTS; i++)
		if (!own || (i == PLACE_ROOT ? identify_root(&found, fds[i], "", AT_EMPTY_PATH)
					     : identify(&found, i, fds[i], "", AT_EMPTY_PATH)) < 0)
			return false;
	place->differs = find_differences(&found, own);
	place->key = place->differs ? make_key(&found, cgroups, label) : 0;
	place->is_known = !place->differs || place->key != 0;
	return place->is_known;
}

uint64_t place_mix_mount(uint64_t pid_namespace, pid_t tid)
{
	struct look found = { .root_mount = 0 };
	const struct look *own = own_look();
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, parts[PLACE_ROOT].link);
	if ((own && own->ids[PLACE_PID].ino == pid_namespace) ||
		identify(&found, PLACE_ROOT, AT_FDCWD, path, 0) < 0 || found.root_mount == 0)
		return pid_namespace;
	const uint64_t numbers[] = { pid_namespace, found.root_mount };
	return map_hash(MAP_HASH_SEED, numbers, sizeof(numbers));
}

const char *place_link(enum place_part part)
{
	return parts[part].link;
}

struct place place_mix(const struct place *a, const struct place *b)
{
	if (place_equal(a, b))
		return *a;
	const uint64_t keys[] = { a->key, b->key };
	return (struct place){ .is_known = a->is_known && b->is_known,
		.differs = a->differs | b->differs | PLACE_MIXED,
		.key = map_hash(MAP_HASH_SEED, keys, sizeof(keys)) | 1,
		.tenant = a->tenant ? a->tenant : b->tenant };
}

struct place place_here(void)
{
	return (struct place){ .is_known = true };
}

bool place_is_here(const struct place *place)
{
	return place->is_known && place->differs == 0;
}

bool place_equal(const struct place *a, const struct place *b)
{
	return a->is_known == b->is_known && a->differs == b->differs && a->key == b->key;
}

void place_describe(const struct place *place, char *text, size_t size)
{
	size_t len = 0;
	*text = '\0';
	for (size_t i = 0; i < PLACE_PARTS && len < size; i++)
		if (place->differs & 1U << i)
			len += (size_t)snprintf(
				text + len, size - len, "%s%s", len ? ", " : "", parts[i].name);
}
