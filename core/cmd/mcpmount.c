/*
 * A mounted tree. Each call has an id of its own (calls/ID): its answer is read from the descriptor
 * that the request was written to, progress and log from the files beside it, and it is cancelled
 * through `cancel`. Changes of the tree are found by looking at tools.json, whose node number is
 * another one when its content is (inotify(7) tells nothing of what a FUSE daemon changes by itself).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/cmd/callorder.h"
#include "core/cmd/mcprunner.h"
#include "core/tools/manifest.h"

#define FOLLOW_PERIOD_MS 50
#define LOOK_PERIOD_MS 250

struct mcprunner {
	struct loop *loop; /* borrowed */
	struct tree *tree; /* borrowed */
	void (*on_change)(void *arg);
	void *arg;
	struct loop_timer look_timer;
	ino_t tools_ino;
	struct mcprun *runs; /* owned */
	uint64_t last_id;
	unsigned salt;
};

struct mcprun {
	struct mcprunner *runner;    /* borrowed */
	struct mcprun *next, **link; /* of runner->runs */
	const struct mcprun_events *events;
	void *arg;
	char *dir;                        /* owned; MOUNT/TOOL/calls/ID */
	int call_fd, progress_fd, log_fd; /* owned */
	int refused;                      /* what the write said: the reason can be read */
	struct loop_fd *entry;            /* borrowed from the loop */
	struct loop_timer timer;
	struct buf line; /* of progress: what came behind the last newline */
};

/* ---- changes of the tree */

