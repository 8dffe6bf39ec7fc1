/*
 * The table of calls: every life of a call, who sees what, what is kept. The executor is one of this
 * program's own, which does what a test says.
 */
#include <inttypes.h>
#include <jansson.h>
#include <sched.h>
#include <sys/mount.h>

#include "core/running/calls.h"
#include "tests/unit/scratch.h"

/* ---- an executor that waits to be told (it takes the place of executor.c) */

struct job {
	const struct job_events *events;
	void *arg;
	char id[CALL_ID_MAX + 1];
	char *params; /* owned */
	struct identity who;
	bool nested;
	unsigned cancels;
};

static struct job jobs[4096];
static size_t job_count;
static int refuse_next;    /* 0, or the errno of the next submission */
static pid_t host_pid = 0; /* of the one host */

struct job *executor_submit(struct executor *executor, const struct job_request *request,
	const struct job_events *events, void *arg, struct fail *why)
{
	assert_null(executor);
	if (refuse_next) {
		fail_set(why, refuse_next, "no");
		refuse_next = 0;
		return NULL;
	}
	struct job *job = &jobs[job_count++];
	*job = (struct job){ .events = events, .arg = arg, .nested = request->nested };
	snprintf(job->id, sizeof(job->id), "%s", request->call_id);
	job->params = json_dumps(request->params, JSON_COMPACT | JSON_SORT_KEYS);
	job->who = *request->who;
	return job;
}

void executor_cancel(struct job *job)
{
	job->cancels++;
}

bool executor_owns_pid(const struct executor *executor, pid_t pid)
{
	(void)executor;
	return host_pid && pid == host_pid;
}

void executor_recover(struct executor *executor, const struct executor_heirs *heirs, void *arg)
{
	(void)executor, (void)heirs, (void)arg;
}

struct job *executor_resubmit(struct executor *executor, uint64_t tag, struct tool *tool,
	const char *call_id, const struct job_events *events, void *arg, struct fail *why)
{
	(void)executor, (void)tag, (void)tool, (void)call_id, (void)events, (void)arg;
	fail_set(why, -ENOENT, "nothing was put by");
	return NULL;
}

static void end_job(struct job *job, enum job_end end, const char *text)
{
	struct result result = RESULT_INIT;
	auto_json json_t *value =
		json_pack("{s:[{s:s, s:s}]}", "content", "type", "text", "text", text);
	assert_non_null(value);
	result_from_value(&result, value);
	job->events->on_end(job->arg, end, &result);
	free(take_ptr(&job->params));
}

static struct job *last_job(void)
{
	return &jobs[job_count - 1];
}

/* ---- a world for each test */

struct world {
	void *scratch;
	struct scratch dir;
	struct calls *calls;
	struct tool *tool, *other_tool;
	unsigned ends, changes, forgets;
	enum call_state end_state;
	int outcome;
	uint64_t forgotten[16];
};

static void on_change(void *arg, const struct call *call)
{
	struct world *world = arg;
	(void)call;
	world->changes++;
}

static void on_forget(void *arg, const struct call *call)
{
	struct world *world = arg;
	world->forgotten[world->forgets++ % 16] = call->seq;
}

static const struct calls_listener listener = { .on_change = on_change, .on_forget = on_forget };

static struct tool *new_tool(const char *name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->label = xstrdup(name);
	tool->description = xstrdup("");
	tool->body = xstrdup("");
	tool->inputs = xcalloc(2, sizeof(*tool->inputs));
	tool->input_count = 2;
	tool->inputs[0].name = xstrdup("name");
	tool->inputs[0].description = xstrdup("");
	tool->inputs[1].name = xstrdup("token");
	tool->inputs[1].description = xstrdup("");
	tool->inputs[1].optional = true;
	tool->inputs[1].sensitive = true;
	return tool;
}

static void make_calls(struct world *world, int dir_fd, unsigned keep, size_t bytes_max)
{
	const struct calls_config config = {
		.dir_fd = dir_fd, .keep = keep, .bytes_max = bytes_max
	};
	calls_free(world->calls);
	world->calls = calls_new(NULL, NULL, &config);
	calls_listen(world->calls, &listener, world);
}

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	int result = scratch_setup(&world->scratch);
	world->dir = *(struct scratch *)world->scratch;
	world->tool = new_tool("hello");
	world->other_tool = new_tool("other");
	make_calls(world, world->dir.fd, 0, 0);
	job_count = 0;
	host_pid = 0;
	*state = world;
	return result;
}

