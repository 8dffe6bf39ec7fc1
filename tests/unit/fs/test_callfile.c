/*
 * The handle of `call`, every state by every event: call-semantics.md 4.4 to 4.6, word by word. No
 * kernel and no tool: libfuse's replies, the executor and the signals of callers are this program's.
 */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <poll.h>
#include <string.h>

#include "core/running/verdict.h"
#include "fs/callfile.h"
#include "fs/callkept.h"
#include "fs/options.h"
#include "fs/server.h"
#include "fs/session.h"
#include "tests/unit/scratch.h"

#define DOCUMENT "{\"name\":\"Ada\"}"
#define RESULT "{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n"

/* ---- libfuse, as far as the handle uses it */

struct request {
	struct fuse_ctx ctx;
	int replies;
	char text[600]; /* "ok N", an errno's name, "data: ...", "poll ..." */
	fuse_interrupt_func_t on_interrupt;
	void *interrupt_arg;
	bool interrupted;
};

static struct request *request_of(fuse_req_t req)
{
	return (struct request *)(void *)req;
}

static void reply(fuse_req_t req, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void reply(fuse_req_t req, const char *format, ...)
{
	struct request *request = request_of(req);
	request->replies++;
	assert_int_equal(request->replies, 1); /* a second one would crash libfuse */
	va_list args;
	va_start(args, format);
	vsnprintf(request->text, sizeof(request->text), format, args);
	va_end(args);
}

int fuse_reply_err(fuse_req_t req, int error)
{
	reply(req, "%s", error ? strerrorname_np(error) : "ok");
	return 0;
}

int fuse_reply_write(fuse_req_t req, size_t count)
{
	reply(req, "ok %zu", count);
	return 0;
}

int fuse_reply_buf(fuse_req_t req, const char *bytes, size_t size)
{
	if (size == 0)
		reply(req, "eof");
	else
		reply(req, "data: %.*s", (int)size, bytes);
	return 0;
}

int fuse_reply_poll(fuse_req_t req, unsigned events)
{
	assert_int_equal(events & POLLOUT && events & POLLWRNORM, 1);
	reply(req, events & POLLIN ? "in out" : "out");
	return 0;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	return &request_of(req)->ctx;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t function, void *arg)
{
	struct request *request = request_of(req);
	request->on_interrupt = function;
	request->interrupt_arg = arg;
	if (function && request->interrupted) /* as libfuse does: H17 */
		function(req, arg);
}

static int poll_handles, notified;

int fuse_lowlevel_notify_poll(struct fuse_pollhandle *handle)
{
	assert_non_null(handle);
	notified++;
	return 0;
}

void fuse_pollhandle_destroy(struct fuse_pollhandle *handle)
{
	assert_non_null(handle);
	poll_handles--;
}

/* ---- the executor, and callers */

struct job {
	const struct job_events *events;
	void *arg;
	struct identity who;
	unsigned cancels;
};

static struct job jobs[64];
static size_t job_count;

struct job *executor_submit(struct executor *executor, const struct job_request *request,
	const struct job_events *events, void *arg, struct fail *why)
{
	(void)executor;
	(void)why;
	struct job *job = &jobs[job_count++];
	*job = (struct job){ .events = events, .arg = arg, .who = *request->who };
	return job;
}

void executor_cancel(struct job *job)
{
	job->cancels++;
}

bool executor_owns_pid(const struct executor *executor, pid_t pid)
{
	(void)executor;
	(void)pid;
	return false;
}

void executor_recover(struct executor *executor, const struct executor_heirs *heirs, void *arg)
{
	(void)executor;
	(void)heirs;
	(void)arg;
}

struct job *executor_resubmit(struct executor *executor, uint64_t tag, struct tool *tool,
	const char *call_id, const struct job_events *events, void *arg, struct fail *why)
{
	(void)executor, (void)tag, (void)tool, (void)call_id, (void)events, (void)arg;
	fail_set(why, -ENOENT, "nothing was put by");
	return NULL;
}

static enum verdict verdict = VERDICT_NONE;

enum verdict verdict_load(pid_t tid)
{
	(void)tid;
	return verdict;
}

/* ---- the session: no request comes twice here */

static uint64_t unique;
static bool is_repeat, has_lost_data;

uint64_t session_unique(const struct session *session)
{
	(void)session;
	return unique;
}

bool session_is_repeat(const struct session *session)
{
	(void)session;
	return is_repeat;
}

bool session_has_lost_data(const struct session *session)
{
	(void)session;
	return has_lost_data;
}

void server_note_start(struct server *server, uint64_t seq)
{
	(void)server;
	(void)seq;
}

void server_refresh_environment(struct server *server, const struct tool *tool)
{
	(void)tool;
	(void)server;
}

/* ---- a world for each test */

struct world {
	void *scratch;
	struct server server;
	struct forest forest;
	struct mount_options options;
	struct callfile *file;
	struct state_handle places[4]; /* what the file keeps for the next server */
	size_t place_count;
	struct request requests[64];
	size_t request_count;
	struct fuse_ctx ctx;
};

static struct tool *new_tool(const char *name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->label = xstrdup(name);
	tool->description = xstrdup("");
	tool->body = xstrdup("");
	tool->source = xstrdup("/s");
	tool->dir_name = xstrdup(name);
	tool->dir = xasprintf("/s/%s", name);
	tool->inputs = xcalloc(1, sizeof(*tool->inputs));
	tool->input_count = 1;
	tool->inputs[0].name = xstrdup("name");
	tool->inputs[0].description = xstrdup("");
	return tool;
}

/* The tree shows one tool of that name, or none. */
static void show_tool(struct world *world, const char *name)
{
	auto_tool struct tool *tool = name ? new_tool(name) : NULL;
	struct faults faults;
	memset(&faults, 0, sizeof(faults));
	static uint64_t generation = 0;
	snapshot_unref(world->forest.only.snapshot);
	world->forest.only.snapshot = snapshot_new(&tool, name ? 1 : 0, &faults, ++generation);
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	struct fail why = FAIL_INIT;
	int result = scratch_setup(&world->scratch);
	struct server *server = &world->server;
	world->options.request_max = 1000;
	server->forest = &world->forest;
	server->options = &world->options;
	server->loop = loop_new(&why);
	quota_init(&server->gathering, 1500);
	quota_init(&server->open_calls, 100);
	quota_init(&server->handles.quota, 1);
	const struct calls_config config = { .dir_fd = ((struct scratch *)world->scratch)->fd };
	server->calls = calls_new(server->loop, NULL, &config);
	show_tool(world, "hello");
	world->ctx = (struct fuse_ctx){ .uid = 1000, .gid = 1000, .pid = 0 };
	job_count = 0;
	poll_handles = notified = 0;
	verdict = VERDICT_NONE;
	*state = world;
	return result;
}

static void close_file(struct world *world)
{
	callfile_free(world->file);
	world->file = NULL;
}

static int teardown(void **state)
{
	struct world *world = *state;
	close_file(world);
	assert_int_equal(poll_handles, 0);
	assert_int_equal(world->server.readable.count, 0);
	assert_int_equal(world->server.gathering.by_uid.count, 0);
	map_release(&world->server.readable);
	assert_int_equal(world->server.open_calls.by_uid.count, 0);
	quota_release(&world->server.gathering);
	quota_release(&world->server.open_calls);
	assert_int_equal(world->server.handles.quota.by_uid.count, 0);
	quota_release(&world->server.handles.quota);
	calls_free(world->server.calls);
	snapshot_unref(world->forest.only.snapshot);
	loop_free(world->server.loop);
	int result = scratch_teardown(&world->scratch);
	free(world);
	return result;
}

static struct callfile *new_file(struct world *world, int flags)
{
	struct state_handle *place = &world->places[world->place_count++ % 4];
	memset(place, 0, sizeof(*place));
	place->ino = 5;
	assert_true(quota_take(&world->server.open_calls, world->ctx.uid, 1));
	return callfile_new(&world->server, world->forest.only.snapshot->tools[0], 0, &world->ctx,
		place, flags);
}

static void open_file(struct world *world, int flags)
{
	close_file(world);
	world->file = new_file(world, flags);
}

static struct request *next_request(struct world *world)
{
	struct request *request = &world->requests[world->request_count++ % 64];
	*request = (struct request){ .ctx = world->ctx };
	return request;
}

static fuse_req_t req_of(struct request *request)
{
	return (fuse_req_t)(void *)request;
}

static struct request *write_at(struct world *world, const char *bytes, off_t offset)
{
	struct request *request = next_request(world);
	unique++;
	callfile_write(world->file, req_of(request), bytes, strlen(bytes), offset);
	return request;
}

static struct request *read_at(struct world *world, off_t offset, int flags)
{
	struct request *request = next_request(world);
	const struct fuse_file_info fi = { .flags = flags, .lock_owner = 77 };
	callfile_read(world->file, req_of(request), 4096, offset, &fi);
	return request;
}

static struct request *ask_poll(struct world *world, unsigned events)
{
	struct request *request = next_request(world);
	const struct fuse_file_info fi = { .poll_events = events };
	poll_handles++;
	callfile_poll(world->file, req_of(request), &fi, (struct fuse_pollhandle *)&poll_handles);
	return request;
}

static void check_reply(const struct request *request, const char *wanted)
{
	assert_string_equal(request->replies ? request->text : "held", wanted);
}

static void end_job_with(struct job *job, enum job_end end, const char *text)
{
	struct result result = RESULT_INIT;
	auto_json json_t *value =
		json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text);
	result_from_value(&result, value);
	job->events->on_end(job->arg, end, &result);
}

