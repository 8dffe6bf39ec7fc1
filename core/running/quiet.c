#include "core/running/quiet.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"

#define PID_LEAST_NS 500  /* no kernel gives numbers faster than this, with all its processors */
#define PIDS_RESERVED 300 /* not given again once the largest has been reached */
#define LASTS_MAX_NS 500000000LL /* for which nothing is believed without looking */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The number behind the last blank of a file in /proc, or 0. Another file system's (lxcfs) is none. */
static long last_number(const char *path)
{
	struct statfs fs;
	char text[128];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return 0;
	ssize_t len = read(fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	const char *blank = strrchr(text, ' ');
	long number = strtol(blank ? blank + 1 : text, NULL, 10);
	return number > 0 ? number : 0;
}

struct quiet quiet_now(void)
{
	/* The time first: what begins in between counts as later. */
	struct quiet now = { .since_ns = now_ns() };
	now.newest = last_number("/proc/loadavg");
	return now;
}

static int64_t lasts_ns(void)
{
	int64_t lasts = (last_number("/proc/sys/kernel/pid_max") - PIDS_RESERVED) * PID_LEAST_NS;
	return lasts < LASTS_MAX_NS ? lasts : LASTS_MAX_NS;
}

bool quiet_holds(const struct quiet *since)
{
	if (since->newest == 0)
		return false;
	struct quiet now = quiet_now();
	return now.newest == since->newest && now.since_ns - since->since_ns < lasts_ns();
}