static int teardown(void **state)
{
	struct world *world = *state;
	for (size_t i = 0; i < job_count; i++)
		free(take_ptr(&jobs[i].params));
	calls_free(world->calls);
	tool_unref(world->tool);
	tool_unref(world->other_tool);
	int result = scratch_teardown(&world->scratch);
	free(world);
	return result;
}

static struct caller caller_of(uid_t uid, pid_t pid)
{
	struct caller caller;
	memset(&caller, 0, sizeof(caller));
	caller.who.uid = uid;
	caller.who.gid = uid;
	caller.tid = pid;
	caller.pid_ns = 77;
	caller.chain = (struct chain){ .links = { { pid, 1 }, { 1, 1 } }, .count = 2 };
	return caller;
}

static void on_end(void *arg, const struct call *call)
{
	struct world *world = arg;
	world->ends++;
	world->end_state = call->state;
	world->outcome = call_outcome(call);
}

static int start_document(struct world *world, const struct caller *caller, uint64_t reserved,
	const char *document, uint64_t *seq, struct fail *why)
{
	const struct call_order order = { .tool = world->tool,
		.caller = caller,
		.reserved = reserved,
		.document = document,
		.len = strlen(document) };
	return calls_start(world->calls, &order, on_end, world, seq, why);
}

static uint64_t start(struct world *world, const struct caller *caller)
{
	struct fail why = FAIL_INIT;
	uint64_t seq = 0;
	assert_int_equal(start_document(world, caller, 0, "{\"name\":\"Ada\"}", &seq, &why), 0);
	assert_true(seq > 0);
	return seq;
}

/* A call that has run and said text. */
static uint64_t run(struct world *world, const struct caller *caller, const char *text)
{
	uint64_t seq = start(world, caller);
	end_job(last_job(), JOB_DONE, text);
	return seq;
}

static uint64_t reserve(struct world *world, const struct caller *caller, const char *id, int code)
{
	struct fail why = FAIL_INIT;
	uint64_t seq = calls_reserve(world->calls, world->tool, caller, id, &why);
	assert_int_equal(why.code, code);
	assert_int_equal(seq == 0, code != 0);
	return seq;
}

static void check_part(struct world *world, uint64_t seq, enum call_part part, const char *wanted)
{
	struct fail why = FAIL_INIT;
	const struct call *call = calls_get(world->calls, seq);
	assert_non_null(call);
	struct bytes *bytes = calls_load(world->calls, call, part, &why);
	assert_string_equal(why.text, "");
	assert_string_equal(bytes->data, wanted);
	assert_int_equal(bytes->len, strlen(wanted));
	bytes_unref(bytes);
}

static void check_state(struct world *world, uint64_t seq, enum call_state wanted)
{
	const struct call *call = calls_get(world->calls, seq);
	assert_non_null(call);
	assert_string_equal(call_state_name(call->state), call_state_name(wanted));
}

/* ---- the life of a call */

static void a_call_waits_runs_and_is_done(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t seq = start(world, &caller);
	check_state(world, seq, CALL_QUEUED);
	check_part(world, seq, CALL_PART_REQUEST, "{\"name\":\"Ada\"}\n");
	check_part(world, seq, CALL_PART_RESULT_JSON, "");
	struct job *job = last_job();
	job->events->on_start(job->arg, 1);
	check_state(world, seq, CALL_RUNNING);
	assert_true(calls_get(world->calls, seq)->started_ms > 0);
	job->events->on_output(job->arg, "one\n", 4);
	job->events->on_progress(job->arg, "{}", 2);
	check_part(world, seq, CALL_PART_LOG, "one\n");
	check_part(world, seq, CALL_PART_PROGRESS, "{}\n");
	job->events->on_output(job->arg, "two\n", 4);
	assert_int_equal(world->ends, 0);
	end_job(job, JOB_DONE, "Hello");
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, 0);
	check_state(world, seq, CALL_DONE);
	check_part(world, seq, CALL_PART_REQUEST, "{\"name\":\"Ada\"}\n");
	check_part(world, seq, CALL_PART_RESULT_JSON,
		"{\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}]}\n");
	check_part(world, seq, CALL_PART_RESULT_TEXT, "Hello\n");
	check_part(world, seq, CALL_PART_LOG, "one\ntwo\n");
	assert_string_equal(calls_get(world->calls, seq)->reason, "");
	assert_true(world->changes >= 6);
}

