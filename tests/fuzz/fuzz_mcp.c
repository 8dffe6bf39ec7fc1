/*
 * What a client may send to `pegfs mcp`: whole conversations. Each line that comes back is JSON, and
 * whatever was sent the server ends by itself with its input. Calls are run by nobody: "now" ends at
 * once, "wrong" is refused, others are never done until they are cancelled.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/cmd/mcpserver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUTPUT_MAX ((size_t)256 * 1024 * 1024)

struct mcprunner {
	struct loop *loop;
	struct mcprun *runs;
};

struct mcprun {
	struct mcprunner *runner;
	struct mcprun *next, **link;
	const struct mcprun_events *events;
	void *arg;
	struct loop_timer timer;
};

static void free_run(struct mcprun *run)
{
	loop_cancel_timer(&run->timer);
	*run->link = run->next;
	if (run->next)
		run->next->link = run->link;
	free(run);
}

static void on_done(void *arg)
{
	struct mcprun *run = arg;
	static const char progress[] = "{\"content\":[],\"details\":{\"progress\":1}}";
	struct result result = RESULT_INIT;
	run->events->on_progress(run->arg, progress, strlen(progress));
	run->events->on_output(run->arg, "a\nb\xff", 4);
	result_from_error(&result, "done");
	run->events->on_end(run->arg, &result);
	free_run(run);
}

static struct mcprunner *make(struct loop *loop, struct tree *tree, void (*on_change)(void *arg),
	void *arg, struct fail *why)
{
	struct mcprunner *runner = xcalloc(1, sizeof(*runner));
	(void)tree, (void)on_change, (void)arg, (void)why;
	runner->loop = loop;
	return runner;
}

static void release(struct mcprunner *runner)
{
	while (runner->runs)
		free_run(runner->runs);
	free(runner);
}

static json_t *list(struct mcprunner *runner, struct fail *why)
{
	(void)runner, (void)why;
	return json_pack("[{s:s,s:{}},{s:s},{s:i}]", "name", "never", "annotations", "name", "now",
		"name", 1);
}

static struct mcprun *start(struct mcprunner *runner, const char *tool, const struct buf *request,
	const struct mcprun_events *events, void *arg, struct fail *why)
{
	if (request->len == 0 || request->data[0] != '{')
		abort();
	if (strcmp(tool, "wrong") == 0) {
		fail_set(why, -EINVAL, "wrong");
		return NULL;
	}
	if (strcmp(tool, "none") == 0) {
		fail_set(why, -ENOENT, "none");
		return NULL;
	}
	struct mcprun *run = xcalloc(1, sizeof(*run));
	*run = (struct mcprun){ .runner = runner,
		.next = runner->runs,
		.link = &runner->runs,
		.events = events,
		.arg = arg };
	if (run->next)
		run->next->link = &run->next;
	runner->runs = run;
	if (strcmp(tool, "now") == 0)
		loop_arm_timer(runner->loop, &run->timer, 0, on_done, run);
	return run;
}

static void cancel(struct mcprun *run)
{
	loop_arm_timer(run->runner->loop, &run->timer, 0, on_done, run);
}

static const struct mcprunner_kind nobody = {
	.make = make, .release = release, .list = list, .start = start, .cancel = cancel
};

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || io_write_all(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return fd;
}

/* Each line is a message, or a batch of them. */
static void check_output(int fd)
{
	struct buf output = BUF_INIT(OUTPUT_MAX);
	if (lseek(fd, 0, SEEK_SET) != 0 || io_read_all(fd, &output) < 0)
		abort();
	char *at = output.data, *newline;
	char *end = at + output.len;
	for (; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline)
			abort();
		json_t *json = json_loadb(at, (size_t)(newline - at), JSON_ALLOW_NUL, NULL);
		if (!json_is_array(json) &&
			strcmp(json_string_value(json_object_get(json, "jsonrpc")), "2.0") != 0)
			abort();
		json_decref(json);
	}
	buf_release(&output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fail why = FAIL_INIT;
	struct loop *loop = loop_new(&why);
	int in = file_of(data, size), out = file_of(NULL, 0);
	const struct mcpserver_config config = {
		.loop = loop, .kind = &nobody, .in_fd = in, .out_fd = out, .page_size = 1 + size % 4
	};
	struct mcpserver *server = mcpserver_new(&config, &why);
	if (!loop || !server || loop_run(loop) != 0)
		abort();
	mcpserver_free(server);
	loop_free(loop);
	check_output(out);
	close(in);
	close(out);
	return 0;
}
