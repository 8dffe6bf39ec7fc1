#include "tests/fuzz/fs/world.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/tools/result.h"
#include "fs/ops.h"

#define JOBS 32
#define SOCKET_ROOM (8 << 20)
#define KERNEL_MINOR 45
#define INIT_FLAGS (0x73fffffbu) /* all that a kernel of today offers, INIT_EXT with it */

/* libfuse keeps an interrupt whose request never comes, as after a restart, beyond the session's end. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libfuse3";
}

/* ---- the input */

uint64_t input_number(struct input_bytes *input, size_t size)
{
	uint64_t number = 0;
	for (size_t i = 0; i < size && input->len > 0; i++, input->data++, input->len--)
		number |= (uint64_t)*input->data << 8 * i;
	return number;
}

const uint8_t *input_take(struct input_bytes *input, size_t max, size_t *len)
{
	const uint8_t *bytes = input->data;
	*len = max < input->len ? max : input->len;
	input->data += *len;
	input->len -= *len;
	return bytes;
}

/* ---- the executor */

struct job {
	const struct job_events *events; /* NULL: the place is free */
	void *arg;
	uint64_t tag;
};

static struct job jobs[JOBS];

void executor_config_defaults(struct executor_config *config)
{
	memset(config, 0, sizeof(*config));
}

struct job *executor_submit(struct executor *executor, const struct job_request *request,
	const struct job_events *events, void *arg, struct fail *why)
{
	(void)executor;
	for (size_t i = 0; i < JOBS; i++)
		if (!jobs[i].events) {
			jobs[i] = (struct job){ .events = events, .arg = arg, .tag = request->tag };
			return &jobs[i];
		}
	fail_set(why, -EBUSY, "too many");
	return NULL;
}

void executor_cancel(struct job *job)
{
	assert(job->events != NULL);
}

bool executor_owns_pid(const struct executor *executor, pid_t pid)
{
	(void)executor, (void)pid;
	return false;
}

/* Every third is lost. */
void executor_recover(struct executor *executor, const struct executor_heirs *heirs, void *arg)
{
	(void)executor;
	for (size_t i = 0; i < JOBS; i++) {
		struct job *job = &jobs[i];
		if (!job->events)
			continue;
		job->events = NULL;
		if (job->tag % 3 == 0)
			heirs->on_lost(arg, job->tag);
		else if (heirs->find_job(arg, job->tag, &job->events, &job->arg))
			heirs->on_job(job->arg, job);
	}
}

struct job *executor_resubmit(struct executor *executor, uint64_t tag, struct tool *tool,
	const char *call_id, const struct job_events *events, void *arg, struct fail *why)
{
	(void)tool, (void)call_id;
	const struct job_request request = { .tag = tag };
	return executor_submit(executor, &request, events, arg, why);
}

void executor_outdate(struct executor *executor, const struct owner *owner)
{
	(void)executor, (void)owner;
}

void executor_get_stats(const struct executor *executor, struct executor_stats *stats)
{
	(void)executor;
	memset(stats, 0, sizeof(*stats));
}

void server_refresh_environment(struct server *server, const struct tool *tool)
{
	(void)tool;
	(void)server;
}

void server_note_start(struct server *server, uint64_t seq)
{
	(void)server, (void)seq;
}

static void end_job(struct job *job, struct input_bytes *input)
{
	size_t len;
	struct result result = RESULT_INIT;
	enum job_end end = (enum job_end)(input_number(input, 1) % (JOB_CANCELLED + 1));
	const char *text = (const char *)input_take(input, input_number(input, 1) * 300, &len);
	auto_json json_t *value = json_loadb(text, len, JSON_DECODE_ANY, NULL);
	if (value)
		result_from_value(&result, value);
	else
		result_from_error(&result, "%.*s", (int)len, text);
	const struct job_events *events = job->events;
	job->events = NULL;
	events->on_end(job->arg, end, &result);
}