/* Every end, from every state in which a job can be. */
static void every_end_of_a_job_is_a_state_and_an_outcome(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	static const struct {
		enum job_end end;
		enum call_state state;
		int outcome;
	} rows[] = {
		{ JOB_DONE, CALL_DONE, 0 },
		{ JOB_FAILED, CALL_FAILED, -EIO },
		{ JOB_CRASHED, CALL_FAILED, -EIO },
		{ JOB_TIMED_OUT, CALL_TIMED_OUT, -ETIMEDOUT },
		{ JOB_CANCELLED, CALL_CANCELLED, -ECANCELED },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int started = 0; started < 2; started++) {
			uint64_t seq = start(world, &caller);
			if (started)
				last_job()->events->on_start(last_job()->arg, 1);
			end_job(last_job(), rows[i].end, "first line\nsecond");
			check_state(world, seq, rows[i].state);
			assert_int_equal(world->end_state, rows[i].state);
			assert_int_equal(world->outcome, rows[i].outcome);
			assert_string_equal(calls_get(world->calls, seq)->reason,
				rows[i].end == JOB_DONE ? "" : "first line");
		}
}

static void r39_every_call_has_an_id_of_its_own(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t before = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t seq = start(world, &caller);
		assert_true(seq > before);
		assert_true(seq < UINT64_C(1) << 52);
		before = seq;
		auto_free char *id = xasprintf("%" PRIx64, seq);
		assert_string_equal(last_job()->id, id);
		assert_string_equal(calls_get(world->calls, seq)->id, id);
	}
}

static void bad_requests_are_refused_and_say_why(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	static const char *const documents[] = { "{", "{\"name\":}", "{\"name\":[]}", "{}", "[]" };
	for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++) {
		struct fail why = FAIL_INIT;
		uint64_t seq = 0;
		assert_int_equal(
			start_document(world, &caller, 0, documents[i], &seq, &why), -EINVAL);
		check_state(world, seq, CALL_REFUSED);
		const struct call *call = calls_get(world->calls, seq);
		assert_true(strlen(call->reason) > 0);
		assert_true(call->part_len[CALL_PART_RESULT_TEXT] > 0);
	}
	assert_int_equal(job_count, 0);
	assert_int_equal(world->ends, 0);
}

static void what_the_executor_refuses_is_refused(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	static const int codes[] = { -EBUSY, -EACCES, -ENOMEM };
	for (size_t i = 0; i < 3; i++) {
		struct fail why = FAIL_INIT;
		uint64_t seq = 0;
		refuse_next = codes[i];
		assert_int_equal(
			start_document(world, &caller, 0, "{\"name\":\"\"}", &seq, &why), codes[i]);
		check_state(world, seq, CALL_REFUSED);
		check_part(world, seq, CALL_PART_RESULT_TEXT, "no\n");
	}
}

static void a_request_that_never_became_complete_leaves_its_reason(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	struct fail why = FAIL_INIT;
	fail_set(&why, -EINVAL, "too short");
	uint64_t seq = calls_refuse(world->calls, world->tool, &caller, 0, &why);
	check_state(world, seq, CALL_REFUSED);
	check_part(world, seq, CALL_PART_RESULT_TEXT, "too short\n");
	check_part(world, seq, CALL_PART_REQUEST, "");
}

static void r29_a_sensitive_value_is_given_and_not_kept(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	struct fail why = FAIL_INIT;
	uint64_t seq = 0;
	start_document(world, &caller, 0, "{\"name\":\"a\",\"token\":\"s3cret\"}", &seq, &why);
	assert_non_null(strstr(last_job()->params, "s3cret"));
	check_part(world, seq, CALL_PART_REQUEST, "{\"name\":\"a\",\"token\":\"[sensitive]\"}\n");
	end_job(last_job(), JOB_DONE, "ok");
	auto_free char *name = xasprintf("%" PRIx64, seq);
	auto_buf struct buf file = BUF_INIT(1 << 20);
	assert_int_equal(io_load_beneath(world->dir.fd, name, &file), 0);
	assert_null(memmem(file.data, file.len, "s3cret", 6));
}

