/* Jobs in real tool hosts: what each kind of tool, good or bad, comes to. */
#include "tests/unit/jobs.h"

/* ---- what tools return */

static void r4_the_minimal_tool_works(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "hello", "{\"name\":\"Ann\"}");
	assert_text(&outcome, "Hello, Ann!");
	assert_int_equal(outcome.end, JOB_DONE);
	assert_int_equal(outcome.starts, 1);
	assert_true(outcome.pid > 0);
}

static void r7_index_js_with_module_syntax_works(void **state)
{
	assert_call(*state, "esm_js", "{\"name\":\"b\"}", JOB_DONE, "a/b");
}

static void a19_index_js_is_a_module_whatever_package_json_says(void **state)
{
	assert_call(*state, "esm_js_commonjs_package", "{}", JOB_DONE,
		"index.js function esm_js_commonjs_package");
	assert_call(*state, "esm_js_module_package", "{}", JOB_DONE,
		"index.js function esm_js_module_package");
}

static void r7_commonjs_habits_load(void **state)
{
	assert_call(*state, "habits", "{}", JOB_DONE, "helper.js,index.js index.js 42");
}

static void a20_typescript_is_translated_and_modules_are_shared(void **state)
{
	assert_call(*state, "modules", "{}", JOB_DONE, "1 1 true from config red 3 awaited");
}

static void r100_a_class_has_no_execute(void **state)
{
	assert_call(*state, "class_based", "{}", JOB_FAILED,
		"index.ts has no named export \"execute\": it exports MyTool");
}

static void r101_a_command_line_program_has_no_execute(void **state)
{
	assert_call(*state, "cli", "{}", JOB_FAILED, "index.js has no named export \"execute\"");
}

static void r102_module_exports_and_a_default_do_not_work(void **state)
{
	assert_call(*state, "module_exports", "{}", JOB_FAILED, "it sets module.exports");
	assert_call(*state, "exports_execute", "{}", JOB_FAILED, "it sets module.exports");
	assert_call(*state, "default_only", "{}", JOB_FAILED, "a member of its default export");
	assert_call(*state, "default_function", "{}", JOB_FAILED,
		"index.ts has no named export \"execute\": it exports default");
	assert_call(*state, "no_function", "{}", JOB_FAILED, "is no function but string");
}

static void r97_a_broken_entry_fails_its_calls_and_says_where(void **state)
{
	assert_call(*state, "syntax_error", "{}", JOB_FAILED, "index.ts:2:");
	assert_call(*state, "import_throws", "{}", JOB_FAILED, "no database at import");
	assert_call(*state, "missing_import", "{}", JOB_FAILED, "nowhere");
	assert_call(*state, "import_exits", "{}", JOB_CRASHED, "process.exit, status 7");
}

static void r38_results_come_whole(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "values", "{\"value\":\"blocks\"}");
	assert_string_equal(outcome.result.json,
		"{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\",\"data\":"
		"\"AA==\",\"mimeType\":\"image/png\"},{\"type\":\"text\",\"text\":\"two\"}]}\n");
}

static void r44_is_error_is_a_failure(void **state)
{
	assert_call(*state, "values", "{\"value\":\"isError\"}", JOB_FAILED, "it failed");
}

static void a17_what_is_no_result_is_an_error(void **state)
{
	assert_call(*state, "values", "{\"value\":\"undefined\"}", JOB_FAILED, "undefined");
	assert_call(*state, "values", "{\"value\":\"null\"}", JOB_FAILED, "null");
	assert_call(*state, "values", "{\"value\":\"string\"}", JOB_FAILED, "plain");
	assert_call(
		*state, "values", "{\"value\":\"function\"}", JOB_FAILED, "returned a function");
	assert_call(*state, "values", "{\"value\":\"symbol\"}", JOB_FAILED, "returned a symbol");
}

static void r38_values_without_json_are_explained(void **state)
{
	assert_call(*state, "values", "{\"value\":\"bigint\"}", JOB_FAILED, "BigInt");
	assert_call(*state, "values", "{\"value\":\"cycle\"}", JOB_FAILED, "circular");
	assert_call(*state, "values", "{\"value\":\"toJSON\"}", JOB_FAILED, "no JSON for you");
}

