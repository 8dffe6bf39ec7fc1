#include "core/base/fdtake.h"

#include <string.h>
#include <unistd.h>

static void take_one(const unsigned char *place, int *fds, size_t *count, size_t max)
{
	int fd;
	memcpy(&fd, place, sizeof(fd));
	if (*count < max)
		fds[(*count)++] = fd;
	else
		close(fd);
}

size_t fdtake(struct msghdr *header, int *fds, size_t max)
{
	size_t count = 0;
	for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at; at = CMSG_NXTHDR(header, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		size_t there = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < there; i++)
			take_one(CMSG_DATA(at) + i * sizeof(int), fds, &count, max);
	}
	return count;
}