/* What waits holds no descriptor, however many wait. */
static void a10_warnings_are_in_the_log_and_hold_no_file_open(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	size_t before = scratch_count_fds();
	for (int i = 0; i < 50; i++) {
		struct fail why = FAIL_INIT;
		uint64_t seq = 0;
		start_document(world, &caller, 0, "{\"name\":\"a\",\"nmae\":1}", &seq, &why);
		const struct call *call = calls_get(world->calls, seq);
		assert_true(call->part_len[CALL_PART_LOG] > 0);
	}
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- the reason of an end */

static void a_reason_is_cut_between_characters(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	/* The limit falls into each byte of a character once. */
	for (size_t shift = 0; shift < 3; shift++) {
		char text[1000] = "";
		for (size_t i = 0; i < shift; i++)
			strcat(text, "x");
		for (int i = 0; i < 200; i++)
			strcat(text, "\xe2\x82\xac");
		uint64_t seq = start(world, &caller);
		end_job(last_job(), JOB_FAILED, text);
		check_state(world, seq, CALL_FAILED);
		strcat(text, "\n");
		check_part(world, seq, CALL_PART_RESULT_TEXT, text);
		const char *reason = calls_get(world->calls, seq)->reason;
		assert_in_range(strlen(reason), CALL_REASON_MAX - 4, CALL_REASON_MAX - 1);
		assert_int_equal((strlen(reason) - shift) % 3, 0);
	}
}

/* ---- cancelling, watching, forgetting */

static void who_does_not_watch_any_more_is_not_told(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t seq = start(world, &caller);
	calls_unwatch(world->calls, seq);
	calls_cancel(world->calls, seq);
	assert_int_equal(last_job()->cancels, 1);
	end_job(last_job(), JOB_CANCELLED, "cancelled");
	assert_int_equal(world->ends, 0);
	check_state(world, seq, CALL_CANCELLED);
}

static void cancelling_what_has_no_job_does_nothing(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t done = run(world, &caller, "x");
	uint64_t reserved = reserve(world, &caller, "job", 0);
	calls_cancel(world->calls, done);
	calls_cancel(world->calls, reserved);
	calls_cancel(world->calls, 12345);
	calls_unwatch(world->calls, 12345);
	calls_forget(world->calls, 12345);
	check_state(world, done, CALL_DONE);
	check_state(world, reserved, CALL_RESERVED);
	assert_int_equal(world->forgets, 0);
}

static void a_finished_call_is_forgotten_with_its_files(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t seq = start(world, &caller);
	last_job()->events->on_output(last_job()->arg, "x", 1);
	end_job(last_job(), JOB_DONE, "x");
	calls_forget(world->calls, seq);
	assert_null(calls_get(world->calls, seq));
	assert_int_equal(world->forgets, 1);
	assert_true(world->forgotten[0] == seq);
	auto_free char *name = xasprintf("%" PRIx64, seq);
	auto_free char *log = xasprintf("%s.log", name);
	assert_int_equal(faccessat(world->dir.fd, name, F_OK, 0), -1);
	assert_int_equal(faccessat(world->dir.fd, log, F_OK, 0), -1);
}

static void a_running_call_that_is_forgotten_is_cancelled_and_still_answers(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t seq = reserve(world, &caller, "job", 0);
	struct fail why = FAIL_INIT;
	assert_int_equal(start_document(world, &caller, seq, "{\"name\":\"\"}", &seq, &why), 0);
	calls_forget(world->calls, seq);
	calls_forget(world->calls, seq);
	/* Nobody finds it any more, and its id is free. */
	assert_null(calls_get(world->calls, seq));
	assert_null(calls_find(world->calls, world->tool, &caller, "job"));
	assert_null(calls_nearest(world->calls, world->tool, &caller, false));
	uint64_t again = reserve(world, &caller, "job", 0);
	assert_true(again != seq);
	assert_true(last_job()->cancels >= 1);
	last_job()->events->on_output(last_job()->arg, "x", 1);
	end_job(last_job(), JOB_CANCELLED, "cancelled");
	assert_int_equal(world->ends, 1);
	assert_int_equal(world->outcome, -ECANCELED);
	assert_true(world->forgotten[0] == seq);
	assert_ptr_equal(calls_find(world->calls, world->tool, &caller, "job"),
		calls_get(world->calls, again));
}

/* ---- ids */

static void a_reserved_id_becomes_the_call_s(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t seq = reserve(world, &caller, "job-1", 0);
	check_state(world, seq, CALL_RESERVED);
	/* Nothing that was made yet: it is no call to read from. */
	assert_null(calls_nearest(world->calls, world->tool, &caller, false));
	struct fail why = FAIL_INIT;
	uint64_t started = 0;
	assert_int_equal(start_document(world, &caller, seq, "{\"name\":\"\"}", &started, &why), 0);
	assert_true(started == seq);
	assert_string_equal(last_job()->id, "job-1");
	end_job(last_job(), JOB_DONE, "x");
	check_state(world, seq, CALL_DONE);
	assert_ptr_equal(calls_find(world->calls, world->tool, &caller, "job-1"),
		calls_get(world->calls, seq));
}

static void an_id_is_for_one_call(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t reserved = reserve(world, &caller, "job", 0), seq = 0;
	struct fail why = FAIL_INIT;
	start_document(world, &caller, reserved, "{\"name\":\"\"}", &seq, &why);
	assert_int_equal(
		start_document(world, &caller, reserved, "{\"name\":\"\"}", &seq, &why), -EBUSY);
	assert_true(seq != reserved);
	check_state(world, seq, CALL_REFUSED);
	assert_int_equal(job_count, 1);
	end_job(last_job(), JOB_DONE, "x");
	check_part(world, reserved, CALL_PART_RESULT_TEXT, "x\n");
}

static void an_id_that_was_given_up_runs_nothing(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t reserved = reserve(world, &caller, "job", 0), seq = 0;
	calls_forget(world->calls, reserved);
	struct fail why = FAIL_INIT;
	assert_int_equal(start_document(world, &caller, reserved, "{\"name\":\"\"}", &seq, &why),
		-ECANCELED);
	assert_int_equal(job_count, 0);
	check_state(world, seq, CALL_REFUSED);
}

/* Else the one who reserved it would read what somebody else's call says. */
static void an_id_is_for_the_uid_that_reserved_it(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50), root = caller_of(0, 51);
	uint64_t reserved = reserve(world, &caller, "job", 0), seq = 0;
	struct fail why = FAIL_INIT;
	assert_int_equal(
		start_document(world, &root, reserved, "{\"name\":\"\"}", &seq, &why), -EACCES);
	assert_int_equal(calls_get(world->calls, seq)->uid, 0);
	check_state(world, reserved, CALL_RESERVED);
	assert_int_equal(job_count, 0);
}