static void r40_odd_characters_and_numbers_arrive(void **state)
{
	assert_call(*state, "values", "{\"value\":\"surrogate\"}", JOB_DONE,
		"a\xef\xbf\xbd"
		"b \\ud800 \xf0\x9f\x98\x80");
	assert_call(*state, "values", "{\"value\":\"huge\"}", JOB_DONE, "n");
	assert_call(*state, "values", "{\"value\":\"thenable\"}", JOB_DONE, "from a thenable");
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "values", "{\"value\":\"nul\"}");
	assert_int_equal(outcome.result.text_len, 4);
	assert_memory_equal(outcome.result.text, "a\0b\n", 4);
}

static void r38_a_result_that_is_too_large_or_deep_is_refused(void **state)
{
	assert_call(*state, "values", "{\"value\":\"large\"}", JOB_FAILED, "3.1 MiB of JSON");
	assert_call(*state, "values", "{\"value\":\"deep\"}", JOB_CRASHED, "depth");
	assert_call(*state, "values", "{\"value\":\"isError\"}", JOB_FAILED, "it failed");
}

/* ---- what tools get */

static void r37_execute_gets_exactly_four_arguments(void **state)
{
	assert_call(*state, "arguments", "{\"b\":1,\"a\":[\"x\",null]}", JOB_DONE,
		"4 string {\"b\":1,\"a\":[\"x\",null]} true false function");
}

static void r40_large_parameters_arrive(void **state)
{
	auto_free char *params = xcalloc(1, (1 << 20) + 64);
	int head = sprintf(params, "{\"text\":\"\\u00e9\\n\\\"");
	memset(params + head, 'x', 1 << 20);
	strcpy(params + head + (1 << 20), "\"}");
	assert_call(*state, "length", params, JOB_DONE, "1048579 \xc3\xa9\n\"xxxxx");
}

static void r84_the_tool_finds_its_own_directory_and_ids(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "whoami", "{}");
	assert_int_equal(outcome.end, JOB_DONE);
	assert_contains(outcome.result.text, "beside the entry 1");
	assert_contains(buf_str(&outcome.output), "to /dev/stdout");
}

static void r39_a_tool_runs_with_the_ids_of_its_caller(void **state)
{
	if (geteuid() != 0)
		skip();
	struct identity who = {
		.uid = 12345, .gid = 23456, .groups = { 23456, 34567 }, .group_count = 2
	};
	struct job_request request = { .who = &who };
	struct fail why = FAIL_INIT;
	auto_outcome struct outcome outcome;
	assert_non_null(
		submit_request(*state, &outcome, fixtures(), "whoami", "{}", &request, &why));
	run_until_done(*state);
	assert_text(&outcome,
		"12345 12345 23456 23456+34567 closed 1 0000000000000000 beside the entry 1");
}

static void r39_only_root_runs_tools_as_others(void **state)
{
	if (geteuid() == 0)
		skip();
	struct identity who = { .uid = geteuid() + 1, .gid = getegid() };
	struct job_request request = { .who = &who };
	struct fail why = FAIL_INIT;
	auto_outcome struct outcome outcome;
	assert_null(submit_request(*state, &outcome, fixtures(), "hello", "{}", &request, &why));
	assert_int_equal(why.code, -EACCES);
}

/* ---- progress and output */

static void r52_updates_come_while_the_tool_runs(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "updates", "{\"how\":\"two\"}");
	assert_string_equal(buf_str(&outcome.progress),
		"{\"content\":[{\"type\":\"text\",\"text\":\"one\"}]}\n"
		"{\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}\n");
	assert_true(outcome.end_ms - outcome.first_update_ms >= 60);
}

static void r52_an_update_before_blocking_work_comes_before_it(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "updates", "{\"how\":\"blocking\"}");
	assert_int_equal(outcome.updates, 1);
	assert_true(outcome.end_ms - outcome.first_update_ms >= 60);
}

