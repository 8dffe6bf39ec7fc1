#include "fs/link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/fdtake.h"
#include "core/base/log.h"

_Static_assert(sizeof(struct kept_host) <= STATE_HOST_SIZE, "a host's notes have a place");
_Static_assert(KEEPER_FDS == SUPERVISOR_HOST_FDS, "the supervisor takes all of a host");

union fd_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int) * KEEPER_FDS)];
};

static int say(const struct link *link, enum supervisor_word word, uint32_t slot, const int *fds)
{
	struct supervisor_message message = { .word = (uint32_t)word, .slot = slot };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	union fd_control control;
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	memset(&control, 0, sizeof(control));
	if (fds) {
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int) * KEEPER_FDS) };
		memcpy(CMSG_DATA(&control.header), fds, sizeof(int) * KEEPER_FDS);
	}
	ssize_t done;
	do
		done = sendmsg(link->fd, &header, MSG_NOSIGNAL);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : 0;
}

/* One message; the descriptors that came with it are the caller's. Returns how many, or negative. */
static int hear(
	const struct link *link, struct supervisor_message *message, int fds[KEEPER_FDS], int flags)
{
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	union fd_control control;
	struct msghdr header = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t got;
	do
		got = recvmsg(link->fd, &header, flags | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (got == 0)
		return -ECONNRESET; /* nobody is there any more */
	int count = (int)fdtake(&header, fds, KEEPER_FDS);
	if (got != (ssize_t)sizeof(*message)) {
		for (int i = 0; i < count; i++)
			close(fds[i]);
		return -EPIPE;
	}
	return count;
}

int link_say(const struct link *link, enum supervisor_word word, uint32_t slot)
{
	return say(link, word, slot, NULL);
}

bool link_wait_go(struct link *link)
{
	struct supervisor_message message;
	int fds[KEEPER_FDS];
	int count = hear(link, &message, fds, 0);
	return count == 0 && message.word == SUPERVISOR_GO;
}

void link_hear(struct link *link)
{
	struct supervisor_message message;
	int fds[KEEPER_FDS];
	int count = hear(link, &message, fds, MSG_DONTWAIT);
	if (count == -EAGAIN)
		return;
	for (int i = 0; i < count; i++)
		close(fds[i]);
	/*
	 * The supervisor has died: so does this one, at once, as it would a moment later by its signal.
	 * Whoever waits for an answer must not get one from here: there may be a next supervisor.
	 */
	if (count == -ECONNRESET)
		raise(SIGKILL);
	if (count < 0 || message.word == SUPERVISOR_END)
		link->is_to_end = true;
}

/* ---- keeper.h */

static struct kept_host *get_host(void *arg, size_t slot, bool *used)
{
	const struct link *link = arg;
	struct state_host *host = &link->state->hosts[slot];
	*used = host->used;
	return (void *)host->body;
}

static int keep_host(void *arg, size_t slot, const int fds[KEEPER_FDS])
{
	const struct link *link = arg;
	struct state_host *host = &link->state->hosts[slot];
	int result = say(link, SUPERVISOR_KEEP, (uint32_t)slot, fds);
	if (result < 0)
		return result;
	host->crashes = 0;
	host->used = 1;
	return 0;
}

static int take_host(void *arg, size_t slot, int fds[KEEPER_FDS])
{
	struct link *link = arg;
	struct supervisor_message message;
	int result = say(link, SUPERVISOR_TAKE, (uint32_t)slot, NULL);
	if (result < 0)
		return result;
	for (;;) {
		int count = hear(link, &message, fds, 0);
		if (count == -ECONNRESET)
			raise(SIGKILL); /* as in link_hear() */
		if (count < 0)
			return count;
		if (message.word == SUPERVISOR_KEPT && count == KEEPER_FDS)
			return 0;
		for (int i = 0; i < count; i++)
			close(fds[i]);
		if (message.word == SUPERVISOR_KEPT)
			return -ENOENT;
		if (message.word == SUPERVISOR_END)
			link->is_to_end = true;
	}
}

static void drop_host(void *arg, size_t slot)
{
	const struct link *link = arg;
	struct state_host *host = &link->state->hosts[slot];
	/* Its notes may hold what is sensitive. */
	host->used = 0;
	memset(host->body, 0, sizeof(host->body));
	int result = say(link, SUPERVISOR_DROP, (uint32_t)slot, NULL);
	if (result < 0 && result != -EPIPE && result != -ECONNRESET)
		log_msg(LOG_LEVEL_ERROR, "cannot let a tool host go: %s", strerror(-result));
}

static void hear_host(void *arg, size_t slot, bool done)
{
	const struct link *link = arg;
	link->state->current = (struct state_current){ .host = done ? 0 : (uint32_t)slot + 1,
		.since_ms = done ? 0 : state_now_ms() };
}

/* ---- what is put by: each in pages of its own, which are given back to the system afterwards */

#define PAGE UINT64_C(4096)

static struct state_put_by *find_place(struct state *state)
{
	for (size_t i = 0; i < STATE_PUT_BY; i++)
		if (state->put_by[i].tag == 0)
			return &state->put_by[i];
	return NULL;
}

static int put_by(void *arg, uint64_t tag, const void *bytes, size_t len)
{
	struct link *link = arg;
	struct state *state = link->state;
	struct state_put_by *place = find_place(state);
	if (map_get(&link->put_by, tag))
		return 0;
	if (!place || state->put_by_bytes + len > STATE_PUT_BY_MAX)
		return -ENOSPC;
	ssize_t done = pwrite(SUPERVISOR_PUT_BY_FD, bytes, len, (off_t)state->put_by_end);
	if (done != (ssize_t)len)
		return done < 0 ? -errno : -EIO;
	place->offset = state->put_by_end;
	place->len = len;
	/* Never used again: the file is as long as it gets, and holds only what is in use. */
	state->put_by_end += (len + PAGE - 1) / PAGE * PAGE;
	state->put_by_bytes += len;
	place->tag = tag;
	map_put(&link->put_by, tag, place);
	return 0;
}

static void let_go(void *arg, uint64_t tag)
{
	struct link *link = arg;
	struct state_put_by *place = map_remove(&link->put_by, tag);
	if (!place)
		return;
	place->tag = 0;
	link->state->put_by_bytes -= place->len;
	if (fallocate(SUPERVISOR_PUT_BY_FD, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)place->offset, (off_t)((place->len + PAGE - 1) / PAGE * PAGE)) < 0)
		log_errno(LOG_LEVEL_WARNING, "memory of a call is not given back");
}

