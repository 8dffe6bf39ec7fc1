#include "fs/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/running/statedir.h"
#include "core/tools/owner.h"
#include "fs/ops.h"
#include "fs/options.h"
#include "fs/session.h"

#define PREPARE_DELAY_MS 2000
#define REQUESTS_A_UID 4 /* as many of the largest size as a uid may have in memory at once */

static void on_session_end(void *arg)
{
	struct server *server = arg;
	loop_stop(server->loop, SUPERVISOR_EXIT_UNMOUNTED);
}

/* SIGTERM alone means that another server is to take over. The end of all is told by the supervisor,
   which hears the signals of a terminal as well. */
static void on_signal(void *arg, int signal)
{
	struct server *server = arg;
	if (signal == SIGTERM)
		loop_stop(server->loop, SUPERVISOR_EXIT_HANDED_OVER);
}

static void on_link(void *arg, uint32_t events)
{
	struct server *server = arg;
	(void)events;
	link_hear(&server->link);
	if (server->link.is_to_end)
		loop_stop(server->loop, SUPERVISOR_EXIT_UNMOUNTED);
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

static void on_call_change(void *arg, const struct call *call)
{
	struct server *server = arg;
	handles_wake(&server->handles, call->seq);
	if (!call_state_is_final(call->state))
		return;
	meter_note(&server->meter, call);
	audit_end(&server->audit, call);
}

static void on_call_forget(void *arg, const struct call *call)
{
	struct server *server = arg;
	handles_wake(&server->handles, call->seq);
}

static const struct calls_listener calls_listener = { .on_change = on_call_change,
	.on_forget = on_call_forget };

void server_note_start(struct server *server, uint64_t seq)
{
	const struct call *call = calls_get(server->calls, seq);
	if (call)
		audit_call(&server->audit, call);
}

static int make_running(struct server *server, const struct statedir *state, struct fail *why)
{
	const struct mount_options *options = server->options;
	auto_environment struct environment environment = ENVIRONMENT_INIT;
	struct executor_config config = options->executor;
	if (options->integrations && !options->data &&
		stat(options->integrations, &server->integrations) < 0)
		return fail_errno(why, "integrations '%s'", options->integrations);
	uint8_t secret[SIPHASH_SECRET_SIZE];
	if (options_load_environment(options, &environment, why) < 0 ||
		statedir_get_secret(state, secret, sizeof(secret), why) < 0)
		return why->code;
	place_use_secret(secret); /* the state has keys of places from before */
	config.lib_dir = options->lib_dir;
	config.shown_at = options->shown_at;
	config.state_dir = state->path;
	config.env = (const char *const *)environment.items;
	config.timeout_ms = cap_timeout(config.timeout_ms);
	config.keeper = &server->link.keeper;
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

static void prepare_tool(void *arg, struct tool *tool)
{
	const struct server *server = arg;
	executor_prepare(server->executor, tool->base ? tool->base : tool);
}

static void prepare_tree(struct server *server, struct forest_tree *tree)
{
	if (!tree->snapshot || tree->prepared == tree->snapshot)
		return;
	snapshot_each_new(tree->prepared, tree->snapshot, prepare_tool, server);
	snapshot_unref(tree->prepared);
	tree->prepared = snapshot_ref(tree->snapshot);
}

static void prepare_tools(void *arg)
{
	struct server *server = arg;
	prepare_tree(server, &server->forest->only);
	size_t at = 0;
	struct forest_tree *tree = NULL;
	while ((tree = forest_next(server->forest, &at, tree)))
		prepare_tree(server, tree);
}

/* The tree is as old as its content, whichever server shows it. */
static void note_tree(struct server *server)
{
	struct state *state = server->state;
	struct forest_tree *tree = &server->forest->only;
	if (state->tree_digest == tree->digest && state->tree_s != 0) {
		tree->changed.tv_sec = (time_t)state->tree_s;
		tree->changed.tv_nsec = (long)state->tree_ns;
		return;
	}
	state->tree_s = tree->changed.tv_sec;
	state->tree_ns = tree->changed.tv_nsec;
	state->tree_digest = tree->digest;
}

static void prepare_soon(struct server *server)
{
	/* Another server has prepared most of them; one that has just taken over has better to do. */
	loop_arm_timer(server->loop, &server->prepare_timer,
		server->session || !server->state->init_replied ? 0 : PREPARE_DELAY_MS,
		prepare_tools, server);
}

static void drop_names(struct server *server)
{
	if (server->session && server->has_epoch && session_drop_names(server->session) < 0)
		log_errno(LOG_LEVEL_WARNING, "the kernel keeps cached names");
}

static void audit_tree(struct server *server)
{
	const struct snapshot *snapshot = server->forest->only.snapshot;
	audit_tools(&server->audit, snapshot->count, snapshot->faults.count);
}

static void on_tree_change(void *arg, const struct forest_tree *tree)
{
	struct server *server = arg;
	views_forget(&server->views, tree);
}

static void on_snapshot(void *arg)
{
	struct server *server = arg;
	const struct snapshot *before = server->forest->only.snapshot;
	if (!forest_adopt(server->forest, on_tree_change, server))
		return;
	prepare_soon(server);
	drop_names(server);
	if (before == server->forest->only.snapshot)
		return;
	note_tree(server);
	audit_tree(server);
}

static void on_settings(void *arg, const struct owner *owner)
{
	const struct server *server = arg;
	executor_outdate(server->executor, owner);
}

/* Another one of that name may have been there, and calls of his may have been refused since. */
static void on_user_come(void *arg, const struct owner *owner)
{
	const struct server *server = arg;
	calls_forget_owner(server->calls, owner->name);
}

/* What he called is cancelled, his hosts go, and nobody is shown what they left. */
static void on_user_gone(void *arg, const struct owner *owner)
{
	struct server *server = arg;
	calls_forget_owner(server->calls, owner->name);
	executor_outdate(server->executor, owner);
	views_reset(&server->views);
}

static struct forest_events forest_events_of(struct server *server)
{
	return (struct forest_events){ .on_settings = on_settings,
		.on_come = on_user_come,
		.on_gone = on_user_gone,
		.arg = server };
}

void server_refresh_environment(struct server *server, const struct tool *tool)
{
	if (tool->owner) {
		const struct forest_events events = forest_events_of(server);
		forest_refresh_settings(server->forest, tool, &events);
		return;
	}
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

static void on_users(void *arg, const struct users *users)
{
	struct server *server = arg;
	const struct forest_events events = forest_events_of(server);
	if (!forest_set_users(server->forest, server->watch, users, &events))
		return;
	views_forget(&server->views, &server->forest->only);
	drop_names(server);
	note_tree(server);
}

static void drop_attributes(struct server *server, uint64_t ino)
{
	/* A negative offset: attributes alone, which waits for nothing. Data follow their mtime. */
	fuse_lowlevel_notify_inval_inode(session_fuse(server->session), ino, -1, 0);
}

/* Nobody has watched tools' files since the server before has died. */
static void drop_all_attributes(struct server *server)
{
	size_t at = 0;
	const struct file *file;
	while ((file = files_next(&server->files, &at)))
		drop_attributes(server, file->ino);
}

static bool is_at_or_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	return len == 0 ||
	       (strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/'));
}

static bool is_shown_as(
	const struct server *server, const struct file *file, const struct tool *tool)
{
	const struct tool *shown = forest_find_tool(server->forest, file->tool_key);
	return shown && tool_base(shown) == tool;
}

/* A tool's own file has changed, or a directory with all that is in it: in each tree that shows it. */
static void on_file(void *arg, const struct tool *tool, const char *path)
{
	struct server *server = arg;
	bool is_any = false;
	size_t at = 0;
	const struct file *file;
	while (server->session && (file = files_next(&server->files, &at)))
		if (is_at_or_below(file->path, path) && is_shown_as(server, file, tool)) {
			drop_attributes(server, file->ino);
			is_any = true;
		}
	bool is_known = is_any || server->forest->has_users ||
			forest_find_tool(server->forest, tool->name) == tool;
	if (is_known && server->session && server->has_epoch)
		session_drop_names(server->session);
}

static const struct watch_events watch_events = {
	.on_snapshot = on_snapshot, .on_file = on_file, .on_users = on_users
};

static void make_tools(struct server *server)
{
	const struct watch_config config = { .users = server->options->data };
	server->forest = forest_new(server->options, SUPERVISOR_COVERED_FD);
	prepare_soon(server);
	server->watch =
		watch_new(server->loop, server->forest->registry, &config, &watch_events, server);
}

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

/* In the reverse order of what refers to what. */
static void release(struct server *server)
{
	loop_remove_fd(&server->link_entry);
	loop_cancel_timer(&server->prepare_timer);
	handles_release(&server->handles);
	map_release(&server->readable);
	quota_release(&server->gathering);
	quota_release(&server->open_calls);
	session_free(server->session);
	executor_free(server->executor);
	calls_free(server->calls);
	audit_release(&server->audit);
	meter_release(&server->meter);
	views_reset(&server->views);
	files_release(&server->files);
	opened_release(&server->opened);
	watch_free(server->watch);
	forest_free(server->forest);
	loop_free(server->loop);
	link_release(&server->link);
}

static struct tool *find_tool(void *arg, const char *key)
{
	const struct server *server = arg;
	return forest_find_tool(server->forest, key);
}

/* All that can be done while an earlier server still serves: nothing that is shared is written. */
static int prepare(struct server *server, const struct statedir *state, struct fail *why)
{
	if (watch_signals(server, why) < 0 || make_running(server, state, why) < 0)
		return why->code;
	if (audit_open(&server->audit, state->calls_fd, AUDIT_SIZE_MAX, server->options->audit,
		    why) < 0)
		return why->code;
	make_tools(server);
	const struct session_setup setup = { .loop = server->loop,
		.fuse_fd = SUPERVISOR_FUSE_FD,
		.state = server->state,
		.replays = server->options->replays,
		.ops = &server_ops,
		.arg = server,
		.on_end = on_session_end };
	server->session = session_new(&setup, why);
	return why->code;
}

/* From here on this is the server. */
static int take_over(struct server *server, const struct statedir *state, struct fail *why)
{
	struct state_counters *counters = &server->state->counters;
	struct calls_stats calls;
	forest_take_over(server->forest, state->fd);
	watch_catch_up(server->watch);
	note_tree(server);
	audit_server(&server->audit, server->state->generation);
	audit_tree(server);
	link_take_over(&server->link);
	handles_init(&server->handles, server->state);
	files_load(&server->files, state->fd);
	opened_load(&server->opened, state->fd);
	calls_recover(server->calls, find_tool, server);
	calls_get_stats(server->calls, &calls);
	counters->unknown += calls.unknown;
	counters->resumed += calls.resumed;
	server->link_entry =
		loop_add_fd(server->loop, server->link.fd, EPOLLIN, on_link, server, why);
	if (!server->link_entry || session_serve(server->session, why) < 0)
		return why->code;
	drop_all_attributes(server);
	log_msg(LOG_LEVEL_INFO, "server %d: %zu tools at %s", (int)getpid(),
		server->forest->only.snapshot->count, server->options->mountpoint);
	return link_say(&server->link, SUPERVISOR_READY, 0);
}

static void note_first_numbers(struct state *state)
{
	if (state->next_fh == 0)
		state->next_fh = state->call_serial = 1;
}

/* Returns the exit status. */
static int serve(struct server *server, const struct statedir *state, struct fail *why)
{
	if (prepare(server, state, why) < 0)
		return why->code == -EPROTO ? SUPERVISOR_EXIT_REFUSED : 1;
	link_say(&server->link, SUPERVISOR_PREPARED, 0);
	if (!link_wait_go(&server->link))
		return SUPERVISOR_EXIT_UNMOUNTED;
	note_first_numbers(server->state);
	if (take_over(server, state, why) < 0)
		return 1;
	if (!server->options->foreground)
		leave_terminal();
	int result = loop_run(server->loop);
	if (result >= 0)
		return result;
	fail_set(why, result, "waiting for events: %s", strerror(-result));
	return 1;
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

int server_run(const struct mount_options *options, struct state *shared, struct fail *why)
{
	struct server server = { .options = options,
		.state = shared,
		.uid = geteuid(),
		.audit = AUDIT_INIT,
		.meter = METER_INIT };
	struct statedir state = STATEDIR_INIT;
	int status = 1;
	clock_gettime(CLOCK_REALTIME, &server.started);
	link_init(&server.link, SUPERVISOR_CONTROL_FD, shared);
	quota_init(&server.open_calls, options->open_per_uid);
	quota_init(&server.gathering, options->request_max * REQUESTS_A_UID);
	raise_file_limit();
	forbid_dumps();
	server.loop = loop_new(why);
	if (server.loop && statedir_open(&state, options->mountpoint, why) == 0)
		status = serve(&server, &state, why);
	/* The next server goes on with the hosts, calls and handles: nothing of them is ended here. */
	if (status == SUPERVISOR_EXIT_HANDED_OVER)
		_exit(status);
	release(&server);
	statedir_release(&state);
	return status;
}