static void r42_any_update_is_tolerated(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "updates", "{\"how\":\"odd\"}");
	assert_int_equal(outcome.end, JOB_DONE);
	assert_string_equal(
		buf_str(&outcome.progress), "1\n\"text\"\nnull\n{\"content\":[]}\n[1,[2]]\n");
}

static void r42_a_flood_of_updates_is_cut(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "updates", "{\"how\":\"flood\"}");
	assert_int_equal(outcome.end, JOB_DONE);
	assert_true(outcome.progress.len <= (1 << 20) + 100000);
	assert_contains(buf_str(&outcome.output), "limit of progress");
}

static void r103_what_a_tool_prints_is_no_result(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "prints", "{\"how\":\"streams\"}");
	assert_text(&outcome, "real");
	assert_string_equal(buf_str(&outcome.output),
		"to stdout\nto stderr\npartialfrom a child\nchild error\n");
}

static void t12_printed_messages_and_writes_to_the_socket_mean_nothing(void **state)
{
	assert_call(*state, "prints", "{\"how\":\"protocol\"}", JOB_DONE, "real");
	assert_call(*state, "prints", "{\"how\":\"descriptor\"}", JOB_DONE, "real");
	assert_call(*state, "prints", "{\"how\":\"descriptor\"}", JOB_DONE, "real");
}

static void t12_stdin_is_at_its_end(void **state)
{
	assert_call(*state, "prints", "{\"how\":\"stdin\"}", JOB_DONE, "stdin has 0 bytes");
}

static void t12_children_do_not_get_the_socket(void **state)
{
	/* 3 is the directory that ls reads. */
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "prints", "{\"how\":\"inherit\"}");
	assert_text(&outcome, "0 1 2 3");
}

static void r103_a_flood_of_output_is_cut(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "prints", "{\"how\":\"flood\"}");
	assert_int_equal(outcome.end, JOB_DONE);
	assert_in_range(outcome.output.len, (1 << 20) + 1, (1 << 20) + 200);
	assert_contains(buf_str(&outcome.output) + (1 << 20), "the rest is left out");
}

static void r103_all_output_comes_before_the_end(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "prints", "{\"how\":\"last\"}");
	assert_int_equal(outcome.output.len, 60000 + strlen("the last words"));
}

/* ---- failures */

static void r55_a_throw_is_told_with_its_place(void **state)
{
	assert_call(*state, "throws", "{\"how\":\"error\"}", JOB_FAILED,
		"the database is locked\n(thrown at index.ts:2)");
	assert_call(*state, "throws", "{\"how\":\"type\"}", JOB_FAILED, "TypeError: ");
	assert_call(*state, "throws", "{\"how\":\"string\"}", JOB_FAILED, "just a string");
	assert_call(*state, "throws", "{\"how\":\"null\"}", JOB_FAILED, "threw null");
	assert_call(*state, "throws", "{\"how\":\"object\"}", JOB_FAILED, "{\"code\":42}");
	assert_call(*state, "throws", "{\"how\":\"hostile\"}", JOB_FAILED, "an object");
	assert_call(*state, "throws", "{\"how\":\"\"}", JOB_FAILED, "Error without a message");
}

static void r55_an_end_of_the_process_costs_only_its_own_call(void **state)
{
	assert_call(*state, "throws", "{\"how\":\"exit\"}", JOB_CRASHED, "process.exit, status 3");
	assert_call(*state, "throws", "{\"how\":\"exit0\"}", JOB_CRASHED, "process.exit, status 0");
	assert_call(*state, "throws", "{\"how\":\"kill\"}", JOB_CRASHED, "signal 9 (Killed)");
	assert_call(
		*state, "throws", "{\"how\":\"stderr\"}", JOB_CRASHED, "cannot open the device");
	assert_call(*state, "throws", "{\"how\":\"none\"}", JOB_DONE, "pid");
}

static void r55_stray_errors_cost_only_their_own_call(void **state)
{
	assert_call(*state, "throws", "{\"how\":\"rejection\"}", JOB_FAILED, "nobody caught this");
	assert_call(*state, "throws", "{\"how\":\"timer\"}", JOB_FAILED, "database is locked");
	for (int i = 0; i < 3; i++)
		assert_call(*state, "throws", "{\"how\":\"late\"}", JOB_DONE, "fine");
	assert_call(*state, "throws", "{\"how\":\"none\"}", JOB_DONE, "pid");
}