static void a_refusal_takes_the_reserved_id(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t reserved = reserve(world, &caller, "job", 0);
	struct fail why = FAIL_INIT;
	fail_set(&why, -EINVAL, "bad");
	assert_true(calls_refuse(world->calls, world->tool, &caller, reserved, &why) == reserved);
	check_state(world, reserved, CALL_REFUSED);
	/* Later ones have ids of their own. */
	assert_true(calls_refuse(world->calls, world->tool, &caller, reserved, &why) != reserved);
}

static void ids_that_cannot_be_reserved(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50), other = caller_of(1001, 50);
	reserve(world, &caller, "", -EINVAL);
	reserve(world, &caller, "..", -EINVAL);
	reserve(world, &caller, "a/b", -EINVAL);
	reserve(world, &caller, "job", 0);
	reserve(world, &caller, "job", -EEXIST);
	reserve(world, &other, "job", 0);
	uint64_t seq = run(world, &caller, "x");
	reserve(world, &caller, calls_get(world->calls, seq)->id, -EEXIST);
	/* Of the form that a later call may get by itself. */
	reserve(world, &caller, "0123456789abc", -EEXIST);
	reserve(world, &caller, "0123456789abcd", 0);
}

static void reserved_ids_are_limited(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50), other = caller_of(1001, 50);
	uint64_t first = 0;
	for (int i = 0; i < 256; i++) {
		auto_free char *id = xasprintf("job-%d", i);
		uint64_t seq = reserve(world, &caller, id, 0);
		first = first ? first : seq;
	}
	reserve(world, &caller, "more", -EBUSY);
	reserve(world, &other, "more", 0);
	calls_forget(world->calls, first);
	reserve(world, &caller, "more", 0);
	reserve(world, &caller, "yet-more", -EBUSY);
}

/* ---- who sees what */

struct seen {
	uint64_t seqs[8];
	size_t count;
};

static void see(void *arg, const struct call *call)
{
	struct seen *seen = arg;
	assert_true(seen->count < 8);
	seen->seqs[seen->count++] = call->seq;
}

static size_t count_seen(struct world *world, const struct caller *caller)
{
	struct seen seen = { .count = 0 };
	calls_each(world->calls, world->tool, caller, see, &seen);
	return seen.count;
}

