#include "fs/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/running/statedir.h"
#include "fs/mount.h"
#include "fs/ops.h"
#include "fs/options.h"
#include "fs/session.h"

#define REQUESTS_A_UID 4 /* as many of the largest size as a uid may have in memory at once */

static void on_session_end(void *arg)
{
	struct server *server = arg;
	server->is_disconnected = true;
	loop_stop(server->loop, 0);
}

static void on_signal(void *arg, int signal)
{
	struct server *server = arg;
	log_msg(LOG_LEVEL_INFO, "ended by signal %d (%s)", signal, strsignal(signal));
	loop_stop(server->loop, 0);
}

static int watch_signals(struct server *server, struct fail *why)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	return loop_watch_signals(server->loop, &set, on_signal, server, why);
}

/* Every open file of a tool takes a descriptor: have as many as the system gives. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * A kernel with a time limit for FUSE requests aborts the whole mount when a held write or read
 * takes longer (H13, since Linux 6.15). Calls are then cut below it.
 */
static unsigned cap_timeout(unsigned timeout_ms)
{
	static const char *const limits[] = { "/proc/sys/fs/fuse/default_request_timeout",
		"/proc/sys/fs/fuse/max_request_timeout" };
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		auto_buf struct buf text = BUF_INIT(64);
		auto_close int fd = open(limits[i], O_RDONLY | O_CLOEXEC);
		unsigned long limit_s = fd >= 0 && io_read_all(fd, &text) == 0
						? strtoul(buf_str(&text), NULL, 10)
						: 0;
		if (limit_s == 0 || limit_s >= timeout_ms / 1000 + 2)
			continue;
		timeout_ms = (unsigned)(limit_s > 4 ? (limit_s - 2) * 1000 : limit_s * 500);
		log_msg(LOG_LEVEL_WARNING,
			"%s is %lu: the kernel would end the whole mount at a call that takes "
			"longer, so calls are ended after %u ms; set it to 0 for longer ones",
			limits[i], limit_s, timeout_ms);
	}
	return timeout_ms;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void server_refresh_environment(struct server *server)
{
	auto_environment struct environment environment = ENVIRONMENT_INIT;
	struct stat st;
	struct fail why = FAIL_INIT;
	const char *path = server->options->integrations;
	if (!path || stat(path, &st) < 0 || is_same_file(&st, &server->integrations))
		return;
	server->integrations = st;
	if (options_load_environment(server->options, &environment, &why) < 0)
		log_msg(LOG_LEVEL_WARNING, "%s; the settings that were read before still count",
			why.text);
	else
		executor_set_env(server->executor, (const char *const *)environment.items);
}

static void on_call_change(void *arg, const struct call *call)
{
	struct server *server = arg;
	handles_wake(&server->handles, call->seq);
}

static const struct calls_listener calls_listener = { .on_change = on_call_change,
	.on_forget = on_call_change };

static int make_running(struct server *server, const struct statedir *state, struct fail *why)
{
	const struct mount_options *options = server->options;
	auto_environment struct environment environment = ENVIRONMENT_INIT;
	struct executor_config config = options->executor;
	if (options->integrations && stat(options->integrations, &server->integrations) < 0)
		return fail_errno(why, "integrations '%s'", options->integrations);
	if (options_load_environment(options, &environment, why) < 0)
		return why->code;
	config.lib_dir = options->lib_dir;
	config.state_dir = state->path;
	config.env = (const char *const *)environment.items;
	config.timeout_ms = cap_timeout(config.timeout_ms);
	server->executor = executor_new(server->loop, &config, why);
	if (!server->executor)
		return why->code;
	const struct calls_config calls = { .dir_fd = state->calls_fd,
		.keep = options->keep,
		.pending_max = options->request_max * REQUESTS_A_UID };
	server->calls = calls_new(server->loop, server->executor, &calls);
	calls_listen(server->calls, &calls_listener, server);
	return 0;
}

static uint32_t digest_of(const struct snapshot *snapshot)
{
	uint64_t hash = MAP_HASH_SEED;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct tool *tool = snapshot->tools[i];
		hash = map_hash(hash, &tool->id, sizeof(tool->id));
		hash = map_hash(hash, &tool->digest, sizeof(tool->digest));
		hash = map_hash(hash, tool->dir, strlen(tool->dir));
	}
	for (size_t i = 0; i < snapshot->faults.count; i++)
		hash = map_hash(hash, snapshot->faults.items[i].text,
			strlen(snapshot->faults.items[i].text));
	return (uint32_t)(hash ^ hash >> 32);
}

static void prepare_tool(void *arg, struct tool *tool)
{
	const struct server *server = arg;
	executor_prepare(server->executor, tool);
}

/* From here on the tree shows the registry's current snapshot. */
static void adopt_snapshot(struct server *server)
{
	struct snapshot *before = server->snapshot;
	server->snapshot = snapshot_ref(registry_current(server->registry));
	snapshot_each_new(before, server->snapshot, prepare_tool, server);
	snapshot_unref(before);
	server->tree_digest = digest_of(server->snapshot);
	clock_gettime(CLOCK_REALTIME, &server->changed);
	views_reset(&server->views);
	if (server->session && server->has_epoch && session_drop_names(server->session) < 0)
		log_errno(LOG_LEVEL_WARNING, "the kernel keeps cached names");
}