static void end_job(struct job *job, enum job_end end)
{
	end_job_with(job, end, "hi");
}

static struct job *last_job(void)
{
	return &jobs[job_count - 1];
}

static void stop(void *arg)
{
	loop_stop(arg, 0);
}

static void pass_ms(struct world *world, uint64_t ms)
{
	struct loop_timer timer = { .loop = NULL };
	loop_arm_timer(world->server.loop, &timer, ms, stop, world->server.loop);
	loop_run(world->server.loop);
}

/* A signal comes to who waits in the request. */
static void interrupt(struct world *world, struct request *request, enum verdict meaning)
{
	verdict = meaning;
	request->on_interrupt(req_of(request), request->interrupt_arg);
	check_reply(request, "held"); /* never from within the callback */
	pass_ms(world, 5);
}

/* ---- every state by every event */

enum spot {
	EMPTY,    /* nothing written */
	PARTIAL,  /* the beginning of a document */
	RUNNING,  /* the call waits or runs */
	LET_GO,   /* write-only: the held write got EINTR, the call goes on */
	UNREAD,   /* done, nothing read of it */
	READ,     /* done, something read; write-only: as UNREAD */
	FAILED,   /* the tool said isError */
	REFUSED,  /* the document was none: EINVAL */
	CANCELED, /* write-only: a fatal signal */
	PLACES,
};