static void t13_a_failing_call_runs_once(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "throws", "{\"how\":\"stderr\"}");
	const char *output = buf_str(&outcome.output);
	const char *first = strstr(output, "cannot open");
	assert_non_null(first);
	assert_null(strstr(first + 1, "cannot open"));
	assert_int_equal(outcome.starts, 1);
}

/* ---- stopping */

static void r41_cancelling_fires_the_signal(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome outcome;
	auto_free char *params =
		xasprintf("{\"ms\":60000,\"how\":\"polite\",\"file\":\"%s/reason\"}", world->dir);
	call_and_cancel(world, &outcome, "slow", params);
	auto_free char *path = xasprintf("%s/reason", world->dir);
	auto_buf struct buf reason = BUF_INIT(1000);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(io_read_all(fd, &reason), 0);
	assert_string_equal(buf_str(&reason), "AbortError: The call was cancelled");
	/* It stopped by itself, so its host is still there. */
	assert_int_equal(kill(outcome.pid, 0), 0);
}

static void t7_a_tool_that_ignores_the_signal_is_ended(void **state)
{
	static const char *const hows[] = { "sleep", "block", "spin", "stubborn" };
	for (size_t i = 0; i < 4; i++) {
		auto_outcome struct outcome outcome;
		auto_free char *params = xasprintf("{\"ms\":60000,\"how\":\"%s\"}", hows[i]);
		call_and_cancel(*state, &outcome, "slow", params);
		assert_gone(outcome.pid);
	}
}

static void t7_grandchildren_in_sessions_of_their_own_are_ended_too(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome outcome;
	auto_free char *path = xasprintf("%s/grandchild", world->dir);
	auto_free char *params =
		xasprintf("{\"ms\":60000,\"how\":\"family\",\"file\":\"%s\"}", path);
	call_and_cancel(world, &outcome, "slow", params);
	assert_gone(outcome.pid);
	assert_gone(read_pid(path));
}

static void t7_what_a_finished_call_left_running_is_ended(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	auto_free char *path = xasprintf("%s/left", world->dir);
	auto_free char *params = xasprintf("{\"ms\":300,\"how\":\"family\",\"file\":\"%s\"}", path);
	call(world, &first, "slow", params);
	assert_int_equal(first.end, JOB_DONE);
	pass_time(world, 300);
	assert_gone(read_pid(path));
	/* The host itself has nothing left in it, and takes the next call. */
	call(world, &second, "slow", "{\"ms\":1}");
	assert_int_equal(first.pid, second.pid);
}

static void t7_a_waiting_job_is_cancelled_at_once(void **state)
{
	auto_outcome struct outcome outcome;
	submit(*state, &outcome, "slow", "{\"ms\":60000}");
	executor_cancel(outcome.job);
	executor_cancel(outcome.job);
	assert_int_equal(outcome.ends, 0);
	run_until_done(*state);
	assert_int_equal(outcome.end, JOB_CANCELLED);
}

static void r41_a_job_times_out(void **state)
{
	struct job_request request = { .timeout_ms = 300 };
	struct fail why = FAIL_INIT;
	auto_outcome struct outcome outcome;
	assert_non_null(submit_request(
		*state, &outcome, fixtures(), "slow", "{\"ms\":60000}", &request, &why));
	run_until_done(*state);
	assert_int_equal(outcome.end, JOB_TIMED_OUT);
	assert_contains(outcome.result.text, "slow did not finish within 0.3 seconds");
}

/* ---- hosts */

static void assert_same_text(const struct outcome *a, const struct outcome *b, bool same)
{
	assert_int_equal(strcmp(a->result.text, b->result.text) == 0, same);
}

static struct world *limited_world(const struct executor_config *limits)
{
	struct world *world = new_world();
	struct executor_config config = *limits;
	make_world(world, &config);
	return world;
}

