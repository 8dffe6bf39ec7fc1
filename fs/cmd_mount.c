#include "fs/cmd_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/ownpath.h"
#include "core/running/statedir.h"
#include "core/tools/sync.h"
#include "fs/mount.h"
#include "fs/options.h"
#include "fs/state.h"
#include "fs/store.h"
#include "fs/supervisor.h"

#define END_LIMIT_MS 5000
#define SEED_WAIT_MS 60000 /* for another sync of the same directory */

/* Who waits for the mount to be ready. */
struct waiter {
	int fd; /* gets the line READY; -1: nobody */
	bool leave_terminal;
};

/* Lets go of the terminal; errors have gone to it until here. */
static void leave_terminal(void)
{
	auto_close int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return;
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	dup2(null_fd, STDERR_FILENO);
}

/* What the supervisor's callbacks need. */
struct mounted {
	const struct mount_options *options;
	struct waiter waiter;
	struct statedir state;
	struct store store; /* the service manager's, where one has started us */
	bool is_told;       /* the manager, that the mount is ready */
};

static void on_news(void *arg, const struct supervisor_news *news)
{
	struct mounted *mounted = arg;
	struct waiter *waiter = &mounted->waiter;
	const struct statedir_news told = { .holder = (int)getpid(),
		.generation = news->generation,
		.failed_reloads = news->failed_reloads };
	statedir_tell(&mounted->state, &told);
	if (!mounted->is_told && store_say(&mounted->store, "READY=1") < 0)
		log_errno(LOG_LEVEL_WARNING, "cannot tell systemd that the mount is ready");
	mounted->is_told = true;
	if (waiter->fd >= 0) {
		if (io_write_all(waiter->fd, "READY\n", 6) < 0)
			log_errno(LOG_LEVEL_WARNING, "cannot tell that the mount is ready");
		close(take_fd(&waiter->fd));
	}
	if (waiter->leave_terminal)
		leave_terminal();
	waiter->leave_terminal = false;
}

/*
 * Takes away what nobody else will: ended by a signal, given up, or a connection that was aborted.
 * After an unmount there is none; but there may be the mount of another server already, which
 * answers: looking at it is safe, for a dead one answers ENOTCONN at once.
 */
static void on_end(void *arg, bool is_disconnected)
{
	const struct mounted *mounted = arg;
	const char *path = mounted->options->mountpoint;
	struct fail ignored = FAIL_INIT;
	struct stat st;
	if (!mount_is_ours(path) ||
		(is_disconnected && (stat(path, &st) == 0 || errno != ENOTCONN)))
		return;
	mount_detach(path, true, &ignored);
}

/* The kernel's FUSE_INIT waits since the mount was made; each server handles it. */
static int read_init(int fuse_fd, struct state *state, struct fail *why)
{
	unsigned char bytes[8192]; /* the kernel wants room for the smallest of all requests */
	ssize_t got = read(fuse_fd, bytes, sizeof(bytes));
	if (got <= 0)
		return fail_errno(why, "cannot read from /dev/fuse");
	if ((size_t)got > sizeof(state->init))
		return fail_set(
			why, -EPROTO, "the kernel's FUSE_INIT is too long (%zd bytes)", got);
	memcpy(state->init, bytes, (size_t)got);
	state->init_len = (uint32_t)got;
	return 0;
}

static char *own_path(void)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return xstrdup(path);
}

/* What the supervisor needs, made or taken back. All owned; supervisor_run() closes fuse_fd. */
struct parts {
	struct state *state;
	int fuse_fd, state_fd, covered_fd, put_by_fd;
};

static void release_parts(struct parts *parts)
{
	state_unmap(parts->state);
	auto_close_fd(&parts->state_fd);
	auto_close_fd(&parts->covered_fd);
	auto_close_fd(&parts->put_by_fd);
}

