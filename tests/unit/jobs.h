/*
 * Jobs in real tool hosts, for tests: a loop and an executor, a call of a fixture tool, what came of
 * it. Fixtures lie in tests/data/host.
 */
#ifndef PEGFS_TESTS_UNIT_JOBS_H
#define PEGFS_TESTS_UNIT_JOBS_H

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/running/executor.h"
#include "core/running/job.h"

#define WAIT_MS 20000 /* a test that takes longer has failed */

struct world {
	struct loop *loop;
	struct executor *executor;
	char dir[64]; /* private: state, and copies of tools that a test changes */
	unsigned running;
	struct loop_timer watchdog;
};

/* What came of one job. */
struct outcome {
	struct world *world;
	struct job *job;
	unsigned starts, ends, updates;
	struct executor_stats at_start;
	bool cancels; /* soon after the first update */
	struct loop_timer cancel_timer;
	uint64_t first_update_ms, end_ms;
	pid_t pid;
	enum job_end end;
	struct result result;
	struct buf output, progress;
};

/* ---- running jobs */

static inline void on_start(void *arg, pid_t pid)
{
	struct outcome *outcome = arg;
	outcome->starts++;
	outcome->pid = pid;
	executor_get_stats(outcome->world->executor, &outcome->at_start);
}

static inline void cancel(void *arg)
{
	struct outcome *outcome = arg;
	if (outcome->job)
		executor_cancel(outcome->job);
}

static inline void on_progress(void *arg, const char *json, size_t len)
{
	struct outcome *outcome = arg;
	assert_int_equal(outcome->ends, 0);
	if (outcome->updates++ == 0) {
		outcome->first_update_ms = loop_now_ms(outcome->world->loop);
		if (outcome->cancels)
			loop_arm_timer(
				outcome->world->loop, &outcome->cancel_timer, 100, cancel, outcome);
	}
	buf_append(&outcome->progress, json, len);
	buf_putc(&outcome->progress, '\n');
}

static inline void on_output(void *arg, const char *bytes, size_t len)
{
	struct outcome *outcome = arg;
	assert_int_equal(outcome->ends, 0);
	buf_append(&outcome->output, bytes, len);
}

static inline void on_end(void *arg, enum job_end end, struct result *result)
{
	struct outcome *outcome = arg;
	outcome->ends++;
	outcome->job = NULL;
	outcome->end = end;
	outcome->end_ms = loop_now_ms(outcome->world->loop);
	outcome->result = *result;
	if (--outcome->world->running == 0)
		loop_stop(outcome->world->loop, 0);
}

static const struct job_events events = {
	.on_start = on_start, .on_progress = on_progress, .on_output = on_output, .on_end = on_end
};

static inline void on_watchdog(void *arg)
{
	struct world *world = arg;
	loop_stop(world->loop, -ETIMEDOUT);
}

static inline void run_until_done(struct world *world)
{
	loop_arm_timer(world->loop, &world->watchdog, WAIT_MS, on_watchdog, world);
	assert_int_equal(loop_run(world->loop), 0);
	loop_cancel_timer(&world->watchdog);
}

static inline void stop_loop(void *arg)
{
	loop_stop(arg, 0);
}

/* Lets the loop run for a while. */
static inline void pass_time(struct world *world, uint64_t ms)
{
	struct loop_timer timer = { .loop = NULL };
	loop_arm_timer(world->loop, &timer, ms, stop_loop, world->loop);
	assert_int_equal(loop_run(world->loop), 0);
}

static inline struct tool *make_tool(const char *source, const char *name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->label = xstrdup(name);
	tool->description = xstrdup("");
	tool->body = xstrdup("");
	tool->source = xstrdup(source);
	tool->dir_name = xstrdup(name);
	tool->dir = xasprintf("%s/%s", source, name);
	static const char *const entries[] = { "index.ts", "index.js", "index.py", "index.sh" };
	for (size_t i = 0; !tool->entry; i++) {
		auto_free char *path = xasprintf("%s/%s", tool->dir, entries[i]);
		if (access(path, F_OK) == 0)
			tool->entry = xstrdup(entries[i]);
	}
	return tool;
}

static inline const char *fixtures(void)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/host", getenv("PEGFS_DATA_DIR"));
	return path;
}

/* Submits a call of source/name with params (JSON) and lets the caller change the request. */
static inline struct job *submit_request(struct world *world, struct outcome *outcome,
	const char *source, const char *name, const char *params, struct job_request *request,
	struct fail *why)
{
	struct identity self;
	identity_self(&self);
	auto_tool struct tool *tool =
		request->tool ? tool_ref(request->tool) : make_tool(source, name);
	auto_json json_t *value = json_loads(params, 0, NULL);
	assert_non_null(value);
	request->call_id = request->call_id ? request->call_id : "call-1";
	request->tool = tool;
	request->params = value;
	if (!request->who)
		request->who = &self;
	*outcome = (struct outcome){ .world = world };
	buf_init(&outcome->output, 64 << 20);
	buf_init(&outcome->progress, 64 << 20);
	outcome->job = executor_submit(world->executor, request, &events, outcome, why);
	if (outcome->job)
		world->running++;
	return outcome->job;
}