static void r76_a_tool_gets_exactly_the_environment_and_the_newest(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	struct world *world = limited_world(&config);
	auto_outcome struct outcome first, running, second;
	call(world, &first, "environment", "{}");
	assert_contains(first.result.text, "HOME,OFFICER_APIFY_TOKEN,PATH t0ken ");
	submit(world, &running, "slow", "{\"ms\":300}");
	pass_time(world, 100);
	auto_free char *path = xasprintf("PATH=%s", getenv("PATH"));
	const char *const env[] = { path, "OFFICER_APIFY_TOKEN=other", NULL };
	executor_set_env(world->executor, env);
	call(world, &second, "environment", "{}");
	assert_contains(second.result.text, "OFFICER_APIFY_TOKEN,PATH other ");
	assert_int_equal(running.ends, 1);
	assert_int_equal(running.end, JOB_DONE);
	free_world(world);
}

static void r97_a_host_stays_warm_and_begins_each_call_alike(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	call(world, &first, "state", "{\"how\":\"mess\"}");
	pass_time(world, 50);
	call(world, &second, "state", "{}");
	assert_int_equal(first.pid, second.pid);
	auto_free char *expected =
		xasprintf("%d 2 %s unset %s", (int)second.pid, world->dir, world->dir);
	assert_text(&second, expected);
}

static void r97_a_host_in_which_something_still_runs_is_not_used_again(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	call(world, &first, "state", "{\"how\":\"interval\"}");
	pass_time(world, 300);
	call(world, &second, "state", "{}");
	assert_int_not_equal(first.pid, second.pid);
	assert_gone(first.pid);
}

static void r104_a_changed_file_is_loaded_anew(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second, third;
	copy_tool(world, "habits");
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	call_copy(world, &first, "habits", "{}");
	pass_time(world, 60);
	call_copy(world, &second, "habits", "{}");
	assert_int_equal(first.pid, second.pid);
	assert_same_text(&first, &second, true);
	edit(world, "habits/helper.js", "s/2 [*] n/3 * n/");
	call_copy(world, &third, "habits", "{}");
	assert_int_equal(third.starts, 1);
	assert_contains(third.result.text, "helper.js,index.js index.js 63");
	assert_int_not_equal(first.pid, third.pid);
}

static void t8_a_slow_call_holds_up_no_other(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome slow, same, other;
	submit(world, &slow, "slow", "{\"ms\":1500}");
	submit(world, &same, "slow", "{\"ms\":1}");
	submit(world, &other, "hello", "{\"name\":\"Bob\"}");
	run_until_done(world);
	assert_true(same.end_ms < slow.end_ms);
	assert_true(other.end_ms < slow.end_ms);
	assert_text(&other, "Hello, Bob!");
}

static void t1_parallel_calls_get_their_own_results(void **state)
{
	struct world *world = *state;
	enum { COUNT = 200 };
	struct outcome *outcomes = xcalloc(COUNT, sizeof(*outcomes));
	for (size_t i = 0; i < COUNT; i++) {
		auto_free char *params = xasprintf("{\"name\":\"%zu\"}", i);
		auto_free char *id = xasprintf("call-%zu", i);
		struct job_request request = { .call_id = id };
		struct fail why = FAIL_INIT;
		assert_non_null(submit_request(
			world, &outcomes[i], fixtures(), "hello", params, &request, &why));
	}
	run_until_done(world);
	for (size_t i = 0; i < COUNT; i++) {
		auto_free char *expected = xasprintf("Hello, %zu!", i);
		assert_text(&outcomes[i], expected);
		assert_int_equal(outcomes[i].starts, 1);
		release(&outcomes[i]);
	}
	free(outcomes);
	struct executor_stats stats;
	executor_get_stats(world->executor, &stats);
	assert_int_equal(stats.jobs_running + stats.jobs_waiting, 0);
	assert_true(stats.hosts <= 17);
}

static unsigned count_cached(const struct world *world, uid_t uid)
{
	auto_free char *path = xasprintf("%s/cache/%u", world->dir, (unsigned)uid);
	auto_closedir DIR *dir = opendir(path);
	unsigned count = 0;
	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		count += strstr(entry->d_name, "js") != NULL;
	return count;
}

