#include "fs/session.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"

/* Requests served before timers and other descriptors have their turn. */
#define REQUESTS_A_TURN 64

/* Not in the header of a 6.1 kernel; the value is ABI. */
#define NOTIFY_INC_EPOCH 8

struct session {
	struct fuse_session *fuse;
	int fd;
	struct loop_fd *entry;
	struct fuse_buf buf; /* libfuse allocates it at the first request and uses it again */
	void (*on_end)(void *arg);
	void *arg;
};

static ssize_t read_device(int fd, void *buf, size_t len, void *userdata)
{
	(void)userdata;
	return read(fd, buf, len);
}

static ssize_t write_device(int fd, struct iovec *iov, int count, void *userdata)
{
	(void)userdata;
	return writev(fd, iov, count);
}

static void on_readable(void *arg, uint32_t events)
{
	struct session *session = arg;
	(void)events;
	for (int i = 0; i < REQUESTS_A_TURN; i++) {
		int got = fuse_session_receive_buf(session->fuse, &session->buf);
		if (got == -EAGAIN)
			return;
		/* ENOENT: the request was interrupted before it could be read. */
		if (got == -EINTR || got == -ENOENT)
			continue;
		if (got <= 0) {
			if (got < 0 && got != -ENODEV)
				log_msg(LOG_LEVEL_ERROR, "reading /dev/fuse: %s", strerror(-got));
			loop_remove_fd(&session->entry);
			session->on_end(session->arg);
			return;
		}
		fuse_session_process_buf(session->fuse, &session->buf);
	}
}

static int attach(struct session *session, struct loop *loop, struct fail *why)
{
	static const struct fuse_custom_io io = { .writev = write_device, .read = read_device };
	int result = io_set_nonblock(session->fd, true);
	if (result == 0)
		result = fuse_session_custom_io(session->fuse, &io, session->fd);
	if (result != 0)
		return fail_set(why, -EIO, "libfuse does not take the FUSE device: %s",
			strerror(result < 0 ? -result : result));
	session->entry = loop_add_fd(loop, session->fd, EPOLLIN, on_readable, session, why);
	return session->entry ? 0 : why->code;
}

struct session *session_new(struct loop *loop, int fuse_fd, const struct fuse_lowlevel_ops *ops,
	void *arg, void (*on_end)(void *arg), struct fail *why)
{
	char name[] = "pegfs";
	char *argv[] = { name, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct session *session = xcalloc(1, sizeof(*session));
	*session = (struct session){ .fd = fuse_fd, .on_end = on_end, .arg = arg };
	session->fuse = fuse_session_new(&args, ops, sizeof(*ops), arg);
	fuse_opt_free_args(&args); /* parsing made a copy of it */
	if (!session->fuse)
		fail_set(why, -EIO, "libfuse makes no session");
	else
		attach(session, loop, why);
	if (why->code) {
		session_free(session);
		return NULL;
	}
	return session;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	loop_remove_fd(&session->entry);
	/* It closes the descriptor that it was given. */
	if (session->fuse)
		fuse_session_destroy(session->fuse);
	else
		close(session->fd);
	free(session->buf.mem);
	free(session);
}

int session_drop_names(const struct session *session)
{
	const struct fuse_out_header header = {
		.len = sizeof(header), .error = NOTIFY_INC_EPOCH, .unique = 0
	};
	return write(session->fd, &header, sizeof(header)) < 0 ? -errno : 0;
}

struct fuse_session *session_fuse(const struct session *session)
{
	return session->fuse;
}