void world_on_job(struct input_bytes *input)
{
	struct job *job = &jobs[input_number(input, 1) % JOBS];
	uint64_t what = input_number(input, 1) % 4;
	size_t len;
	for (size_t i = 0; i < JOBS && !job->events; i++)
		job = &jobs[i];
	if (!job->events)
		return;
	if (what == 0) {
		job->events->on_start(job->arg, 1);
	} else if (what == 1) {
		job->events->on_progress(job->arg, "{}", 2);
	} else if (what == 2) {
		const char *bytes = (const char *)input_take(input, input_number(input, 1), &len);
		job->events->on_output(job->arg, bytes, len);
	} else {
		end_job(job, input);
	}
}

/* ---- tools */

static int state_dir = -1;
static char tools_path[64];
static struct registry *tools; /* made once */
static struct forest forest;   /* of one tree: that of each server */

static void put(int dir_fd, const char *name, const char *text)
{
	auto_close int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

static void make_dirs(void)
{
	char path[] = "/dev/shm/pegfs-fuzz-XXXXXX";
	assert(mkdtemp(path) != NULL);
	auto_close int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert(mkdirat(top, "tools", 0755) == 0 && mkdirat(top, "state", 0700) == 0 &&
		mkdirat(top, "tools/one", 0755) == 0 && mkdirat(top, "tools/one/sub", 0755) == 0 &&
		mkdirat(top, "tools/two", 0755) == 0 &&
		mkfifoat(top, "tools/one/fifo", 0644) == 0 &&
		symlinkat("../two/TOOL.md", top, "tools/one/link") == 0 &&
		symlinkat("sub", top, "tools/one/down") == 0);
	put(top, "tools/one/TOOL.md",
		"---\nname: one\ndescription: One.\ninputs:\n  a:\n    type: string\n---\n");
	put(top, "tools/one/index.js", "");
	put(top, "tools/one/sub/file", "some text");
	put(top, "tools/two/TOOL.md", "---\nname: two\ndescription: Two.\n---\n");
	put(top, "tools/two/index.js", "");
	snprintf(tools_path, sizeof(tools_path), "%s/tools", path);
	state_dir = openat(top, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tools = registry_new(tools_path);
	registry_scan(tools);
	assert(state_dir >= 0);
}

static void remove_dirs(void)
{
	registry_free(tools);
	*strrchr(tools_path, '/') = '\0';
	auto_close int top = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	io_remove_tree(top, strrchr(tools_path, '/') + 1);
}

static void empty_state_dir(void)
{
	auto_closedir DIR *stream =
		fdopendir(openat(state_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	while ((entry = readdir(stream)))
		unlinkat(state_dir, entry->d_name, 0);
}

/* ---- a server */

static struct tool *find_tool(void *arg, const char *key)
{
	const struct server *server = arg;
	return forest_find_tool(server->forest, key);
}

static void on_end(void *arg)
{
	(void)arg;
}

static const struct watch_events watch_events = { .on_snapshot = on_end };

static void open_device(struct world *world, int *server_end)
{
	int pair[2], room = SOCKET_ROOM;
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	world->device = pair[0];
	*server_end = pair[1];
}

static void take_over(struct world *world)
{
	struct server *server = &world->server;
	struct fail why = FAIL_INIT;
	int server_end;
	open_device(world, &server_end);
	*server = (struct server){ .options = &world->options, .state = world->state };
	quota_init(&server->open_calls, 8);
	quota_init(&server->gathering, world->options.request_max * 2);
	server->loop = loop_new(&why);
	const struct calls_config config = { .dir_fd = state_dir, .keep = 2, .bytes_max = 1 << 20 };
	server->calls = calls_new(server->loop, NULL, &config);
	forest = (struct forest){ .options = &world->options, .registry = tools };
	forest.only.snapshot = snapshot_ref(registry_current(tools));
	forest.only.digest = 1;
	server->forest = &forest;
	server->watch = watch_new(server->loop, tools, NULL, &watch_events, server);
	const struct session_setup setup = { .loop = server->loop,
		.fuse_fd = server_end,
		.state = world->state,
		.ops = &server_ops,
		.arg = server,
		.on_end = on_end };
	server->session = session_new(&setup, &why);
	assert(server->session && forest.only.snapshot->count == 2);
	handles_init(&server->handles, world->state);
	files_load(&server->files, state_dir);
	opened_load(&server->opened, state_dir);
	calls_recover(server->calls, find_tool, server);
	assert(session_serve(server->session, &why) == 0);
}

static void take_down(struct world *world)
{
	struct server *server = &world->server;
	world->is_muted = true;
	handles_release(&server->handles);
	map_release(&server->readable);
	quota_release(&server->gathering);
	quota_release(&server->open_calls);
	session_free(server->session);
	calls_free(server->calls);
	views_reset(&server->views);
	files_release(&server->files);
	opened_release(&server->opened);
	watch_free(server->watch);
	snapshot_unref(forest.only.snapshot);
	loop_free(server->loop);
	close(world->device);
	world->is_muted = false;
}

static void make_init(struct world *world, bool can_resend)
{
	struct {
		struct fuse_in_header header;
		struct fuse_init_in body;
		uint32_t rest[32];
	} init = { .header = {
			   .opcode = FUSE_INIT, .len = sizeof(init.header) + 64, .unique = 2 } };
	init.body.major = FUSE_KERNEL_VERSION;
	init.body.minor = KERNEL_MINOR;
	init.body.max_readahead = 131072;
	init.body.flags = INIT_FLAGS;
	init.rest[0] = 0;
	/* flags2 lies behind flags, also where the header of the system does not know it yet. */
	const uint32_t flags2 = can_resend ? 1u << 7 : 0;
	memcpy((unsigned char *)&init.body + 16, &flags2, sizeof(flags2));
	memcpy(world->state->init, &init, init.header.len);
	world->state->init_len = init.header.len;
}

struct world *world_start(bool can_resend)
{
	static struct world world;
	if (state_dir < 0) {
		log_set_level(LOG_LEVEL_ERROR);
		make_dirs();
		atexit(remove_dirs);
	}
	memset(&world, 0, sizeof(world));
	empty_state_dir();
	memset(jobs, 0, sizeof(jobs));
	world.options.request_max = 4096;
	world.options.mountpoint = world.options.shown_at = (char *)(uintptr_t) "/mnt";
	world.options.tools = tools_path;
	world.options.lib_dir = tools_path;
	world.state = mmap(NULL, sizeof(struct state), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(world.state != MAP_FAILED);
	world.state->layout = STATE_LAYOUT;
	world.state->next_fh = world.state->call_serial = 1;
	make_init(&world, can_resend);
	take_over(&world);
	return &world;
}

void world_restart(struct world *world, void (*poke)(struct world *world, void *arg), void *arg)
{
	/* Who crashes tidies nothing up. */
	struct state *kept = xcalloc(1, sizeof(*kept));
	memcpy(kept, world->state, sizeof(*kept));
	struct job running[JOBS];
	memcpy(running, jobs, sizeof(jobs));
	take_down(world);
	memcpy(world->state, kept, sizeof(*kept));
	memcpy(jobs, running, sizeof(jobs));
	free(kept);
	if (poke)
		poke(world, arg);
	take_over(world);
}

void world_end(struct world *world)
{
	take_down(world);
	munmap(world->state, sizeof(struct state));
}

static void stop(void *arg)
{
	loop_stop(arg, 0);
}

void world_turn(struct world *world)
{
	struct loop_timer timer = { .loop = NULL };
	loop_arm_timer(world->server.loop, &timer, 0, stop, world->server.loop);
	loop_run(world->server.loop);
}