static int fetch(void *arg, uint64_t tag, struct buf *out)
{
	const struct link *link = arg;
	const struct state_put_by *place = map_get(&link->put_by, tag);
	if (!place)
		return -ENOENT;
	int result = buf_reserve(out, place->len);
	if (result < 0)
		return result;
	ssize_t got =
		pread(SUPERVISOR_PUT_BY_FD, out->data + out->len, place->len, (off_t)place->offset);
	if (got != (ssize_t)place->len)
		return got < 0 ? -errno : -EIO;
	out->len += (size_t)got;
	return 0;
}

void link_take_over(struct link *link)
{
	struct state *state = link->state;
	state->put_by_bytes = 0;
	for (size_t i = 0; i < STATE_PUT_BY; i++) {
		struct state_put_by *place = &state->put_by[i];
		if (place->tag == 0)
			continue;
		state->put_by_bytes += place->len;
		map_put(&link->put_by, place->tag, place);
	}
}

void link_release(struct link *link)
{
	map_release(&link->put_by);
}

void link_init(struct link *link, int fd, struct state *state)
{
	*link = (struct link){ .fd = fd,
		.state = state,
		.keeper = { .arg = link,
			.count = STATE_HOSTS,
			.get = get_host,
			.keep = keep_host,
			.take = take_host,
			.drop = drop_host,
			.put_by = put_by,
			.let_go = let_go,
			.fetch = fetch,
			.hear = hear_host } };
}
