#include "core/running/anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

#define LIMITS_AT 26 /* where the numbers begin in a line of /proc/PID/limits */

/* The mount namespace is the last: it takes the root directory with it. */
static const char *const links[ANCHOR_NAMESPACES] = { "ns/cgroup", "ns/ipc", "ns/uts", "ns/net",
	"ns/time", "ns/pid", "ns/mnt" };

static struct anchor *make(void)
{
	struct anchor *anchor = xcalloc(1, sizeof(*anchor));
	anchor->refs = 1;
	for (size_t i = 0; i < ANCHOR_NAMESPACES; i++)
		anchor->namespaces[i] = -1;
	anchor->user_fd = anchor->root_fd = -1;
	return anchor;
}

struct anchor *anchor_ref(struct anchor *anchor)
{
	anchor->refs++;
	return anchor;
}

void anchor_unref(struct anchor *anchor)
{
	if (!anchor || --anchor->refs > 0)
		return;
	for (size_t i = 0; i < ANCHOR_NAMESPACES; i++)
		auto_close_fd(&anchor->namespaces[i]);
	auto_close_fd(&anchor->user_fd);
	auto_close_fd(&anchor->root_fd);
	free(anchor->cgroups);
	free(anchor->label);
	free(anchor);
}

static int open_link(int proc_fd, const char *link)
{
	int flags = strcmp(link, place_link(PLACE_ROOT)) == 0 ? O_PATH | O_DIRECTORY : O_RDONLY;
	int fd = openat(proc_fd, link, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Whether a namespace is this process's own. */
static bool is_own(int fd, const char *link)
{
	char path[64];
	struct stat there, here;
	snprintf(path, sizeof(path), "/proc/self/%s", link);
	return fstat(fd, &there) == 0 && stat(path, &here) == 0 && there.st_dev == here.st_dev &&
	       there.st_ino == here.st_ino;
}

/* *fd is the namespace, or -1 where it is this process's own, or where the kernel has none of the kind. */
static int open_namespace(int *fd, int proc_fd, const char *link)
{
	int found = open_link(proc_fd, link);
	if (found == -ENOENT)
		return 0;
	if (found < 0)
		return found;
	if (is_own(found, link))
		close(found);
	else
		*fd = found;
	return 0;
}

/* The descriptor of a part that is held, or -1: it is this process's own. */
static int held(const struct anchor *anchor, enum place_part part)
{
	if (part == PLACE_USER)
		return anchor->user_fd;
	if (part == PLACE_ROOT)
		return anchor->root_fd;
	for (size_t i = 0; i < ANCHOR_NAMESPACES; i++)
		if (strcmp(links[i], place_link(part)) == 0)
			return anchor->namespaces[i];
	return -1;
}

/* What is held is what was looked at when the call came, and not what is there by now. */
static bool check_place(const struct anchor *anchor, const struct place *expected)
{
	int fds[PLACE_PARTS], own[PLACE_PARTS];
	for (size_t i = 0; i < PLACE_PARTS; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/self/%s", place_link((enum place_part)i));
		fds[i] = held(anchor, (enum place_part)i);
		own[i] = fds[i] < 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		if (fds[i] < 0)
			fds[i] = own[i];
	}
	struct place now;
	bool is_same =
		place_of(&now, fds, anchor->cgroups, anchor->label) && place_equal(&now, expected);
	for (size_t i = 0; i < PLACE_PARTS; i++)
		auto_close_fd(&own[i]);
	return is_same;
}

static int open_all(struct anchor *anchor, int proc_fd)
{
	int result = open_namespace(&anchor->user_fd, proc_fd, place_link(PLACE_USER));
	for (size_t i = 0; i < ANCHOR_NAMESPACES && result == 0; i++)
		result = open_namespace(&anchor->namespaces[i], proc_fd, links[i]);
	if (result == 0)
		anchor->root_fd = open_link(proc_fd, place_link(PLACE_ROOT));
	return result < 0 ? result : anchor->root_fd < 0 ? anchor->root_fd : 0;
}

static rlim_t take_limit(const char **at)
{
	*at += strspn(*at, " ");
	char *end;
	rlim_t limit = strncmp(*at, "unlimited", 9) == 0 ? RLIM_INFINITY : strtoull(*at, &end, 10);
	*at += strcspn(*at, " \n");
	return limit;
}

/*
 * proc_pid_limits(5): a line of headings, and one for each limit in the order of their numbers. Unlike
 * prlimit(2) it needs no right (CAP_SYS_RESOURCE over the other's user namespace).
 */
static int read_limits(struct anchor *anchor, pid_t tid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/limits", (int)tid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(16384);
	int result = fd < 0 ? -errno : io_read_all(fd, &text);
	const char *at = buf_str(&text);
	for (size_t i = 0; i < RLIM_NLIMITS && result == 0; i++) {
		at = strchr(at, '\n');
		if (!at || strlen(at) < LIMITS_AT + 2)
			return -EPROTO;
		const char *value = ++at + LIMITS_AT;
		anchor->limits[i].rlim_cur = take_limit(&value);
		anchor->limits[i].rlim_max = take_limit(&value);
	}
	return result;
}

static int read_rest(struct anchor *anchor, pid_t tid)
{
	char cgroups[PLACE_TEXT_MAX], label[PLACE_TEXT_MAX];
	int result = place_read_cgroups(tid, cgroups);
	if (result == 0)
		result = place_read_label(tid, label);
	if (result < 0)
		return result;
	anchor->cgroups = xstrdup(cgroups);
	anchor->label = xstrdup(label);
	return read_limits(anchor, tid);
}

struct anchor *anchor_open(pid_t tid, const struct identity *who, struct fail *why)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", (int)tid);
	/* All through one directory: should the number become another thread's, nothing is found. */
	auto_close int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct anchor *anchor = make();
	int result = proc_fd < 0 ? -errno : open_all(anchor, proc_fd);
	if (result == 0)
		result = read_rest(anchor, tid);
	anchor->place = who->place;
	if (result < 0)
		fail_set(why, -EACCES,
			"cannot join the namespaces in which the caller lives: %s; pegfs has to run as "
			"root of the machine (with CAP_SYS_ADMIN and CAP_SYS_PTRACE) for --run-in "
			"caller",
			strerror(-result));
	else if (!check_place(anchor, &who->place))
		fail_set(why, -EACCES,
			"the caller has moved to another place while it called; call again");
	if (why->code == 0)
		return anchor;
	anchor_unref(anchor);
	return NULL;
}