static ino_t look(const struct mcprunner *runner)
{
	struct stat st;
	auto_free char *path = xasprintf("%s/tools.json", runner->tree->mount);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void on_look(void *arg)
{
	struct mcprunner *runner = arg;
	ino_t now = look(runner);
	loop_arm_timer(runner->loop, &runner->look_timer, LOOK_PERIOD_MS, on_look, runner);
	if (now == runner->tools_ino || now == 0)
		return;
	runner->tools_ino = now;
	runner->on_change(runner->arg);
}

/* ---- one call */

static int open_in(const struct mcprun *run, const char *name, int flags)
{
	auto_free char *path = xasprintf("%s/%s", run->dir, name);
	return open(path, flags | O_CLOEXEC);
}

static void free_run(struct mcprun *run)
{
	const int fds[] = { run->call_fd, run->progress_fd, run->log_fd };
	loop_remove_fd(&run->entry);
	loop_cancel_timer(&run->timer);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (run->link) {
		*run->link = run->next;
		if (run->next)
			run->next->link = run->link;
	}
	buf_release(&run->line);
	free(run->dir);
	free(run);
}

static void follow(struct mcprun *run)
{
	auto_buf struct buf log = BUF_INIT(CALLORDER_SIZE_MAX);
	if (run->progress_fd >= 0)
		io_read_all(run->progress_fd, &run->line);
	char *newline;
	while (run->line.len && (newline = memchr(run->line.data, '\n', run->line.len))) {
		size_t len = (size_t)(newline - run->line.data);
		run->events->on_progress(run->arg, run->line.data, len);
		buf_consume(&run->line, len + 1);
	}
	if (run->log_fd >= 0 && io_read_all(run->log_fd, &log) == 0 && log.len > 0)
		run->events->on_output(run->arg, log.data, log.len);
}

static void on_follow(void *arg)
{
	struct mcprun *run = arg;
	follow(run);
	loop_arm_timer(run->runner->loop, &run->timer, FOLLOW_PERIOD_MS, on_follow, run);
}

static void read_result(const struct mcprun *run, struct result *result)
{
	auto_buf struct buf json = BUF_INIT(2 * CALLORDER_SIZE_MAX);
	int code = io_read_all(run->call_fd, &json);
	auto_json json_t *value =
		code < 0 ? NULL : json_loadb(buf_str(&json), json.len, JSON_DECODE_ANY, NULL);
	if (value)
		result_from_value(result, value);
	else
		result_from_error(result, "the call ended without an answer: %s",
			strerror(-(run->refused ? run->refused
				   : code < 0   ? code
						: -EIO)));
}

static void finish(struct mcprun *run)
{
	struct result result = RESULT_INIT;
	follow(run);
	read_result(run, &result);
	run->events->on_end(run->arg, &result);
	free_run(run);
}

static void on_answer(void *arg, uint32_t events)
{
	(void)events;
	finish(arg);
}

static void on_refused(void *arg)
{
	finish(arg);
}

static int reserve(struct mcprun *run, const char *tool, struct fail *why)
{
	struct mcprunner *runner = run->runner;
	if (!manifest_name_is_safe(tool))
		return tree_no_tool(runner->tree, tool, why);
	run->dir = xasprintf("%s/%s/calls/mcp-%d-%08x-%ju", runner->tree->mount, tool,
		(int)getpid(), runner->salt, (uintmax_t)++runner->last_id);
	if (mkdir(run->dir, 0777) == 0)
		return 0;
	return errno == ENOENT || errno == ENOTDIR
		       ? tree_no_tool(runner->tree, tool, why)
		       : fail_errno(why, "cannot begin a call of '%s'", tool);
}

static int begin(struct mcprun *run, const struct buf *request, struct fail *why)
{
	struct loop *loop = run->runner->loop;
	run->call_fd = open_in(run, "call", O_RDWR);
	if (run->call_fd < 0)
		return fail_errno(why, "cannot open '%s/call'", run->dir);
	run->progress_fd = open_in(run, "progress", O_RDONLY);
	run->log_fd = open_in(run, "log", O_RDONLY);
	run->refused = io_write_all(run->call_fd, buf_str(request), request->len);
	if (run->refused < 0) {
		loop_arm_timer(loop, &run->timer, 0, on_refused, run);
		return 0;
	}
	run->entry = loop_add_fd(loop, run->call_fd, EPOLLIN, on_answer, run, why);
	if (run->entry)
		loop_arm_timer(loop, &run->timer, FOLLOW_PERIOD_MS, on_follow, run);
	return why->code;
}

static struct mcprun *start(struct mcprunner *runner, const char *tool, const struct buf *request,
	const struct mcprun_events *events, void *arg, struct fail *why)
{
	struct mcprun *run = xcalloc(1, sizeof(*run));
	*run = (struct mcprun){ .runner = runner,
		.events = events,
		.arg = arg,
		.call_fd = -1,
		.progress_fd = -1,
		.log_fd = -1,
		.line = BUF_INIT(CALLORDER_SIZE_MAX) };
	if (reserve(run, tool, why) < 0 || begin(run, request, why) < 0) {
		free_run(run);
		return NULL;
	}
	run->next = runner->runs;
	if (run->next)
		run->next->link = &run->next;
	run->link = &runner->runs;
	runner->runs = run;
	return run;
}

static void cancel(struct mcprun *run)
{
	auto_close int fd = open_in(run, "cancel", O_WRONLY);
	/* Where it cannot be cancelled so, leaving does: nobody waits for it any more. */
	if (fd < 0 || io_write_all(fd, "\n", 1) < 0)
		loop_arm_timer(run->runner->loop, &run->timer, 0, on_refused, run);
}

/* ---- life */

static void release(struct mcprunner *runner)
{
	if (!runner)
		return;
	while (runner->runs) {
		cancel(runner->runs);
		free_run(runner->runs);
	}
	loop_cancel_timer(&runner->look_timer);
	free(runner);
}

static struct mcprunner *make(struct loop *loop, struct tree *tree, void (*on_change)(void *arg),
	void *arg, struct fail *why)
{
	struct mcprunner *runner = xcalloc(1, sizeof(*runner));
	*runner = (struct mcprunner){
		.loop = loop, .tree = tree, .on_change = on_change, .arg = arg
	};
	if (getrandom(&runner->salt, sizeof(runner->salt), 0) != sizeof(runner->salt)) {
		fail_errno(why, "no random number for the calls' ids");
		free(runner);
		return NULL;
	}
	runner->tools_ino = look(runner);
	loop_arm_timer(loop, &runner->look_timer, LOOK_PERIOD_MS, on_look, runner);
	return runner;
}

static json_t *list(struct mcprunner *runner, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(runner->tree, TREE_TOOLS_JSON, NULL, &text, why) < 0)
		return NULL;
	return json_loadb(buf_str(&text), text.len, 0, NULL);
}

const struct mcprunner_kind mcpmount = {
	.make = make, .release = release, .list = list, .start = start, .cancel = cancel
};