static void r97_a_prepared_tool_is_translated_and_not_run(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	struct world *world = limited_world(&config);
	auto_tool struct tool *modules = make_tool(fixtures(), "modules");
	auto_tool struct tool *exits = make_tool(fixtures(), "import_exits");
	auto_tool struct tool *broken = make_tool(fixtures(), "syntax_error");
	auto_tool struct tool *python = make_tool(fixtures(), "py_hello");
	struct tool *tools[] = { broken, exits, modules, modules, python };
	for (size_t i = 0; i < 5; i++)
		executor_prepare(world->executor, tools[i]);
	for (int i = 0; i < 100 && count_cached(world, geteuid()) < 4; i++)
		pass_time(world, 50);
	/* One of import_exits, which has not exited anything, and three of modules. */
	assert_int_equal(count_cached(world, geteuid()), 4);
	assert_call(world, "modules", "{}", JOB_DONE, "from config");
	assert_int_equal(count_cached(world, geteuid()), 4);
	/* Another uid's cache begins with what is there. */
	struct identity who = { .uid = 12345, .gid = 12345 };
	struct job_request request = { .who = &who };
	struct fail why = FAIL_INIT;
	if (geteuid() == 0) {
		struct outcome outcome;
		assert_non_null(submit_request(
			world, &outcome, fixtures(), "modules", "{}", &request, &why));
		run_until_done(world);
		assert_int_equal(outcome.end, JOB_DONE);
		assert_int_equal(count_cached(world, 12345), 4);
		release(&outcome);
	}
	free_world(world);
}

/* ---- limits; each with an executor of its own */

static void t17_a_nested_call_does_not_wait_for_the_one_that_made_it(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	config.hosts_max = 1;
	config.hosts_per_tool = 1;
	config.spares = 0;
	struct world *world = limited_world(&config);
	auto_outcome struct outcome outer, waiting, nested;
	submit(world, &outer, "slow", "{\"ms\":1500}");
	submit(world, &waiting, "slow", "{\"ms\":1}");
	struct job_request request = { .nested = true };
	struct fail why = FAIL_INIT;
	assert_non_null(
		submit_request(world, &nested, fixtures(), "slow", "{\"ms\":1}", &request, &why));
	run_until_done(world);
	assert_true(nested.end_ms < outer.end_ms);
	assert_true(outer.end_ms < waiting.end_ms);
	assert_int_equal(waiting.end, JOB_DONE);
	free_world(world);
}

static void t17_nesting_without_end_is_refused(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	config.hosts_max = 1;
	config.spares = 0;
	config.grace_ms = 50;
	struct world *world = limited_world(&config);
	struct outcome outcomes[8];
	for (size_t i = 0; i < 8; i++) {
		struct job_request request = { .nested = i > 0 };
		struct fail why = FAIL_INIT;
		assert_non_null(submit_request(
			world, &outcomes[i], fixtures(), "slow", "{\"ms\":700}", &request, &why));
	}
	run_until_done(world);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(outcomes[i].end, i < 5 ? JOB_DONE : JOB_CRASHED);
		if (i >= 5)
			assert_contains(outcomes[i].result.text, "nested too deeply");
		release(&outcomes[i]);
	}
	free_world(world);
}

static void a_host_that_uses_too_much_is_ended_and_told_so(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	config.memory_max = (uint64_t)512 << 20;
	config.processes_max = 50;
	config.spares = 0;
	struct world *world = limited_world(&config);
	assert_call(world, "memory", "{\"how\":\"buffer\"}", JOB_FAILED, "allocation failed");
	assert_call(world, "memory", "{\"how\":\"heap\"}", JOB_CRASHED,
		"ran out of memory: it and what it starts may use 512 MiB");
	assert_call(world, "memory", "{\"how\":\"child\"}", JOB_FAILED, "Command failed");
	assert_call(world, "memory", "{\"how\":\"children\"}", JOB_CRASHED,
		"ran out of memory: it and what it starts may use 512 MiB");
	assert_call(world, "memory", "{\"how\":\"processes\"}", JOB_CRASHED,
		"it had started more than 50 processes");
	assert_int_not_equal(system("pgrep -f 'sleep 6[4]' >/dev/null"), 0);
	assert_call(world, "memory", "{}", JOB_DONE, "0");
	free_world(world);
}

