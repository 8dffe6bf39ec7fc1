/* A directory of a test's own, with helpers that fill it; it goes with the test. */
#ifndef PEGFS_TESTS_UNIT_SCRATCH_H
#define PEGFS_TESTS_UNIT_SCRATCH_H

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

struct scratch {
	char path[64];
	int fd;
};

static inline int scratch_setup(void **state)
{
	struct scratch *scratch = xcalloc(1, sizeof(*scratch));
	strcpy(scratch->path, "/tmp/pegfs-unit-XXXXXX");
	if (!mkdtemp(scratch->path))
		return -1;
	scratch->fd = open(scratch->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = scratch;
	return scratch->fd < 0 ? -1 : 0;
}

static inline int scratch_teardown(void **state)
{
	struct scratch *scratch = *state;
	close(scratch->fd);
	int result = io_remove_tree(AT_FDCWD, scratch->path);
	free(scratch);
	return result;
}

static inline void scratch_mkdir(const struct scratch *scratch, const char *path)
{
	auto_free char *parent = xstrdup(path);
	for (char *slash = strchr(parent, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdirat(scratch->fd, parent, 0755);
		*slash = '/';
	}
	if (mkdirat(scratch->fd, path, 0755) < 0 && errno != EEXIST)
		fail_msg("mkdir %s: %s", path, strerror(errno));
}

/* Writes a file, and the directories above it. */
static inline void scratch_write_bytes(
	const struct scratch *scratch, const char *path, const void *bytes, size_t len)
{
	auto_free char *parent = xstrdup(path);
	char *slash = strrchr(parent, '/');
	if (slash) {
		*slash = '\0';
		scratch_mkdir(scratch, parent);
	}
	auto_close int fd =
		openat(scratch->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || io_write_all(fd, bytes, len) < 0)
		fail_msg("write %s: %s", path, strerror(errno));
}

static inline void scratch_write(const struct scratch *scratch, const char *path, const char *text)
{
	scratch_write_bytes(scratch, path, text, strlen(text));
}

static inline void scratch_link(const struct scratch *scratch, const char *target, const char *path)
{
	if (symlinkat(target, scratch->fd, path) < 0)
		fail_msg("symlink %s: %s", path, strerror(errno));
}

/* Open descriptors of this process. */
static inline size_t scratch_count_fds(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#define scratch_test(function)                                                                     \
	cmocka_unit_test_setup_teardown(function, scratch_setup, scratch_teardown)

#endif