static void on_snapshot(void *arg)
{
	adopt_snapshot(arg);
}

static void drop_attributes(struct server *server, uint64_t ino)
{
	/* A negative offset: attributes alone, which waits for nothing. Data follow their mtime. */
	fuse_lowlevel_notify_inval_inode(session_fuse(server->session), ino, -1, 0);
}

static bool is_at_or_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	return len == 0 ||
	       (strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

/* A tool's own file has changed, or a directory with all that is in it. */
static void on_file(void *arg, const struct tool *tool, const char *path)
{
	struct server *server = arg;
	if (!server->session || snapshot_find(server->snapshot, tool->name) != tool)
		return;
	size_t at = 0;
	const struct file *file;
	while ((file = files_next(&server->files, &at)))
		if (strcmp(file->tool_name, tool->name) == 0 && is_at_or_below(file->path, path))
			drop_attributes(server, file->ino);
	if (server->has_epoch)
		session_drop_names(server->session);
}

static const struct watch_events watch_events = { .on_snapshot = on_snapshot, .on_file = on_file };

static void make_tools(struct server *server, int covered_fd)
{
	server->registry = registry_new(server->options->tools);
	registry_set_covered(server->registry, server->options->mountpoint, covered_fd);
	registry_scan(server->registry);
	adopt_snapshot(server);
	server->watch = watch_new(server->loop, server->registry, NULL, &watch_events, server);
}

/* In the reverse order of what refers to what. */
static void release(struct server *server)
{
	handles_release(&server->handles);
	map_release(&server->readable);
	quota_release(&server->gathering);
	session_free(server->session);
	executor_free(server->executor);
	calls_free(server->calls);
	views_reset(&server->views);
	files_release(&server->files);
	snapshot_unref(server->snapshot);
	watch_free(server->watch);
	registry_free(server->registry);
	loop_free(server->loop);
}

static int serve(struct server *server, int fuse_fd, int covered_fd, const struct statedir *state,
	void (*on_ready)(void *), void *arg, struct fail *why)
{
	if (watch_signals(server, why) < 0 || make_running(server, state, why) < 0) {
		close(fuse_fd);
		return why->code;
	}
	make_tools(server, covered_fd);
	server->session =
		session_new(server->loop, fuse_fd, &server_ops, server, on_session_end, why);
	if (!server->session)
		return why->code;
	log_msg(LOG_LEVEL_INFO, "%zu tools at %s", server->snapshot->count,
		server->options->mountpoint);
	on_ready(arg);
	int result = loop_run(server->loop);
	return result < 0 ? fail_set(why, result, "waiting for events: %s", strerror(-result)) : 0;
}

/*
 * Requests hold secrets: no core dump holds them, and no other process of the same user looks at
 * them (prctl(2)). RLIMIT_CORE alone does not hold for a core_pattern that is a pipe.
 */
static void forbid_dumps(void)
{
	const struct rlimit none = { 0, 1 }; /* 1, so that spawn.c can give it to hosts */
	setrlimit(RLIMIT_CORE, &none);
#ifndef __SANITIZE_ADDRESS__ /* its leak check reads this process as a debugger does */
	prctl(PR_SET_DUMPABLE, 0);
#endif
}

/*
 * Whether this server leaves a mount that nobody else will take away: it was ended by a signal, or
 * its connection was aborted. After an unmount there is none; but there may be the mount of another
 * server already, which answers: looking at it is safe, for a dead one answers ENOTCONN at once.
 */
static bool leaves_mount(const struct server *server)
{
	const char *path = server->options->mountpoint;
	struct stat st;
	if (!mount_is_ours(path))
		return false;
	return !server->is_disconnected || (stat(path, &st) < 0 && errno == ENOTCONN);
}

int server_run(const struct mount_options *options, int fuse_fd, int covered_fd,
	void (*on_ready)(void *arg), void *arg, struct fail *why)
{
	struct server server = { .options = options, .uid = geteuid() };
	struct statedir state = STATEDIR_INIT;
	clock_gettime(CLOCK_REALTIME, &server.started);
	/* Numbers that the kernel keeps must not come again: they start from the clock. */
	server.call_serial = (uint64_t)server.started.tv_sec << 4;
	handles_init(&server.handles, (uint64_t)server.started.tv_sec << 32 | 1);
	quota_init(&server.gathering, options->request_max * REQUESTS_A_UID);
	raise_file_limit();
	forbid_dumps();
	server.loop = loop_new(why);
	if (!server.loop || statedir_make(&state, options->mountpoint, why) < 0)
		close(fuse_fd);
	else
		serve(&server, fuse_fd, covered_fd, &state, on_ready, arg, why);
	release(&server);
	struct fail ignored = FAIL_INIT;
	if (leaves_mount(&server))
		mount_detach(options->mountpoint, true, &ignored);
	statedir_remove(&state);
	return why->code;
}
