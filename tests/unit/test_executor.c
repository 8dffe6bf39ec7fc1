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
	struct identity who = { .uid = 12345,
		.gid = 23456,
		.groups = { 23456, 34567 },
		.group_count = 2,
		.place = place_here() };
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
	struct identity who = { .uid = geteuid() + 1, .gid = getegid(), .place = place_here() };
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
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