/* Mounts. 0 or *why, with nothing left but what is in *parts. */
static int make_parts(struct mounted *mounted, struct parts *parts, struct fail *why)
{
	const struct mount_options *options = mounted->options;
	if (mount_prepare(options->mountpoint, why) < 0)
		return why->code;
	parts->covered_fd = open(options->mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (parts->covered_fd < 0)
		return fail_errno(why, "mount point '%s'", options->mountpoint);
	parts->put_by_fd = memfd_create("pegfs-put-by", MFD_CLOEXEC);
	if (parts->put_by_fd < 0)
		return fail_errno(why, "cannot make a memory file");
	parts->fuse_fd = mount_attach(options, why);
	parts->state_fd = parts->fuse_fd < 0 ? -1 : state_make(&parts->state, why);
	if (parts->state && statedir_make(&mounted->state, options->mountpoint, why) == 0 &&
		read_init(parts->fuse_fd, parts->state, why) == 0)
		return 0;
	if (parts->fuse_fd >= 0) {
		on_end(mounted, false);
		close(take_fd(&parts->fuse_fd));
	}
	return why->code;
}

static bool is_connected(int fuse_fd)
{
	struct pollfd fuse = { .fd = fuse_fd };
	return poll(&fuse, 1, 0) >= 0 && !(fuse.revents & POLLERR);
}

/* The mount of a supervisor that was killed: of the descriptors that the manager has kept. */
static int take_parts(struct mounted *mounted, struct parts *parts, struct fail *why)
{
	int *fds = mounted->store.fds;
	if (!is_connected(fds[STORE_FUSE]))
		return fail_set(why, -ENOTCONN, "it was unmounted");
	parts->state = state_map(fds[STORE_STATE], why);
	if (!parts->state || statedir_adopt(&mounted->state, mounted->options->mountpoint,
				     take_fd(&fds[STORE_LOCK]), why) < 0) {
		state_unmap(parts->state);
		parts->state = NULL;
		statedir_release(&mounted->state);
		return why->code;
	}
	parts->fuse_fd = take_fd(&fds[STORE_FUSE]);
	parts->state_fd = take_fd(&fds[STORE_STATE]);
	parts->covered_fd = take_fd(&fds[STORE_COVERED]);
	parts->put_by_fd = take_fd(&fds[STORE_PUT_BY]);
	return 0;
}

/* Whether there was a mount to go on with. One that cannot be gone on with is let go. */
static bool take_back(struct mounted *mounted, struct parts *parts)
{
	struct fail why = FAIL_INIT;
	struct store *store = &mounted->store;
	if (store_is_empty(store))
		return false;
	if (!store_is_complete(store))
		fail_set(&why, -EBADF, "not all descriptors have come back");
	else if (take_parts(mounted, parts, &why) == 0)
		return true;
	log_msg(LOG_LEVEL_WARNING,
		"cannot go on with the mount at '%s' that was there: %s; it is made anew",
		mounted->options->mountpoint, why.text);
	store_forget(store);
	store_close_taken(store);
	return false;
}

static void keep_parts(const struct mounted *mounted, const struct parts *parts)
{
	const int fds[STORE_FDS] = { [STORE_FUSE] = parts->fuse_fd,
		[STORE_STATE] = parts->state_fd,
		[STORE_COVERED] = parts->covered_fd,
		[STORE_PUT_BY] = parts->put_by_fd,
		[STORE_LOCK] = mounted->state.lock_fd };
	for (int which = 0; which < STORE_FDS; which++)
		if (store_keep(&mounted->store, (enum store_fd)which, fds[which]) < 0)
			log_errno(LOG_LEVEL_WARNING,
				"the mount will not outlive its supervisor: the service manager "
				"does not listen");
}

/* Mounts, and stays with the mount until it ends. The exit status; or *why. */
static int supervise(struct mounted *mounted, struct fail *why)
{
	const struct mount_options *options = mounted->options;
	auto_free char *program = own_path();
	char command[] = "serve";
	char *const argv[] = { program, command, options->mountpoint, NULL };
	struct parts parts = { .fuse_fd = -1, .state_fd = -1, .covered_fd = -1, .put_by_fd = -1 };
	auto_close int options_fd = options_save(options, why);
	if (options_fd < 0)
		return COMMAND_FAILED;
	bool is_taken_over = take_back(mounted, &parts);
	if (!is_taken_over && make_parts(mounted, &parts, why) < 0) {
		release_parts(&parts);
		return COMMAND_FAILED;
	}
	if (!is_taken_over)
		keep_parts(mounted, &parts);
	const struct supervisor_setup setup = { .fuse_fd = parts.fuse_fd,
		.state_fd = parts.state_fd,
		.options_fd = options_fd,
		.covered_fd = parts.covered_fd,
		.put_by_fd = parts.put_by_fd,
		.state = parts.state,
		.store = &mounted->store,
		.is_taken_over = is_taken_over,
		.argv = argv,
		.watchdog_ms = options->watchdog_ms,
		.on_news = on_news,
		.on_end = on_end,
		.arg = mounted };
	int status = supervisor_run(&setup);
	store_forget(&mounted->store);
	release_parts(&parts);
	return status;
}

static int serve(const struct mount_options *options, struct waiter waiter)
{
	struct fail why = FAIL_INIT;
	struct mounted mounted = { .options = options, .waiter = waiter, .state = STATEDIR_INIT };
	log_set_level(options->log_level);
	store_open(&mounted.store);
	int status = supervise(&mounted, &why);
	statedir_remove(&mounted.state);
	store_release(&mounted.store);
	return why.code ? command_failed("mount", why.text) : status;
}

/* The parent's side: until the line READY comes, or the daemon ends without it. */
static int wait_ready(int fd, pid_t pid)
{
	char line[8];
	ssize_t got = 0;
	do
		got = read(fd, line, sizeof(line));
	while (got < 0 && errno == EINTR);
	if (got > 0)
		return COMMAND_OK;
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : COMMAND_FAILED;
}

/* Mounts in a child that stays; returns when the mount can be used. */
static int serve_in_background(const struct mount_options *options)
{
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return command_failed("mount", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		return command_failed("mount", strerror(errno));
	if (pid == 0) {
		close(ready[0]);
		setsid();
		if (chdir("/") < 0)
			log_errno(LOG_LEVEL_WARNING, "cannot change to /");
		log_to_syslog();
		_exit(serve(options, (struct waiter){ .fd = ready[1], .leave_terminal = true }));
	}
	close(ready[1]);
	int status = wait_ready(ready[0], pid);
	close(ready[0]);
	return status;
}

/*
 * --seed: before anything is mounted, so that what fails is seen by whoever mounts. A tool that fails
 * is left as it was and told; the others are there. Two mounts of one directory may start at once.
 */
static int sync_seed(const struct mount_options *options)
{
	if (!options->seed)
		return COMMAND_OK;
	auto_free char *target = xstrndup(options->tools, strcspn(options->tools, ":"));
	const struct sync_options how = { .wait_ms = SEED_WAIT_MS };
	struct sync_report report;
	struct fail why = FAIL_INIT;
	int result = sync_run(options->seed, target, &how, &report, &why);
	for (size_t i = 0; i < report.count; i++)
		if (report.items[i].problem)
			fprintf(stderr, "pegfs mount: --seed: %s: %s\n", report.items[i].name,
				report.items[i].problem);
	sync_report_release(&report);
	if (result < 0)
		fail_context(&why, "--seed");
	return result < 0 ? command_failed("mount", why.text) : COMMAND_OK;
}

static int mount_tools(bool is_helper, int argc, char **argv)
{
	struct mount_options options;
	struct fail why = FAIL_INIT;
	int status = COMMAND_OK;
	int parsed = options_parse(&options, is_helper, argc, argv, &why);
	if (parsed < 0) {
		command_failed("mount", why.text);
		status = parsed == -EINVAL ? COMMAND_USAGE : COMMAND_FAILED;
	} else if (parsed > 0) {
		struct command command = cmd_mount;
		command.options = options_table();
		cmdline_help(&command, stdout);
		status = fflush(stdout) == 0 ? COMMAND_OK : COMMAND_FAILED;
	} else {
		const struct waiter waiter = { .fd = options.ready_fd };
		ownpath_warn(options.tools);
		status = sync_seed(&options);
		if (status == COMMAND_OK)
			status = options.foreground ? serve(&options, waiter)
						    : serve_in_background(&options);
	}
	options_release(&options);
	return status;
}

static int mount_command(int argc, char **argv)
{
	return mount_tools(false, argc, argv);
}

int cmd_mount_helper(int argc, char **argv)
{
	return mount_tools(true, argc, argv);
}

static int unmount(const char *path, bool lazy)
{
	struct fail why = FAIL_INIT;
	auto_free char *real = mount_real_path(path);
	const char *point = real ? real : path;
	if (!mount_is_ours(point)) {
		fail_set(&why, -EINVAL, "no pegfs is mounted at '%s'", path);
		return command_failed("umount", why.text);
	}
	if (mount_detach(point, lazy, &why) < 0)
		return command_failed("umount", why.text);
	if (!lazy && statedir_wait_free(point, END_LIMIT_MS) < 0)
		fprintf(stderr,
			"pegfs umount: unmounted here, but a container or another mount namespace "
			"still has it; the daemon ends with the last of them\n");
	return COMMAND_OK;
}

static const struct command_option umount_options[] = {
	{ "lazy", 'l', NULL, "also while the tree is in use", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static int umount_command(int argc, char **argv)
{
	bool lazy = false;
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_umount, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		lazy = true;
	}
	if (optind + 1 != argc)
		return command_misuse("umount", "name one mount point");
	return unmount(argv[optind], lazy);
}

const struct command cmd_mount = { .name = "mount",
	.summary = "show tools as a tree",
	.arguments = "MOUNTPOINT",
	.about =
		"Shows the tools of the tool directories as one tree at MOUNTPOINT; returns when it can be\n"
		"used.\n",
	.notes = "Exit status: 0 mounted, 1 failed, 2 wrong use.\n",
	.takes = COMMAND_TAKES_DIRS,
	.run = mount_command };

const struct command cmd_umount = { .name = "umount",
	.summary = "take the tree away",
	.arguments = "MOUNTPOINT",
	.about = "Unmounts, and returns when the daemon has ended.\n",
	.options = umount_options,
	.takes = COMMAND_TAKES_DIRS,
	.run = umount_command };
