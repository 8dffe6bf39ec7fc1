#include "core/running/place.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

/*
 * 0 or a negative errno: all or nothing. A caller chooses its root directory: on a file system of its
 * own, or on ours, which would wait for us. So nobody is asked: the numbers are those that are known.
 */
static int look(struct file_id ids[PLACE_PARTS], pid_t tid)
{
	for (size_t i = 0; i < PLACE_PARTS; i++) {
		char path[64];
		struct statx st;
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, parts[i].link);
		if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &st) < 0)
			return -errno;
		ids[i] =
			(struct file_id){ makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino };
	}
	return 0;
}

/*
 * Who has the same ids may look (ptrace(2), PTRACE_MODE_READ_FSCREDS). Changing them clears the
 * signal that ties this process to its parent, which is set again.
 */
static int look_as(struct file_id ids[PLACE_PARTS], pid_t tid, uid_t uid, gid_t gid)
{
	int death_signal = 0;
	prctl(PR_GET_PDEATHSIG, &death_signal);
	pid_t parent = getppid();
	setfsgid(gid);
	setfsuid(uid);
	int result = look(ids, tid);
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

/* They never change. */
static const struct file_id *own_ids(void)
{
	static struct file_id ids[PLACE_PARTS];
	static bool is_loaded;
	if (!is_loaded)
		is_loaded = is_own_proc() && look(ids, getpid()) == 0;
	return is_loaded ? ids : NULL;
}

void place_load(struct place *place, pid_t tid, uid_t uid, gid_t gid)
{
	struct file_id ids[PLACE_PARTS] = { { 0, 0 } };
	const struct file_id *own = own_ids();
	*place = (struct place){ .is_known = false };
	if (tid <= 0 || !own)
		return;
	int result = look(ids, tid);
	if ((result == -EACCES || result == -EPERM) && geteuid() == 0)
		result = look_as(ids, tid, uid, gid);
	if (result < 0)
		return;
	place->is_known = true;
	for (size_t i = 0; i < PLACE_PARTS; i++)
		if (ids[i].dev != own[i].dev || ids[i].ino != own[i].ino)
			place->differs |= 1U << i;
	if (place->differs)
		place->key = map_hash(MAP_HASH_SEED, ids, sizeof(ids)) | 1;
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
