#include "core/running/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/auto.h"
#include "core/base/io.h"

#define BLOCK 512

/* A member's header; numbers are octal texts. The fields that matter here have names. */
struct header {
	char name[100], mode[8], ids[16], size[12], time_sum[20], type, link[100], magic[6],
		version[2], owners[64], devices[16], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static uint64_t number_of(const char *field, size_t len)
{
	uint64_t number = 0;
	for (size_t i = 0; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		number = number * 8 + (uint64_t)(field[i] - '0');
	return number;
}

static bool is_end(const struct header *header)
{
	return header->name[0] == '\0';
}

/* The path, without a "./" before it; false where it would lead out. */
static bool path_of(const struct header *header, char path[300])
{
	snprintf(path, 300, "%.155s%s%.100s", header->prefix, *header->prefix ? "/" : "",
		header->name);
	if (strncmp(path, "./", 2) == 0)
		memmove(path, path + 2, strlen(path) - 1);
	size_t len = strlen(path);
	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
	return path[0] != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
	       !strstr(path, "/../");
}

static int write_file(
	int dir_fd, const char *path, const char *bytes, size_t len, mode_t mode, struct fail *why)
{
	auto_close int fd =
		openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return fail_errno(why, "cannot write '%s'", path);
	int result = io_write_all(fd, bytes, len);
	if (result < 0)
		return fail_set(why, result, "cannot write '%s': %s", path, strerror(-result));
	return fchmod(fd, mode) < 0 ? fail_errno(why, "cannot write '%s'", path) : 0;
}

static int write_dir(int dir_fd, const char *path, struct fail *why)
{
	if (*path == '\0' || strcmp(path, ".") == 0)
		return 0;
	if (mkdirat(dir_fd, path, 0755) < 0 || fchmodat(dir_fd, path, 0755, 0) < 0)
		return fail_errno(why, "cannot make '%s'", path);
	return 0;
}

/* One member; *at goes behind it. */
static int unpack_member(const char *bytes, size_t len, size_t *at, int dir_fd, struct fail *why)
{
	const struct header *header = (const struct header *)(const void *)(bytes + *at);
	char path[300];
	uint64_t size = number_of(header->size, sizeof(header->size));
	if (memcmp(header->magic, "ustar", 5) != 0 || size > len - *at - BLOCK ||
		!path_of(header, path))
		return fail_set(why, -EINVAL, "byte %zu of the archive begins no member", *at);
	const char *contents = bytes + *at + BLOCK;
	*at += BLOCK + (size_t)((size + BLOCK - 1) / BLOCK * BLOCK);
	if (header->type == '5')
		return write_dir(dir_fd, path, why);
	if (header->type != '0')
		return fail_set(why, -EINVAL,
			"'%s' in the archive is neither a file nor a directory", path);
	mode_t mode = number_of(header->mode, sizeof(header->mode)) & 0111 ? 0755 : 0644;
	return write_file(dir_fd, path, contents, (size_t)size, mode, why);
}

int unpack_archive(const char *bytes, size_t len, int dir_fd, struct fail *why)
{
	size_t at = 0;
	while (at + BLOCK <= len && !is_end((const struct header *)(const void *)(bytes + at)))
		if (unpack_member(bytes, len, &at, dir_fd, why) < 0)
			return why->code;
	return 0;
}
