#include "fs/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/log.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */
#define FDS_MAX (STORE_FDS + STATE_HOSTS * STORE_HOST_FDS)
#define LINE_MAX_LEN 128
#define NAME_MAX_LEN 32
#define SEND_LIMIT_S 1 /* a manager that does not listen is no reason to stand still */

static const char *const names[STORE_FDS] = {
	[STORE_FUSE] = "fuse",
	[STORE_STATE] = "state",
	[STORE_COVERED] = "covered",
	[STORE_PUT_BY] = "put-by",
	[STORE_LOCK] = "lock",
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(take_fd(fd));
}

/* ---- what came back */

static int *place_of(struct store *store, const char *name)
{
	static const char host[] = "host-";
	char *end;
	for (size_t i = 0; i < STORE_FDS; i++)
		if (strcmp(name, names[i]) == 0)
			return &store->fds[i];
	if (strncmp(name, host, strlen(host)) != 0)
		return NULL;
	unsigned long slot = strtoul(name + strlen(host), &end, 10);
	unsigned long index = *end == '-' ? strtoul(end + 1, &end, 10) : STORE_HOST_FDS;
	return *end == '\0' && slot < STATE_HOSTS && index < STORE_HOST_FDS
		       ? &store->hosts[slot][index]
		       : NULL;
}

static void take_one(struct store *store, const char *name, int fd)
{
	int *place = place_of(store, name);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return; /* there is none of that number */
	if (!place || *place >= 0)
		close(fd);
	else
		*place = fd;
}

static void take_all(struct store *store, int count, const char *list)
{
	char name[NAME_MAX_LEN];
	for (int i = 0; i < count; i++) {
		size_t len = strcspn(list, ":");
		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		take_one(store, name, FIRST_FD + i);
		list += len + (list[len] == ':');
	}
}

static void take(struct store *store)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"),
		   *list = getenv("LISTEN_FDNAMES");
	long number = count ? strtol(count, NULL, 10) : 0;
	if (!pid || !list || strtol(pid, NULL, 10) != (long)getpid() || number < 0 ||
		number > FDS_MAX)
		return;
	take_all(store, (int)number, list);
	/* Half a host is none. */
	for (size_t slot = 0; slot < STATE_HOSTS; slot++)
		for (size_t i = 0; i < STORE_HOST_FDS; i++)
			if (store->hosts[slot][i] < 0)
				close_fd(&store->hosts[slot][0]);
}

/* ---- the manager */

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	if (len == 0 || len >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, len);
	if (*path == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const struct timeval limit = { .tv_sec = SEND_LIMIT_S };
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) == 0)
		return fd;
	log_errno(LOG_LEVEL_WARNING, "cannot reach the service manager at NOTIFY_SOCKET");
	close(fd);
	return -1;
}

void store_open(struct store *store)
{
	static const char *const variables[] = { "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS",
		"LISTEN_FDNAMES" };
	memset(store, -1, sizeof(*store));
	take(store);
	store->socket_fd = connect_to(getenv("NOTIFY_SOCKET"));
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
}

void store_close_taken(struct store *store)
{
	for (size_t i = 0; i < STORE_FDS; i++)
		close_fd(&store->fds[i]);
	for (size_t slot = 0; slot < STATE_HOSTS; slot++)
		for (size_t i = 0; i < STORE_HOST_FDS; i++)
			close_fd(&store->hosts[slot][i]);
}

void store_release(struct store *store)
{
	store_close_taken(store);
	close_fd(&store->socket_fd);
}

bool store_is_complete(const struct store *store)
{
	for (size_t i = 0; i < STORE_FDS; i++)
		if (store->fds[i] < 0)
			return false;
	return true;
}

bool store_is_empty(const struct store *store)
{
	for (size_t i = 0; i < STORE_FDS; i++)
		if (store->fds[i] >= 0)
			return false;
	return true;
}

/* fd -1: no descriptor. flags: MSG_DONTWAIT, or 0 to wait for SEND_LIMIT_S at most. */
static int send_line(const struct store *store, const char *line, int fd, int flags)
{
	char copy[LINE_MAX_LEN];
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = copy, .iov_len = strlen(line) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (store->socket_fd < 0)
		return 0;
	snprintf(copy, sizeof(copy), "%s", line);
	memset(&control, 0, sizeof(control));
	if (fd >= 0) {
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return sendmsg(store->socket_fd, &message, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

int store_say(const struct store *store, const char *line)
{
	return send_line(store, line, -1, 0);
}

static int keep(const struct store *store, const char *name, int fd, int flags)
{
	char line[LINE_MAX_LEN];
	snprintf(line, sizeof(line), "FDSTORE=1\nFDNAME=%.*s\nFDPOLL=0", NAME_MAX_LEN, name);
	return send_line(store, line, fd, flags);
}

static int drop(const struct store *store, const char *name, int flags)
{
	char line[LINE_MAX_LEN];
	snprintf(line, sizeof(line), "FDSTOREREMOVE=1\nFDNAME=%.*s", NAME_MAX_LEN, name);
	return send_line(store, line, -1, flags);
}

int store_keep(const struct store *store, enum store_fd which, int fd)
{
	return keep(store, names[which], fd, 0);
}

int store_set_host(
	const struct store *store, uint32_t slot, const int fds[STORE_HOST_FDS], bool had)
{
	int result = 0;
	for (unsigned i = 0; i < STORE_HOST_FDS && result == 0; i++) {
		char name[NAME_MAX_LEN];
		snprintf(name, sizeof(name), "host-%u-%u", (unsigned)slot, i);
		if (had)
			result = drop(store, name, MSG_DONTWAIT);
		if (result == 0 && fds[0] >= 0)
			result = keep(store, name, fds[i], MSG_DONTWAIT);
	}
	return result;
}

void store_forget(const struct store *store)
{
	static const int none[STORE_HOST_FDS] = { -1, -1, -1 };
	for (size_t i = 0; i < STORE_FDS; i++)
		if (drop(store, names[i], 0) < 0)
			return; /* it does not listen; when the service has stopped it closes all */
	for (uint32_t slot = 0; slot < STATE_HOSTS; slot++)
		if (store->hosts[slot][0] >= 0)
			store_set_host(store, slot, none, true);
}