static void go_to(struct world *world, enum spot place, bool readable)
{
	open_file(world, readable ? O_RDWR : O_WRONLY);
	if (place == EMPTY)
		return;
	if (place == PARTIAL) {
		check_reply(write_at(world, "{\"name\":", 0), "ok 8");
		return;
	}
	if (place == REFUSED) {
		check_reply(write_at(world, "hello", 0), "EINVAL");
		return;
	}
	struct request *request = write_at(world, DOCUMENT, 0);
	check_reply(request, readable ? "ok 14" : "held");
	if (place == RUNNING)
		return;
	if (place == LET_GO || place == CANCELED) {
		interrupt(world, request, place == LET_GO ? VERDICT_SOFT : VERDICT_FATAL);
		check_reply(request, "EINTR");
		return;
	}
	end_job(last_job(), place == FAILED ? JOB_FAILED : JOB_DONE);
	if (!readable)
		check_reply(request, place == FAILED ? "EIO" : "ok 14");
	if (place == READ && readable)
		check_reply(read_at(world, 14, 0), "data: " RESULT);
}

enum event {
	BLANK,   /* white space is written */
	BEGIN,   /* the beginning of a document */
	REST,    /* what completes PARTIAL */
	WHOLE,   /* a document */
	GARBAGE, /* what is no document */
	NUL,
	READING,     /* at the position behind what was written */
	NONBLOCKING, /* the same with O_NONBLOCK */
	FROM_CACHE,  /* through the page cache: no owner */
	FLUSH,
	POLL,
	EVENTS,
};

static struct request *make(struct world *world, enum event event)
{
	static const char *const texts[] = { " \t\r\n", "{\"a\":", "\"Ada\"}", DOCUMENT, "x" };
	struct request *request;
	struct fuse_file_info fi = { .flags = 0, .lock_owner = 0 };
	switch (event) {
	case BLANK:
	case BEGIN:
	case REST:
	case WHOLE:
	case GARBAGE:
		return write_at(world, texts[event], 14);
	case NUL:
		request = next_request(world);
		callfile_write(world->file, req_of(request), "", 1, 14);
		return request;
	case READING:
		return read_at(world, 14, 0);
	case NONBLOCKING:
		return read_at(world, 14, O_NONBLOCK);
	case FROM_CACHE:
		request = next_request(world);
		callfile_read(world->file, req_of(request), 4096, 14, &fi);
		return request;
	case FLUSH:
		request = next_request(world);
		callfile_flush(world->file, req_of(request));
		return request;
	case POLL:
		return ask_poll(world, POLLIN);
	case EVENTS:
		break;
	}
	return NULL;
}

/* "..." where the pair cannot be: a write-only descriptor is not read. */
static const char *const write_only[PLACES][EVENTS] = {
	/*             BLANK    BEGIN    REST     WHOLE    GARBAGE  NUL  */
	[EMPTY] = { "ok 4", "ok 5", "EINVAL", "held", "EINVAL", "EINVAL", "...", "...", "...", "ok",
		"out" },
	[PARTIAL] = { "ok 4", "ok 5", "held", "ok 14", "ok 1", "EINVAL", "...", "...", "...",
		"EINVAL", "out" },
	[RUNNING] = { "EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "...", "...", "...",
		"ok", "out" },
	[LET_GO] = { "EBUSY", "EBUSY", "EBUSY", "held", "EBUSY", "EBUSY", "...", "...", "...", "ok",
		"out" },
	[UNREAD] = { "ok 4", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "...", "...", "...",
		"ok", "out" },
	[READ] = { "ok 4", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "...", "...", "...",
		"ok", "out" },
	[FAILED] = { "EIO", "EIO", "EIO", "EIO", "EIO", "EIO", "...", "...", "...", "ok", "out" },
	[REFUSED] = { "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "...", "...",
		"...", "ok", "out" },
	[CANCELED] = { "ECANCELED", "ECANCELED", "ECANCELED", "ECANCELED", "ECANCELED", "ECANCELED",
		"...", "...", "...", "ok", "out" },
};

#define REFUSAL "a request is one JSON object and begins with '{'"

static const char *const read_write[PLACES][EVENTS] = {
	[EMPTY] = { "ok 4", "ok 5", "EINVAL", "ok 14", "EINVAL", "EINVAL", "eof", "eof", "EINVAL",
		"ok", "in out" },
	[PARTIAL] = { "ok 4", "ok 5", "ok 6", "ok 14", "ok 1", "EINVAL", "EINVAL", "EINVAL",
		"EINVAL", "EINVAL", "in out" },
	[RUNNING] = { "ok 4", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "held", "EAGAIN",
		"EINVAL", "ok", "out" },
	[UNREAD] = { "ok 4", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "data: " RESULT,
		"data: " RESULT, "EINVAL", "ok", "in out" },
	[READ] = { "ok 4", "ok 5", "EINVAL", "ok 14", "EINVAL", "EINVAL", "data: " RESULT,
		"data: " RESULT, "EINVAL", "ok", "in out" },
	/* isError is no errno here: the JSON says it. */
	[FAILED] = { "ok 4", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "data: " RESULT,
		"data: " RESULT, "EINVAL", "ok", "in out" },
	[REFUSED] = { "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "data: " REFUSAL,
		"data: " REFUSAL, "EINVAL", "ok", "in out" },
};

static void check_pair(struct world *world, enum spot place, enum event event, bool readable)
{
	const char *wanted = readable ? read_write[place][event] : write_only[place][event];
	if (strcmp(wanted, "...") == 0)
		return;
	verdict = VERDICT_NONE;
	go_to(world, place, readable);
	const struct request *request = make(world, event);
	const char *got = request->replies ? request->text : "held";
	bool same = strncmp(wanted, "data: a request", 15) == 0 ? strstr(got, REFUSAL) != NULL
								: strcmp(got, wanted) == 0;
	if (!same)
		fail_msg("%s, place %d, event %d: '%s' and not '%s'",
			readable ? "read-write" : "write-only", place, event, got, wanted);
}