static inline void submit(
	struct world *world, struct outcome *outcome, const char *name, const char *params)
{
	struct job_request request = { .call_id = NULL };
	struct fail why = FAIL_INIT;
	assert_non_null(submit_request(world, outcome, fixtures(), name, params, &request, &why));
}

static inline void release(struct outcome *outcome)
{
	result_release(&outcome->result);
	buf_release(&outcome->output);
	buf_release(&outcome->progress);
}
#define auto_outcome __attribute__((cleanup(release)))

/* Runs one call to its end. */
static inline void call(
	struct world *world, struct outcome *outcome, const char *name, const char *params)
{
	submit(world, outcome, name, params);
	run_until_done(world);
	assert_int_equal(outcome->ends, 1);
}

static inline void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not contain '%s'", text, part);
}

/* The whole text, but for the newline at its end. */
static inline void assert_text(const struct outcome *outcome, const char *expected)
{
	auto_free char *line = xasprintf("%s\n", expected);
	assert_string_equal(outcome->result.text, line);
}

static inline void assert_call(struct world *world, const char *name, const char *params,
	enum job_end end, const char *part)
{
	auto_outcome struct outcome outcome;
	call(world, &outcome, name, params);
	assert_contains(outcome.result.text, part);
	assert_int_equal(outcome.end, end);
	assert_int_equal(outcome.result.is_error, end != JOB_DONE);
}

/* ---- a world for each test */

static inline void make_world(struct world *world, struct executor_config *config)
{
	static const char *env[8];
	size_t count = 0;
	static char path[4096], home[128];
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	snprintf(home, sizeof(home), "HOME=%s", world->dir);
	env[count++] = path;
	env[count++] = home;
	env[count++] = "OFFICER_APIFY_TOKEN=t0ken";
	env[count] = NULL;
	config->lib_dir = getenv("PEGFS_LIB_DIR");
	config->state_dir = world->dir;
	config->env = env;
	struct fail why = FAIL_INIT;
	world->executor = executor_new(world->loop, config, &why);
	assert_string_equal(why.text, "");
	assert_non_null(world->executor);
}

static inline struct world *new_world(void)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct fail why = FAIL_INIT;
	world->loop = loop_new(&why);
	assert_non_null(world->loop);
	snprintf(world->dir, sizeof(world->dir), "/tmp/pegfs-executor-XXXXXX");
	assert_non_null(mkdtemp(world->dir));
	chmod(world->dir, 0711);
	return world;
}

static inline void free_world(struct world *world)
{
	executor_free(world->executor);
	loop_free(world->loop);
	io_remove_tree(AT_FDCWD, world->dir);
	free(world);
}

static inline int setup_group(void **state)
{
	struct world *world = new_world();
	struct executor_config config;
	executor_config_defaults(&config);
	config.grace_ms = 200;
	config.result_max = 2 << 20;
	config.output_max = 1 << 20;
	config.progress_max = 1 << 20;
	make_world(world, &config);
	*state = world;
	return 0;
}

static inline int teardown_group(void **state)
{
	free_world(*state);
	/* Nothing is left of any of it. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return 0;
}

static inline void assert_gone(pid_t pid)
{
	for (int i = 0; i < 100; i++) {
		if (kill(pid, 0) < 0 && errno == ESRCH)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	fail_msg("process %d still runs", (int)pid);
}

static inline void call_and_cancel(
	struct world *world, struct outcome *outcome, const char *name, const char *params)
{
	submit(world, outcome, name, params);
	outcome->cancels = true;
	run_until_done(world);
	assert_int_equal(outcome->ends, 1);
	assert_int_equal(outcome->end, JOB_CANCELLED);
	assert_contains(outcome->result.text, "was cancelled");
}

static inline pid_t read_pid(const char *path)
{
	auto_buf struct buf text = BUF_INIT(100);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(io_read_all(fd, &text), 0);
	return (pid_t)strtol(buf_str(&text), NULL, 10);
}

static inline void copy_tool(const struct world *world, const char *name)
{
	auto_free char *command =
		xasprintf("cp -r '%s/%s' '%s/%s'", fixtures(), name, world->dir, name);
	assert_int_equal(system(command), 0);
}

static inline void call_copy(
	struct world *world, struct outcome *outcome, const char *name, const char *params)
{
	struct job_request request = { .call_id = NULL };
	struct fail why = FAIL_INIT;
	assert_non_null(submit_request(world, outcome, world->dir, name, params, &request, &why));
	run_until_done(world);
}

static inline void edit(const struct world *world, const char *file, const char *script)
{
	auto_free char *command = xasprintf("sed -i -e '%s' '%s/%s'", script, world->dir, file);
	assert_int_equal(system(command), 0);
}

#endif