static void a_full_queue_is_busy(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	config.hosts_max = 1;
	config.queue_max = 2;
	config.spares = 0;
	struct world *world = limited_world(&config);
	struct outcome outcomes[4];
	struct fail why = FAIL_INIT;
	for (size_t i = 0; i < 4; i++) {
		struct job_request request = { .call_id = NULL };
		struct job *job = submit_request(
			world, &outcomes[i], fixtures(), "slow", "{\"ms\":1}", &request, &why);
		assert_int_equal(job != NULL, i < 3);
	}
	assert_int_equal(why.code, -EBUSY);
	run_until_done(world);
	for (size_t i = 0; i < 4; i++)
		release(&outcomes[i]);
	free_world(world);
}

static void idle_hosts_make_room_and_go(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	config.hosts_max = 1;
	config.spares = 0;
	config.idle_ms = 300;
	struct world *world = limited_world(&config);
	auto_outcome struct outcome first, second;
	call(world, &first, "state", "{}");
	pass_time(world, 50);
	call(world, &second, "hello", "{\"name\":\"x\"}");
	assert_int_not_equal(first.pid, second.pid);
	pass_time(world, 700);
	struct executor_stats stats;
	executor_get_stats(world->executor, &stats);
	assert_int_equal(stats.hosts, 0);
	assert_int_equal(stats.hosts_crashed, 0);
	assert_gone(second.pid);
	free_world(world);
}

static void wait_for_spares(struct world *world, unsigned count)
{
	struct executor_stats stats;
	for (int i = 0; i < 400; i++) {
		executor_get_stats(world->executor, &stats);
		if (stats.spares == count)
			return;
		pass_time(world, 50);
	}
	assert_int_equal(stats.spares, count);
}

static void a_spare_takes_the_first_call(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	struct world *world = limited_world(&config);
	wait_for_spares(world, 1);
	pass_time(world, 300);
	auto_outcome struct outcome outcome;
	call(world, &outcome, "hello", "{\"name\":\"x\"}");
	struct executor_stats stats;
	executor_get_stats(world->executor, &stats);
	assert_int_equal(stats.hosts_crashed, 0);
	/* The spare took it, and at most its successor has been started meanwhile. */
	assert_in_range(outcome.at_start.hosts_started, 1, 2);
	assert_int_equal(outcome.at_start.spares, outcome.at_start.hosts_started - 1);
	wait_for_spares(world, 1);
	free_world(world);
}

static void freeing_ends_what_runs_without_a_callback(void **state)
{
	(void)state;
	struct executor_config config;
	executor_config_defaults(&config);
	struct world *world = limited_world(&config);
	auto_outcome struct outcome running, waiting;
	submit(world, &running, "slow", "{\"ms\":60000}");
	for (int i = 0; i < 400 && running.updates == 0; i++)
		pass_time(world, 50);
	submit(world, &waiting, "slow", "{\"ms\":60000}");
	assert_int_equal(running.starts, 1);
	free_world(world);
	assert_int_equal(running.ends + waiting.ends, 0);
	assert_gone(running.pid);
}

/* ---- the table of a job's life */

