/* Mounts for tests: in a mount namespace of the test program's own, or the test is skipped. */
#ifndef PEGFS_TESTS_UNIT_MOUNTS_H
#define PEGFS_TESTS_UNIT_MOUNTS_H

#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/scratch.h"

static inline void need_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
}

/* A mount of pegfs that nobody serves: whoever asks it anything waits for ever. */
static inline int mount_unserved(const char *path)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		skip();
	auto_free char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	assert_int_equal(mount("pegfs", path, "fuse.pegfs", 0, options), 0);
	return fd;
}

#endif