static void a_caller_sees_its_own_calls(void **state)
{
	struct world *world = *state;
	const struct caller one = caller_of(1000, 50), two = caller_of(1001, 50);
	struct caller elsewhere = caller_of(1000, 50), unknown = caller_of(1000, 50);
	elsewhere.pid_ns = 78;
	unknown.pid_ns = 0;
	uint64_t first = run(world, &one, "1"), second = run(world, &one, "2");
	run(world, &two, "x");
	struct seen seen = { .count = 0 };
	calls_each(world->calls, world->tool, &one, see, &seen);
	assert_int_equal(seen.count, 2);
	assert_true(seen.seqs[0] == first && seen.seqs[1] == second);
	const struct call *call = calls_get(world->calls, first);
	assert_true(calls_may_see(world->calls, call, &one));
	assert_false(calls_may_see(world->calls, call, &two));
	assert_int_equal(count_seen(world, &two), 1);
	/* Another pid namespace is another container, where that can be known. */
	assert_int_equal(count_seen(world, &elsewhere), 0);
	assert_int_equal(count_seen(world, &unknown), 2);
	assert_null(calls_find(world->calls, world->tool, &two, call->id));
	assert_null(calls_find(world->calls, world->tool, &elsewhere, call->id));
	assert_null(calls_find(world->calls, world->other_tool, &one, call->id));
	assert_null(calls_nearest(world->calls, world->tool, &elsewhere, true));
	assert_null(calls_nearest(world->calls, world->other_tool, &one, true));
}

static void root_sees_all_but_reads_its_own_result(void **state)
{
	struct world *world = *state;
	const struct caller one = caller_of(1000, 50);
	struct caller root;
	caller_load(&root, 0, 0, getpid()); /* the namespace of the daemon */
	uint64_t seq = run(world, &one, "1");
	assert_int_equal(count_seen(world, &root), 1);
	assert_non_null(
		calls_find(world->calls, world->tool, &root, calls_get(world->calls, seq)->id));
	assert_null(calls_nearest(world->calls, world->tool, &root, true));
	/* A container's root is not this machine's. */
	root.pid_ns++;
	assert_int_equal(count_seen(world, &root), 0);
}

/* ---- memory */

static void requests_that_wait_are_limited_in_bytes(void **state)
{
	struct world *world = *state;
	const struct calls_config config = { .dir_fd = world->dir.fd, .pending_max = 1000 };
	calls_free(world->calls);
	world->calls = calls_new(NULL, NULL, &config);
	const struct caller one = caller_of(1000, 50), two = caller_of(1001, 50);
	char document[600];
	memset(document, ' ', sizeof(document));
	memcpy(document, "{\"name\":\"a\"}", 12);
	document[sizeof(document) - 1] = '\0';
	struct fail why = FAIL_INIT;
	uint64_t seq = 0;
	assert_int_equal(start_document(world, &one, 0, document, &seq, &why), 0);
	assert_int_equal(start_document(world, &one, 0, document, &seq, &why), -EBUSY);
	check_state(world, seq, CALL_REFUSED);
	fail_clear(&why);
	assert_int_equal(start_document(world, &two, 0, document, &seq, &why), 0);
	/* Whatever is refused gives back what it took. */
	for (int i = 0; i < 5; i++) {
		fail_clear(&why);
		start_document(world, &one, 0, "{\"name\":[]}", &seq, &why);
	}
	end_job(&jobs[0], JOB_DONE, "x");
	fail_clear(&why);
	assert_int_equal(start_document(world, &one, 0, document, &seq, &why), 0);
}

/* ---- the nearest call */

#define NODES 60
#define CALLS 80

/* The chain of a process in a tree in which each has a parent of a lower number. */
static struct chain chain_of(const int parents[NODES], int node)
{
	struct chain chain = { .count = 0 };
	for (; node >= 0 && chain.count < CALLER_CHAIN_MAX; node = parents[node])
		chain.links[chain.count++] =
			(struct process){ .pid = 100 + node, .start = (uint64_t)node };
	return chain;
}

/* How far above the reader the first process is that is above the writer too, by the tree alone. */
static int steps_to_common(const int parents[NODES], int reader, int writer)
{
	int steps = 0;
	for (int above = reader; above >= 0; above = parents[above], steps++)
		for (int other = writer; other >= 0; other = parents[other])
			if (other == above)
				return steps;
	return NODES;
}

static void check_random_tree(struct world *world)
{
	int parents[NODES], writers[CALLS];
	uint64_t seqs[CALLS];
	for (int i = 0; i < NODES; i++)
		/* Some roots: containers share no ancestor that is seen. */
		parents[i] = i == 0 || rand() % 20 == 0 ? -1 : rand() % i;
	for (int i = 0; i < CALLS; i++) {
		writers[i] = rand() % NODES;
		struct caller writer = caller_of(1000, 1);
		writer.chain = chain_of(parents, writers[i]);
		struct fail why = FAIL_INIT;
		fail_set(&why, -EINVAL, "x");
		seqs[i] = calls_refuse(world->calls, world->tool, &writer, 0, &why);
	}
	for (int reader = 0; reader < NODES; reader++) {
		struct caller caller = caller_of(1000, 1);
		caller.chain = chain_of(parents, reader);
		int best = -1, best_steps = NODES + 1;
		for (int i = 0; i < CALLS; i++) {
			int steps = steps_to_common(parents, reader, writers[i]);
			if (steps <= best_steps) { /* a later one wins of equals */
				best_steps = steps;
				best = i;
			}
		}
		const struct call *call = calls_nearest(world->calls, world->tool, &caller, true);
		assert_non_null(call);
		assert_true(call->seq == seqs[best]);
	}
}