static void every_state_by_every_event(void **state)
{
	struct world *world = *state;
	for (int place = 0; place < PLACES; place++)
		for (int event = 0; event < EVENTS; event++) {
			job_count = 0;
			check_pair(world, (enum spot)place, (enum event)event, false);
			if (place != LET_GO && place != CANCELED)
				check_pair(world, (enum spot)place, (enum event)event, true);
		}
}

/* A job for each document that was taken, and none for anything else. */
static void every_state_runs_what_it_takes_once(void **state)
{
	struct world *world = *state;
	for (int readable = 0; readable < 2; readable++)
		for (int place = 0; place < PLACES; place++)
			for (int event = BLANK; event <= NUL; event++) {
				if (readable && (place == LET_GO || place == CANCELED))
					continue;
				job_count = 0;
				go_to(world, (enum spot)place, readable);
				size_t before = job_count;
				make(world, (enum event)event);
				bool runs = (place == EMPTY && event == WHOLE) ||
					    (place == PARTIAL && event == REST) ||
					    (place == READ && readable && event == WHOLE);
				assert_int_equal(job_count - before, runs);
			}
}

/* What sticks, and what does not: nothing runs again on a handle that has failed. */
static void errors_stick_but_for_ebusy(void **state)
{
	struct world *world = *state;
	for (int readable = 0; readable < 2; readable++)
		for (int place = 0; place < PLACES; place++)
			for (int event = BLANK; event <= NUL; event++) {
				if (readable && (place == LET_GO || place == CANCELED))
					continue;
				job_count = 0;
				go_to(world, (enum spot)place, readable);
				const struct request *first = make(world, (enum event)event);
				if (!first->replies || strncmp(first->text, "ok", 2) == 0)
					continue;
				size_t jobs_before = job_count;
				const struct request *second = write_at(world, DOCUMENT, 0);
				if (strcmp(first->text, "EBUSY") != 0) {
					check_reply(second, first->text);
					assert_int_equal(job_count, jobs_before);
				} else if (place == LET_GO) {
					check_reply(second, "held");
				} else {
					check_reply(second, "EBUSY");
				}
			}
}

/* ---- outcomes and where a result begins */

