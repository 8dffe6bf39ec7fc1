#include "fs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/ownmount.h"
#include "core/base/xalloc.h"
#include "core/running/identity.h"
#include "core/running/statedir.h"

#define FUSE_DEVICE "/dev/fuse"
#define FUSERMOUNT "fusermount3"
#define EXEC_FAILED 127   /* as the exit status of a child, as shells have it */
#define KILLED_MS 1000    /* until the last process that shares its lock is gone */
#define UNMOUNTED_MS 5000 /* until its calls and hosts have ended */

bool mount_is_ours(const char *path)
{
	FILE *table = setmntent("/proc/self/mounts", "r");
	bool ours = false;
	const struct mntent *entry;
	while (table && (entry = getmntent(table)))
		if (strcmp(entry->mnt_dir, path) == 0)
			ours = strcmp(entry->mnt_type, OWNMOUNT_TYPE) == 0;
	if (table)
		endmntent(table);
	return ours;
}

char *mount_real_path(const char *path)
{
	char *real = realpath(path, NULL);
	if (real || (errno != ENOTCONN && errno != ECONNABORTED))
		return real;
	/* The last component cannot be looked at; those before it can. */
	auto_free char *copy = xstrdup(path);
	size_t len = strlen(copy);
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	char *slash = strrchr(copy, '/');
	const char *name = slash ? slash + 1 : copy;
	if (slash)
		*slash = '\0';
	auto_free char *parent = realpath(slash ? (*copy ? copy : "/") : ".", NULL);
	if (!parent)
		return NULL;
	return xasprintf("%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
}

/*
 * Whether somebody answers: one in another container, perhaps, whose state is not to be seen here. It is
 * opened and not only looked at, for which the kernel may need nobody.
 */
static bool answers(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0;
}

/*
 * A mount of ours at which nobody serves any more is taken away. A server that was killed or
 * unmounted a moment ago is given the time to end.
 */
static int clear_stale(const char *path, struct fail *why)
{
	bool is_ours = mount_is_ours(path);
	int served = statedir_wait_free(path, is_ours ? KILLED_MS : UNMOUNTED_MS);
	if (!is_ours)
		return 0;
	if (served < 0 || answers(path))
		return fail_set(why, -EBUSY,
			"pegfs is mounted at '%s' already: run 'pegfs umount %s' first", path,
			path);
	log_msg(LOG_LEVEL_INFO, "a mount at %s whose server is gone is taken away", path);
	return mount_detach(path, true, why);
}

int mount_prepare(const char *path, struct fail *why)
{
	struct stat st;
	if (clear_stale(path, why) < 0)
		return why->code;
	if (stat(path, &st) < 0)
		return fail_errno(why, "mount point '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return fail_set(why, -ENOTDIR, "mount point '%s' is no directory", path);
	return 0;
}

static int open_device(struct fail *why)
{
	int fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	const char *hint =
		errno == ENOENT || errno == ENODEV || errno == ENXIO || errno == EPERM
			? "load the kernel module fuse; in a container, start it with --device /dev/fuse"
			: "run as root, or give this user the right to use it (chmod 666, on a container's host)";
	return fail_set(why, -errno, "cannot open " FUSE_DEVICE ": %s (%s)", strerror(errno), hint);
}

/* Root of a container is not allowed to do all that root is. */
static bool may_mount(void)
{
	struct identity self;
	identity_self(&self);
	return self.caps >> CAP_SYS_ADMIN & 1;
}

/* -EPERM without a sentence where this process has not the right to mount. */
static int mount_directly(const struct mount_options *options, int fd, struct fail *why)
{
	auto_free char *data = xasprintf(
		"fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions%s", fd,
		(unsigned)getuid(), (unsigned)getgid(), options->allow_other ? ",allow_other" : "");
	if (options->mount_flags & MS_RDONLY)
		log_msg(LOG_LEVEL_WARNING,
			"mounted with 'ro': the call files cannot be written to either; leave it out, "
			"all other files are read-only in any case");
	if (mount("pegfs", options->mountpoint, OWNMOUNT_TYPE, options->mount_flags, data) == 0)
		return 0;
	if (errno == EPERM && geteuid() == 0 && !may_mount())
		return fail_set(why, -EACCES,
			"cannot mount at '%s': root may not mount here; start the container with "
			"--cap-add SYS_ADMIN",
			options->mountpoint);
	if (errno == EACCES && may_mount())
		return fail_set(why, -EACCES,
			"cannot mount at '%s': a security module (AppArmor, SELinux) forbids it; start "
			"a container of Docker's with --security-opt apparmor=unconfined",
			options->mountpoint);
	if (errno == EPERM)
		return -EPERM;
	return fail_errno(why, "cannot mount at '%s'", options->mountpoint);
}

static int receive_fd(int socket_fd)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	int fd;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/*
 * Runs fusermount3 with a socket in _FUSE_COMMFD; 0 where it ends well, -ENOENT where it is not
 * installed, else -EPERM: it has printed why.
 */
static int run_fusermount(char *const argv[], int comm_fd)
{
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		char number[16];
		snprintf(number, sizeof(number), "%d", comm_fd);
		if (comm_fd >= 0) {
			fcntl(comm_fd, F_SETFD, 0);
			setenv("_FUSE_COMMFD", number, 1);
		}
		execvp(argv[0], argv);
		_exit(EXEC_FAILED);
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXEC_FAILED)
		return -ENOENT;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int mount_by_helper(const struct mount_options *options, struct fail *why)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return fail_errno(why, "cannot create a socket");
	auto_close int ours = pair[0];
	auto_close int theirs = pair[1];
	auto_free char *words = xasprintf("subtype=pegfs,fsname=pegfs,default_permissions%s",
		options->allow_other ? ",allow_other" : "");
	char name[] = FUSERMOUNT, flag[] = "-o", end[] = "--";
	char *const argv[] = { name, flag, words, end, options->mountpoint, NULL };
	int result = run_fusermount(argv, theirs);
	close(take_fd(&theirs));
	int fd = result == 0 ? receive_fd(ours) : -1;
	if (fd >= 0)
		return fd;
	if (result == -ENOENT)
		return fail_set(why, -EPERM,
			"cannot mount at '%s': not permitted; run as root, or install " FUSERMOUNT
			" (package fuse3)",
			options->mountpoint);
	return fail_set(why, -EPERM,
		"cannot mount at '%s': " FUSERMOUNT
		" refused it, and has said why above%s; where AppArmor "
		"confines it (\"mount failed: Permission denied\"), mount below your home directory",
		options->mountpoint,
		options->allow_other ? "; allow_other needs user_allow_other in /etc/fuse.conf"
				     : "");
}

int mount_attach(const struct mount_options *options, struct fail *why)
{
	auto_close int fd = open_device(why);
	if (fd < 0)
		return fd;
	int result = mount_directly(options, fd, why);
	if (result == -EPERM)
		return mount_by_helper(options, why);
	return result < 0 ? result : take_fd(&fd);
}

int mount_detach(const char *path, bool lazy, struct fail *why)
{
	if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EBUSY)
		return fail_set(why, -EBUSY,
			"'%s' is busy: end what uses it (fuser -vm %s), or give --lazy", path,
			path);
	if (errno != EPERM)
		return fail_errno(why, "cannot unmount '%s'", path);
	char name[] = FUSERMOUNT, unmount[] = "-u", zap[] = "-uz", end[] = "--";
	auto_free char *target = xstrdup(path);
	char *const argv[] = { name, lazy ? zap : unmount, end, target, NULL };
	return run_fusermount(argv, -1) == 0
		       ? 0
		       : fail_set(why, -EPERM, "cannot unmount '%s': not permitted", path);
}