static void in_any_tree_the_nearest_wins_and_the_newest_of_equals(void **state)
{
	struct world *world = *state;
	srand(7);
	for (int i = 0; i < 20; i++) {
		make_calls(world, world->dir.fd, 1000, 0);
		check_random_tree(world);
	}
}

static void a_reader_that_is_not_known_gets_the_newest_of_its_uid(void **state)
{
	struct world *world = *state;
	const struct caller one = caller_of(1000, 50), two = caller_of(1000, 60);
	struct caller unknown = caller_of(1000, 0);
	unknown.chain.count = 0;
	unknown.pid_ns = 0;
	run(world, &one, "1");
	uint64_t newest = run(world, &two, "2");
	assert_true(calls_nearest(world->calls, world->tool, &unknown, true)->seq == newest);
}

/* result.* show what is there; a new call of the same shell takes their place when it has ended. */
static void a_running_call_has_a_log_but_no_result(void **state)
{
	struct world *world = *state;
	const struct caller caller = caller_of(1000, 50);
	uint64_t done = run(world, &caller, "1");
	uint64_t running = start(world, &caller);
	assert_true(calls_nearest(world->calls, world->tool, &caller, true)->seq == done);
	assert_true(calls_nearest(world->calls, world->tool, &caller, false)->seq == running);
	end_job(last_job(), JOB_DONE, "2");
	assert_true(calls_nearest(world->calls, world->tool, &caller, true)->seq == running);
}

/* ---- calls of calls */

static void a_call_made_below_a_host_is_nested(void **state)
{
	struct world *world = *state;
	struct caller caller = caller_of(1000, 50);
	start(world, &caller);
	assert_false(last_job()->nested);
	caller.chain = (struct chain){ .links = { { 50, 1 }, { 49, 1 }, { 1, 1 } }, .count = 3 };
	host_pid = 49;
	start(world, &caller);
	assert_true(last_job()->nested);
}

/* ---- what is kept */

static size_t kept(struct world *world)
{
	struct calls_stats stats;
	calls_get_stats(world->calls, &stats);
	return stats.kept;
}

static void of_one_process_only_so_many_stay(void **state)
{
	struct world *world = *state;
	make_calls(world, world->dir.fd, 4, 0);
	const struct caller caller = caller_of(1000, 50), other = caller_of(1001, 50);
	uint64_t first_other = run(world, &other, "x");
	uint64_t last[4] = { 0 };
	for (int i = 0; i < 100; i++)
		last[i % 4] = run(world, &caller, "x");
	assert_int_equal(kept(world), 5);
	assert_int_equal(world->forgets, 96);
	for (int i = 0; i < 4; i++)
		check_part(world, last[i], CALL_PART_RESULT_TEXT, "x\n");
	check_part(world, first_other, CALL_PART_RESULT_TEXT, "x\n");
}

static void of_many_processes_each_has_time_to_read(void **state)
{
	struct world *world = *state;
	make_calls(world, world->dir.fd, 2, 0);
	uint64_t first = 0;
	for (int i = 0; i < 32; i++) {
		const struct caller caller = caller_of(1000, 100 + i);
		uint64_t seq = run(world, &caller, "x");
		first = first ? first : seq;
	}
	assert_int_equal(kept(world), 32);
	check_part(world, first, CALL_PART_RESULT_TEXT, "x\n");
	const struct caller caller = caller_of(1000, 99);
	run(world, &caller, "x");
	assert_null(calls_get(world->calls, first));
}

static void calls_that_run_or_wait_are_never_dropped(void **state)
{
	struct world *world = *state;
	make_calls(world, world->dir.fd, 1, 0);
	const struct caller caller = caller_of(1000, 50);
	uint64_t running = start(world, &caller);
	size_t job = job_count - 1;
	uint64_t reserved = reserve(world, &caller, "job", 0);
	for (int i = 0; i < 40; i++)
		run(world, &caller, "x");
	assert_non_null(calls_get(world->calls, running));
	assert_non_null(calls_get(world->calls, reserved));
	assert_int_equal(kept(world), 3);
	end_job(&jobs[job], JOB_DONE, "late");
	check_part(world, running, CALL_PART_RESULT_TEXT, "late\n");
}

