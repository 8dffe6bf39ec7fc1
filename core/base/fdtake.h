/* What comes with a message over a Unix socket: taken whole, whoever sent it, and never more than fits. */
#ifndef PEGFS_BASE_FDTAKE_H
#define PEGFS_BASE_FDTAKE_H

#include <stddef.h>
#include <sys/socket.h>

/*
 * The descriptors that recvmsg(2) has put into header, the caller's from then on: up to max of them
 * into fds; what is beyond that is closed, for room in the buffer is rounded up. How many there are.
 */
size_t fdtake(struct msghdr *header, int *fds, size_t max);

#endif