static void every_event_in_every_state_of_a_job_is_sound(void **state)
{
	(void)state;
	for (int from = 0; from < JOB_STATES; from++) {
		for (int event = 0; event < JOB_EVENTS; event++) {
			struct job_step step =
				job_step((enum job_state)from, (enum job_event)event);
			bool ends = from != JOB_OVER && step.next == JOB_OVER;
			assert_int_equal(ends, step.action == JOB_DO_END);
			if (step.action == JOB_DO_NOTHING)
				assert_int_equal(step.next, from);
			/* Nothing goes back but a job that was not begun. */
			if ((int)step.next < from)
				assert_int_equal(step.action, JOB_DO_REQUEUE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r4_the_minimal_tool_works),
		cmocka_unit_test(r7_index_js_with_module_syntax_works),
		cmocka_unit_test(a19_index_js_is_a_module_whatever_package_json_says),
		cmocka_unit_test(r7_commonjs_habits_load),
		cmocka_unit_test(a20_typescript_is_translated_and_modules_are_shared),
		cmocka_unit_test(r100_a_class_has_no_execute),
		cmocka_unit_test(r101_a_command_line_program_has_no_execute),
		cmocka_unit_test(r102_module_exports_and_a_default_do_not_work),
		cmocka_unit_test(r97_a_broken_entry_fails_its_calls_and_says_where),
		cmocka_unit_test(r38_results_come_whole),
		cmocka_unit_test(r44_is_error_is_a_failure),
		cmocka_unit_test(a17_what_is_no_result_is_an_error),
		cmocka_unit_test(r38_values_without_json_are_explained),
		cmocka_unit_test(r40_odd_characters_and_numbers_arrive),
		cmocka_unit_test(r38_a_result_that_is_too_large_or_deep_is_refused),
		cmocka_unit_test(r37_execute_gets_exactly_four_arguments),
		cmocka_unit_test(r40_large_parameters_arrive),
		cmocka_unit_test(r84_the_tool_finds_its_own_directory_and_ids),
		cmocka_unit_test(r39_a_tool_runs_with_the_ids_of_its_caller),
		cmocka_unit_test(r39_only_root_runs_tools_as_others),
		cmocka_unit_test(r52_updates_come_while_the_tool_runs),
		cmocka_unit_test(r52_an_update_before_blocking_work_comes_before_it),
		cmocka_unit_test(r42_any_update_is_tolerated),
		cmocka_unit_test(r42_a_flood_of_updates_is_cut),
		cmocka_unit_test(r103_what_a_tool_prints_is_no_result),
		cmocka_unit_test(t12_printed_messages_and_writes_to_the_socket_mean_nothing),
		cmocka_unit_test(t12_stdin_is_at_its_end),
		cmocka_unit_test(t12_children_do_not_get_the_socket),
		cmocka_unit_test(r103_a_flood_of_output_is_cut),
		cmocka_unit_test(r103_all_output_comes_before_the_end),
		cmocka_unit_test(r55_a_throw_is_told_with_its_place),
		cmocka_unit_test(r55_an_end_of_the_process_costs_only_its_own_call),
		cmocka_unit_test(r55_stray_errors_cost_only_their_own_call),
		cmocka_unit_test(t13_a_failing_call_runs_once),
		cmocka_unit_test(r41_cancelling_fires_the_signal),
		cmocka_unit_test(t7_a_tool_that_ignores_the_signal_is_ended),
		cmocka_unit_test(t7_grandchildren_in_sessions_of_their_own_are_ended_too),
		cmocka_unit_test(t7_what_a_finished_call_left_running_is_ended),
		cmocka_unit_test(t7_a_waiting_job_is_cancelled_at_once),
		cmocka_unit_test(r41_a_job_times_out),
		cmocka_unit_test(r76_a_tool_gets_exactly_the_environment_and_the_newest),
		cmocka_unit_test(r97_a_host_stays_warm_and_begins_each_call_alike),
		cmocka_unit_test(r97_a_host_in_which_something_still_runs_is_not_used_again),
		cmocka_unit_test(r104_a_changed_file_is_loaded_anew),
		cmocka_unit_test(r97_a_prepared_tool_is_translated_and_not_run),
		cmocka_unit_test(t8_a_slow_call_holds_up_no_other),
		cmocka_unit_test(t1_parallel_calls_get_their_own_results),
		cmocka_unit_test(t17_a_nested_call_does_not_wait_for_the_one_that_made_it),
		cmocka_unit_test(t17_nesting_without_end_is_refused),
		cmocka_unit_test(a_host_that_uses_too_much_is_ended_and_told_so),
		cmocka_unit_test(a_full_queue_is_busy),
		cmocka_unit_test(idle_hosts_make_room_and_go),
		cmocka_unit_test(a_spare_takes_the_first_call),
		cmocka_unit_test(freeing_ends_what_runs_without_a_callback),
		cmocka_unit_test(every_event_in_every_state_of_a_job_is_sound),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