/* Nobody fills the disk for others: who holds the most loses its oldest, and nobody its last. */
static void large_results_give_way(void **state)
{
	struct world *world = *state;
	make_calls(world, world->dir.fd, 64, 100000);
	const struct caller heavy = caller_of(1000, 50), light = caller_of(1001, 50);
	char text[15001];
	memset(text, 'x', 15000);
	text[15000] = '\0';
	uint64_t small = run(world, &light, "x"), last = 0;
	run(world, &light, "y");
	for (int i = 0; i < 20; i++)
		last = run(world, &heavy, text);
	assert_non_null(calls_get(world->calls, small));
	assert_non_null(calls_get(world->calls, last));
	assert_in_range(kept(world), 4, 5); /* each holds its text twice */
	/* One alone that is too large stays: there has to be an answer. */
	make_calls(world, world->dir.fd, 64, 1000);
	last = run(world, &heavy, text);
	assert_non_null(calls_get(world->calls, last));
	uint64_t next = run(world, &heavy, text);
	assert_null(calls_get(world->calls, last));
	assert_non_null(calls_get(world->calls, next));
}

static void a_full_disk_fails_the_call_and_says_so(void **state)
{
	struct world *world = *state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	scratch_mkdir(&world->dir, "small");
	auto_free char *path = xasprintf("%s/small", world->dir.path);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=64k"), 0);
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_calls(world, dir_fd, 0, 0);
	const struct caller caller = caller_of(1000, 50);
	auto_free char *text = xcalloc(100001, 1);
	memset(text, 'x', 100000);
	uint64_t seq = start(world, &caller);
	/* Of what does not fit, nothing lies about that would be read as the log. */
	struct job *job = last_job();
	job->events->on_output(job->arg, "one\n", 4);
	job->events->on_output(job->arg, text, 100000);
	check_part(world, seq, CALL_PART_LOG, "one\n");
	job->events->on_output(job->arg, "two\n", 4);
	check_part(world, seq, CALL_PART_LOG, "one\ntwo\n");
	end_job(job, JOB_DONE, text);
	check_state(world, seq, CALL_FAILED);
	assert_int_equal(world->outcome, -EIO);
	check_part(world, seq, CALL_PART_RESULT_TEXT,
		"The result of the call could not be kept: No space left on device.\n");
	close(dir_fd);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

#define calls_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		calls_test(a_call_waits_runs_and_is_done),
		calls_test(every_end_of_a_job_is_a_state_and_an_outcome),
		calls_test(r39_every_call_has_an_id_of_its_own),
		calls_test(bad_requests_are_refused_and_say_why),
		calls_test(what_the_executor_refuses_is_refused),
		calls_test(a_request_that_never_became_complete_leaves_its_reason),
		calls_test(r29_a_sensitive_value_is_given_and_not_kept),
		calls_test(a10_warnings_are_in_the_log_and_hold_no_file_open),
		calls_test(a_reason_is_cut_between_characters),
		calls_test(who_does_not_watch_any_more_is_not_told),
		calls_test(cancelling_what_has_no_job_does_nothing),
		calls_test(a_finished_call_is_forgotten_with_its_files),
		calls_test(a_running_call_that_is_forgotten_is_cancelled_and_still_answers),
		calls_test(a_reserved_id_becomes_the_call_s),
		calls_test(an_id_is_for_one_call),
		calls_test(an_id_that_was_given_up_runs_nothing),
		calls_test(an_id_is_for_the_uid_that_reserved_it),
		calls_test(a_refusal_takes_the_reserved_id),
		calls_test(ids_that_cannot_be_reserved),
		calls_test(reserved_ids_are_limited),
		calls_test(a_caller_sees_its_own_calls),
		calls_test(root_sees_all_but_reads_its_own_result),
		calls_test(requests_that_wait_are_limited_in_bytes),
		calls_test(in_any_tree_the_nearest_wins_and_the_newest_of_equals),
		calls_test(a_reader_that_is_not_known_gets_the_newest_of_its_uid),
		calls_test(a_running_call_has_a_log_but_no_result),
		calls_test(a_call_made_below_a_host_is_nested),
		calls_test(of_one_process_only_so_many_stay),
		calls_test(of_many_processes_each_has_time_to_read),
		calls_test(calls_that_run_or_wait_are_never_dropped),
		calls_test(large_results_give_way),
		calls_test(a_full_disk_fails_the_call_and_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