static void a_held_write_gets_the_outcome_and_it_sticks(void **state)
{
	struct world *world = *state;
	static const struct {
		enum job_end end;
		const char *reply, *then;
	} rows[] = {
		{ JOB_DONE, "ok 14", "ok 1" },
		{ JOB_FAILED, "EIO", "EIO" },
		{ JOB_CRASHED, "EIO", "EIO" },
		{ JOB_TIMED_OUT, "ETIMEDOUT", "ETIMEDOUT" },
		{ JOB_CANCELLED, "ECANCELED", "ECANCELED" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_file(world, O_WRONLY);
		const struct request *request = write_at(world, DOCUMENT, 0);
		check_reply(request, "held");
		end_job(last_job(), rows[i].end);
		check_reply(request, rows[i].reply);
		check_reply(write_at(world, "\n", 14), rows[i].then);
	}
}

static void all_who_read_are_answered(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	const struct request *readers[3] = { read_at(world, 14, 0), read_at(world, 18, 0),
		read_at(world, 1000, 0) };
	end_job(last_job(), JOB_DONE);
	/* The base is settled by the first that is answered; 4.4 leaves open which that is. */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(readers[i]->replies, 1);
	close_file(world);
}

static void a_result_begins_where_writing_has_ended_or_at_zero(void **state)
{
	struct world *world = *state;
	static const struct {
		off_t first;
		const char *reply;
	} rows[] = {
		{ 14, "data: " RESULT }, /* write, read */
		{ 0, "data: " RESULT },  /* write, seek to 0, read */
		{ 20, "data: " RESULT }, /* append mode of some runtimes: beyond the end */
		{ 10, "data: :[{\"type\":\"text\",\"text\":\"hi\"}]}\n" }, /* seeks in between */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		go_to(world, UNREAD, true);
		check_reply(read_at(world, rows[i].first, 0), rows[i].reply);
		/* From then on it stays there. */
		off_t base = rows[i].first == 10 ? 0 : rows[i].first;
		check_reply(read_at(world, base + (off_t)strlen(RESULT), 0), "eof");
		check_reply(read_at(world, base + (off_t)strlen(RESULT) - 2, 0), "data: }\n");
	}
}

static void another_document_has_a_result_of_its_own(void **state)
{
	struct world *world = *state;
	go_to(world, READ, true);
	off_t end = 14 + (off_t)strlen(RESULT);
	check_reply(write_at(world, DOCUMENT, end), "ok 14");
	struct request *reader = read_at(world, end + 14, 0);
	check_reply(reader, "held");
	end_job(last_job(), JOB_DONE);
	check_reply(reader, "data: " RESULT);
	assert_int_equal(job_count, 2);
}

/* Of a long one the file holds a descriptor, which is charged to who has opened it. */
static void a_long_result_is_there_until_the_file_is_closed(void **state)
{
	struct world *world = *state;
	static char text[100000];
	memset(text, 'x', sizeof(text) - 1);
	const off_t near_end = 14 + (off_t)strlen(RESULT) + (off_t)strlen(text) - 8;
	go_to(world, RUNNING, true);
	end_job_with(last_job(), JOB_DONE, text);
	calls_forget(world->server.calls, 1);
	assert_null(calls_get(world->server.calls, 1));
	const struct request *request = read_at(world, 14, 0);
	assert_int_equal(strncmp(request->text, "data: " RESULT, strlen(RESULT) - 1), 0);
	check_reply(read_at(world, near_end, 0), "data: x\"}]}\n");
	check_reply(read_at(world, near_end + 6, 0), "eof");

	/* Another one is too much for this uid, until the first is closed. */
	struct callfile *first = world->file;
	world->file = NULL;
	go_to(world, RUNNING, true);
	end_job_with(last_job(), JOB_DONE, text);
	check_reply(read_at(world, 14, 0), "EMFILE");
	callfile_free(first);
	go_to(world, RUNNING, true);
	end_job_with(last_job(), JOB_DONE, text);
	assert_int_equal(read_at(world, 14, 0)->text[0], 'd');
}

static void the_size_of_a_node_that_is_read_is_where_the_result_ends(void **state)
{
	struct world *world = *state;
	size_t size = 0;
	go_to(world, RUNNING, false);
	assert_false(callfile_size(&world->server, 5, &size));
	go_to(world, RUNNING, true);
	assert_true(callfile_size(&world->server, 5, &size));
	assert_true(size > 14);
	assert_false(callfile_size(&world->server, 6, &size));
	end_job(last_job(), JOB_DONE);
	callfile_size(&world->server, 5, &size);
	assert_int_equal(size, 14 + strlen(RESULT));
	/* Opened twice, by /proc/self/fd: the number is one. */
	struct callfile *second = new_file(world, O_RDWR);
	close_file(world);
	assert_true(callfile_size(&world->server, 5, &size));
	callfile_free(second);
	assert_false(callfile_size(&world->server, 5, &size));
}

/* ---- leaving */

static unsigned cancels_after_leaving(struct world *world)
{
	close_file(world);
	unsigned cancels = last_job()->cancels;
	end_job(last_job(), JOB_CANCELLED); /* nobody is told: it would be a use after free */
	return cancels;
}

static void who_has_begun_to_wait_cancels_by_leaving(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	assert_int_equal(cancels_after_leaving(world), 0); /* never asked for it: H6 */
	go_to(world, RUNNING, true);
	read_at(world, 14, O_NONBLOCK);
	assert_int_equal(cancels_after_leaving(world), 1);
	go_to(world, RUNNING, true);
	ask_poll(world, POLLIN);
	assert_int_equal(cancels_after_leaving(world), 1);
	go_to(world, RUNNING, true);
	ask_poll(world, POLLOUT);
	assert_int_equal(cancels_after_leaving(world), 0);
	/* A poll before the document was no waiting for its result. */
	open_file(world, O_RDWR);
	ask_poll(world, POLLIN);
	write_at(world, DOCUMENT, 0);
	assert_int_equal(cancels_after_leaving(world), 0);
	go_to(world, LET_GO, false);
	assert_int_equal(cancels_after_leaving(world), 1);
}

static void a_signal_while_reading_leaves_it_to_the_close(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	struct request *reader = read_at(world, 14, 0);
	interrupt(world, reader, VERDICT_FATAL);
	check_reply(reader, "EINTR");
	assert_int_equal(last_job()->cancels, 0);
	assert_int_equal(cancels_after_leaving(world), 1);
}

static const struct call *newest_call(struct world *world)
{
	struct caller caller;
	memset(&caller, 0, sizeof(caller));
	caller.who.uid = 1000;
	return calls_nearest(
		world->server.calls, world->forest.only.snapshot->tools[0], &caller, true);
}

static uint64_t newest_seq(struct world *world)
{
	struct caller caller;
	memset(&caller, 0, sizeof(caller));
	caller.who.uid = 1000;
	return calls_nearest(
		world->server.calls, world->forest.only.snapshot->tools[0], &caller, false)
		->seq;
}

static void what_was_never_complete_is_told_in_the_results(void **state)
{
	struct world *world = *state;
	go_to(world, PARTIAL, false);
	close_file(world);
	assert_int_equal(newest_call(world)->state, CALL_REFUSED);
	assert_non_null(strstr(newest_call(world)->reason, "8 bytes"));
	/* A flush comes with every close of a duplicate, and the bytes go on. */
	go_to(world, PARTIAL, false);
	check_reply(make(world, FLUSH), "EINVAL");
	uint64_t refused = newest_call(world)->seq;
	check_reply(write_at(world, "\"Ada\"}", 8), "held");
	assert_null(calls_get(world->server.calls, refused));
	end_job(last_job(), JOB_DONE);
	assert_int_equal(newest_call(world)->state, CALL_DONE);
}

static void nothing_written_is_no_call(void **state)
{
	struct world *world = *state;
	for (int readable = 0; readable < 2; readable++) {
		go_to(world, EMPTY, readable);
		make(world, BLANK);
		make(world, FLUSH);
		close_file(world);
	}
	assert_int_equal(job_count, 0);
	assert_null(newest_call(world));
}

static void truncating_drops_what_was_gathered(void **state)
{
	struct world *world = *state;
	go_to(world, PARTIAL, false);
	callfile_truncate(world->file);
	check_reply(make(world, FLUSH), "ok");
	check_reply(write_at(world, DOCUMENT, 0), "held");
	callfile_truncate(world->file); /* of a call that runs: nothing */
	end_job(last_job(), JOB_DONE);
}

/* ---- signals */

static void verdicts_on_a_held_write(void **state)
{
	struct world *world = *state;
	static const struct {
		enum verdict verdict;
		const char *reply;
		unsigned cancels;
	} rows[] = {
		{ VERDICT_NONE, "held", 0 },
		{ VERDICT_FATAL, "EINTR", 1 },
		{ VERDICT_CANCEL, "EINTR", 1 },
		{ VERDICT_SOFT, "EINTR", 0 },
		{ VERDICT_UNKNOWN, "EINTR", 0 },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		open_file(world, O_WRONLY);
		struct request *request = write_at(world, DOCUMENT, 0);
		interrupt(world, request, rows[i].verdict);
		check_reply(request, rows[i].reply);
		assert_int_equal(last_job()->cancels, rows[i].cancels);
		end_job(last_job(), JOB_DONE);
		check_reply(request, i == 0 ? "ok 14" : "EINTR");
	}
}

static void verdicts_on_a_held_read(void **state)
{
	struct world *world = *state;
	for (int meaning = VERDICT_NONE; meaning <= VERDICT_UNKNOWN; meaning++) {
		go_to(world, RUNNING, true);
		struct request *other = read_at(world, 14, 0);
		struct request *request = read_at(world, 14, 0);
		interrupt(world, request, (enum verdict)meaning);
		check_reply(request, meaning == VERDICT_NONE ? "held" : "EINTR");
		check_reply(other, "held"); /* no signal came to that one */
		assert_int_equal(last_job()->cancels, 0);
		end_job(last_job(), JOB_DONE);
		check_reply(other, "data: " RESULT);
	}
}

/* FUSE tells of the first signal only: H5. */
static void after_a_harmless_signal_the_caller_is_looked_at_again(void **state)
{
	struct world *world = *state;
	go_to(world, EMPTY, false);
	struct request *request = write_at(world, DOCUMENT, 0);
	interrupt(world, request, VERDICT_NONE);
	pass_ms(world, 70);
	check_reply(request, "held");
	verdict = VERDICT_FATAL;
	pass_ms(world, 70);
	check_reply(request, "EINTR");
	assert_int_equal(last_job()->cancels, 1);
}

/* The signal may be there before the request is held: H17. */
static void a_signal_before_the_request_is_held_is_not_lost(void **state)
{
	struct world *world = *state;
	for (int readable = 0; readable < 2; readable++) {
		go_to(world, readable ? RUNNING : EMPTY, readable);
		struct request *request = next_request(world);
		request->interrupted = true;
		verdict = VERDICT_FATAL;
		const struct fuse_file_info fi = { .lock_owner = 7 };
		if (readable)
			callfile_read(world->file, req_of(request), 4096, 14, &fi);
		else
			callfile_write(world->file, req_of(request), DOCUMENT, 14, 0);
		check_reply(request, "held");
		pass_ms(world, 5);
		check_reply(request, "EINTR");
		verdict = VERDICT_NONE;
	}
}

static void a_signal_that_comes_with_the_answer_changes_nothing(void **state)
{
	struct world *world = *state;
	go_to(world, EMPTY, false);
	struct request *request = write_at(world, DOCUMENT, 0);
	verdict = VERDICT_FATAL;
	request->on_interrupt(req_of(request), request->interrupt_arg);
	end_job(last_job(), JOB_DONE);
	check_reply(request, "ok 14");
	assert_null(request->on_interrupt); /* libfuse must not call what is gone */
	pass_ms(world, 5);
	assert_int_equal(last_job()->cancels, 0);
}

static struct request *let_go(struct world *world, const char *bytes, off_t offset)
{
	struct request *request = write_at(world, bytes, offset);
	check_reply(request, "held");
	interrupt(world, request, VERDICT_SOFT);
	check_reply(request, "EINTR");
	return request;
}

static void the_same_bytes_wait_again(void **state)
{
	struct world *world = *state;
	go_to(world, EMPTY, false);
	for (int i = 0; i < 7; i++) /* a periodic timer's signals */
		let_go(world, DOCUMENT, 0);
	struct request *request = write_at(world, DOCUMENT, 0);
	assert_int_equal(job_count, 1);
	end_job(last_job(), JOB_FAILED);
	check_reply(request, "EIO");
}

static void the_same_bytes_may_come_after_the_end(void **state)
{
	struct world *world = *state;
	for (int failed = 0; failed < 2; failed++) {
		go_to(world, EMPTY, false);
		let_go(world, DOCUMENT, 0);
		end_job(last_job(), failed ? JOB_FAILED : JOB_DONE);
		check_reply(write_at(world, "other", 0), "EBUSY");
		check_reply(write_at(world, DOCUMENT, 0), failed ? "EIO" : "ok 14");
		/* That was the answer; the handle is done as ever. */
		check_reply(write_at(world, DOCUMENT, 0), failed ? "EIO" : "EINVAL");
	}
}

static void the_same_bytes_may_come_in_pieces(void **state)
{
	struct world *world = *state;
	go_to(world, EMPTY, false);
	let_go(world, DOCUMENT, 0);
	check_reply(write_at(world, "{\"na", 0), "ok 4");
	check_reply(write_at(world, "xx", 4), "EBUSY");
	check_reply(write_at(world, "me\":", 4), "ok 4");
	/* Interrupted once more, only that piece is written again. */
	let_go(world, "\"Ada\"}", 8);
	struct request *request = write_at(world, "\"Ada\"}", 8);
	check_reply(request, "held");
	end_job(last_job(), JOB_DONE);
	check_reply(request, "ok 6");
	assert_int_equal(job_count, 1);
}

/* Of a document that came in several writes, only the last was held. */
static void only_the_write_that_was_held_comes_again(void **state)
{
	struct world *world = *state;
	go_to(world, PARTIAL, false);
	let_go(world, "\"Ada\"}\n", 8);
	check_reply(write_at(world, DOCUMENT, 0), "EBUSY");
	struct request *request = write_at(world, "\"Ada\"}\n", 8);
	check_reply(request, "held");
	end_job(last_job(), JOB_DONE);
	check_reply(request, "ok 7");
}

/* ---- who calls */

static void check_who(struct world *world, uid_t opener, uid_t writer, int runs_as)
{
	world->ctx = (struct fuse_ctx){ .uid = opener, .gid = opener + 1, .pid = 0 };
	open_file(world, O_WRONLY);
	world->ctx = (struct fuse_ctx){ .uid = writer, .gid = writer + 1, .pid = 0 };
	job_count = 0;
	const struct request *request = write_at(world, DOCUMENT, 0);
	if (runs_as < 0) {
		check_reply(request, "EACCES");
		assert_int_equal(job_count, 0);
		return;
	}
	check_reply(request, "held");
	assert_int_equal(last_job()->who.uid, runs_as);
	assert_int_equal(last_job()->who.gid, runs_as + 1);
	assert_int_equal(last_job()->who.group_count, 0);
	end_job(last_job(), JOB_DONE);
}

static void a_call_runs_for_who_opened_and_never_with_more_rights(void **state)
{
	struct world *world = *state;
	check_who(world, 1000, 1000, 1000);
	check_who(world, 0, 0, 0);
	check_who(world, 0, 1000, 1000);
	check_who(world, 1000, 0, 1000);
	check_who(world, 1000, 1001, -1);
}

static void who_has_changed_its_group_meanwhile_calls_with_the_new_one(void **state)
{
	struct world *world = *state;
	world->ctx.pid = getpid();
	go_to(world, READ, true);
	assert_int_equal(last_job()->who.gid, 1000);
	world->ctx.gid = 2000;
	check_reply(write_at(world, DOCUMENT, 100), "ok 14");
	assert_int_equal(last_job()->who.gid, 2000);
	end_job(last_job(), JOB_DONE);
}

/* ---- the tool, and limits */

static void a_tool_that_was_removed_is_no_device(void **state)
{
	struct world *world = *state;
	go_to(world, PARTIAL, false);
	show_tool(world, NULL);
	check_reply(write_at(world, "\"Ada\"}", 8), "ENODEV");
	show_tool(world, "hello");
	check_reply(write_at(world, DOCUMENT, 0), "ENODEV"); /* it sticks */
	assert_int_equal(job_count, 0);
}

static void what_is_too_large_is_refused(void **state)
{
	struct world *world = *state;
	char text[1200];
	memset(text, ' ', sizeof(text));
	text[0] = '{';
	text[1100] = '\0';
	go_to(world, EMPTY, true);
	check_reply(write_at(world, text, 0), "EFBIG");
	check_reply(write_at(world, "}", 0), "EFBIG");
	assert_int_equal(job_count, 0);
	/* Two handles of one uid, of which the second has no room any more. */
	text[900] = '\0';
	go_to(world, EMPTY, false);
	check_reply(write_at(world, text, 0), "ok 900");
	struct callfile *first = world->file;
	world->file = NULL;
	open_file(world, O_WRONLY);
	check_reply(write_at(world, text, 0), "EBUSY");
	callfile_free(first);
	open_file(world, O_WRONLY);
	check_reply(write_at(world, text, 0), "ok 900");
}

/* ---- poll */

static void poll_wakes_once_and_keeps_the_newest(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	check_reply(ask_poll(world, POLLIN), "out");
	check_reply(ask_poll(world, POLLIN), "out");
	assert_int_equal(poll_handles, 1);
	end_job(last_job(), JOB_DONE);
	assert_int_equal(notified, 1);
	assert_int_equal(poll_handles, 0);
	check_reply(ask_poll(world, POLLIN), "in out");
	check_reply(read_at(world, 14, 0), "data: " RESULT);
	/* The next document's result wakes who still waits from before. */
	check_reply(write_at(world, DOCUMENT, 100), "ok 14");
	end_job(last_job(), JOB_DONE);
	assert_int_equal(notified, 2);
}

static void a_mount_that_ends_answers_all_that_is_held(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	const struct request *one = read_at(world, 14, 0), *two = read_at(world, 14, 0);
	close_file(world);
	check_reply(one, "EIO");
	check_reply(two, "EIO");
	open_file(world, O_WRONLY);
	const struct request *writer = write_at(world, DOCUMENT, 0);
	close_file(world);
	check_reply(writer, "EIO");
}

/* ---- the next server: what it knows is what was noted in the place */

static void die_and_revive(struct world *world)
{
	struct state_handle *place = &world->places[(world->place_count - 1) % 4];
	struct state_handle noted = *place;
	close_file(world); /* of the dead one; its call is the executor's and runs on */
	*place = noted;
	world->file = callfile_revive(&world->server, world->forest.only.snapshot->tools[0], place);
	assert_non_null(world->file);
}

/* The kernel sends again what was not answered. */
static struct request *write_again(struct world *world, const char *bytes, off_t offset)
{
	struct request *request = next_request(world);
	is_repeat = true;
	callfile_write(world->file, req_of(request), bytes, strlen(bytes), offset);
	is_repeat = false;
	return request;
}

static void a_call_is_waited_for_by_the_next_server(void **state)
{
	struct world *world = *state;
	go_to(world, RUNNING, true);
	die_and_revive(world);
	struct request *reader = read_at(world, 14, 0);
	check_reply(reader, "held");
	check_reply(write_at(world, DOCUMENT, 14), "EBUSY");
	end_job(last_job(), JOB_DONE);
	check_reply(reader, "data: " RESULT);
	assert_int_equal(job_count, 1);
}

static void a_held_write_that_comes_again_starts_nothing(void **state)
{
	struct world *world = *state;
	static const enum job_end ends[] = { JOB_DONE, JOB_FAILED };
	static const char *const replies[] = { "ok 14", "EIO" };
	for (size_t i = 0; i < 2; i++)
		for (int ended_before = 0; ended_before < 2; ended_before++) {
			job_count = 0;
			go_to(world, RUNNING, false);
			if (ended_before) { /* the server died with the answer in its hands */
				calls_unwatch(world->server.calls, newest_seq(world));
				end_job(last_job(), ends[i]);
			}
			die_and_revive(world);
			struct request *request = write_again(world, DOCUMENT, 0);
			if (!ended_before) {
				check_reply(request, "held");
				end_job(last_job(), ends[i]);
			}
			check_reply(request, replies[i]);
			assert_int_equal(job_count, 1);
		}
}

static void a_result_is_read_on_where_reading_had_come(void **state)
{
	struct world *world = *state;
	go_to(world, READ, true);
	die_and_revive(world);
	check_reply(read_at(world, 14 + 2, 0),
		"data: content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n");
	check_reply(read_at(world, 14 + (off_t)strlen(RESULT), 0), "eof");
	check_reply(write_at(world, DOCUMENT, 100), "ok 14");
	end_job(last_job(), JOB_DONE);
}

/* The server may have been out of its mind before it died. */
static void what_makes_no_sense_is_of_no_use_and_harms_nobody(void **state)
{
	struct world *world = *state;
	for (size_t at = 0; at < sizeof(struct kept); at++) {
		job_count = 0;
		go_to(world, UNREAD, true);
		struct state_handle *place = &world->places[(world->place_count - 1) % 4];
		place->body[at] ^= 0xff;
		bool is_uid = at >= offsetof(struct kept, opener_uid) &&
			      at < offsetof(struct kept, opener_gid);
		if (is_uid) /* another one's account */
			place->body[at] ^= 0xff;
		die_and_revive(world);
		read_at(world, 14, 0);
		write_at(world, "x", 100);
		close_file(world);
	}
	go_to(world, UNREAD, true);
	callkept_in(&world->places[(world->place_count - 1) % 4])->phase = 77;
	die_and_revive(world);
	check_reply(read_at(world, 14, 0), "EIO");
	check_reply(write_at(world, DOCUMENT, 14), "EIO");
}

static void what_had_failed_fails_on(void **state)
{
	struct world *world = *state;
	static const enum spot places[] = { FAILED, REFUSED, CANCELED };
	static const char *const replies[] = { "EIO", "EINVAL", "ECANCELED" };
	for (size_t i = 0; i < 3; i++) {
		go_to(world, places[i], false);
		die_and_revive(world);
		size_t before = job_count;
		check_reply(write_at(world, DOCUMENT, 0), replies[i]);
		assert_int_equal(job_count, before);
	}
}

static void bytes_that_were_gathered_are_lost_and_that_is_said(void **state)
{
	struct world *world = *state;
	go_to(world, PARTIAL, true);
	die_and_revive(world);
	check_reply(read_at(world, 8, 0), "EIO");
	check_reply(make(world, FLUSH), "EIO");
	check_reply(write_at(world, "\"Ada\"}", 8), "EIO");
	assert_int_equal(job_count, 0);
	/* But the only write, not answered yet, is whole. */
	go_to(world, EMPTY, false);
	write_at(world, "{\"name\":", 0);
	die_and_revive(world);
	check_reply(write_again(world, "{\"name\":", 0), "ok 8");
	check_reply(write_at(world, "\"Ada\"}", 8), "held");
	end_job(last_job(), JOB_DONE);
}

static void nothing_that_was_empty_is_lost(void **state)
{
	struct world *world = *state;
	go_to(world, EMPTY, false);
	die_and_revive(world);
	check_reply(write_at(world, DOCUMENT, 0), "held");
	end_job(last_job(), JOB_DONE);
}

#define file_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(every_state_by_every_event),
		file_test(every_state_runs_what_it_takes_once),
		file_test(errors_stick_but_for_ebusy),
		file_test(a_held_write_gets_the_outcome_and_it_sticks),
		file_test(all_who_read_are_answered),
		file_test(a_result_begins_where_writing_has_ended_or_at_zero),
		file_test(another_document_has_a_result_of_its_own),
		file_test(a_long_result_is_there_until_the_file_is_closed),
		file_test(the_size_of_a_node_that_is_read_is_where_the_result_ends),
		file_test(who_has_begun_to_wait_cancels_by_leaving),
		file_test(a_signal_while_reading_leaves_it_to_the_close),
		file_test(what_was_never_complete_is_told_in_the_results),
		file_test(nothing_written_is_no_call),
		file_test(truncating_drops_what_was_gathered),
		file_test(verdicts_on_a_held_write),
		file_test(verdicts_on_a_held_read),
		file_test(after_a_harmless_signal_the_caller_is_looked_at_again),
		file_test(a_signal_before_the_request_is_held_is_not_lost),
		file_test(a_signal_that_comes_with_the_answer_changes_nothing),
		file_test(the_same_bytes_wait_again),
		file_test(the_same_bytes_may_come_after_the_end),
		file_test(the_same_bytes_may_come_in_pieces),
		file_test(only_the_write_that_was_held_comes_again),
		file_test(a_call_runs_for_who_opened_and_never_with_more_rights),
		file_test(who_has_changed_its_group_meanwhile_calls_with_the_new_one),
		file_test(a_tool_that_was_removed_is_no_device),
		file_test(what_is_too_large_is_refused),
		file_test(poll_wakes_once_and_keeps_the_newest),
		file_test(a_mount_that_ends_answers_all_that_is_held),
		file_test(a_call_is_waited_for_by_the_next_server),
		file_test(a_held_write_that_comes_again_starts_nothing),
		file_test(a_result_is_read_on_where_reading_had_come),
		file_test(what_makes_no_sense_is_of_no_use_and_harms_nobody),
		file_test(what_had_failed_fails_on),
		file_test(bytes_that_were_gathered_are_lost_and_that_is_said),
		file_test(nothing_that_was_empty_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
