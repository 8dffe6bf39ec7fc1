/* Tools in Python and bash, in their real hosts (A9). */
#include "tests/unit/jobs.h"

/* ---- Python */

static void a9_a_python_tool_works(void **state)
{
	assert_call(*state, "py_hello", "{\"name\":\"Ann\"}", JOB_DONE, "Hello, Ann!");
	assert_call(*state, "py_async", "{\"a\":\"x\"}", JOB_DONE, "two parameters are enough: x");
}

static void a9_python_results(void **state)
{
	assert_call(*state, "py_values", "{\"how\":\"text\"}", JOB_DONE, "just a text");
	assert_call(*state, "py_values", "{\"how\":\"async\"}", JOB_DONE, "from a coroutine");
	assert_call(*state, "py_values", "{\"how\":\"helper\"}", JOB_DONE, "42");
	assert_call(*state, "py_values", "{\"how\":\"surrogate\"}", JOB_DONE, "\xf0\x9f\x98\x80");
	assert_call(*state, "py_values", "{\"how\":\"none\"}", JOB_FAILED, "undefined");
	assert_call(*state, "py_values", "{\"how\":\"nan\"}", JOB_FAILED, "Out of range float");
	assert_call(*state, "py_values", "{\"how\":\"set\"}", JOB_FAILED, "set is not JSON");
}

static void a9_python_errors_name_their_place(void **state)
{
	assert_call(*state, "py_values", "{\"how\":\"raise\"}", JOB_FAILED,
		"ValueError: the table is missing\n(raised at index.py:");
	assert_call(*state, "py_broken", "{}", JOB_FAILED, "(raised at index.py:1)");
	assert_call(*state, "py_no_execute", "{}", JOB_FAILED, "has no function \"execute\"");
	assert_call(*state, "py_values", "{\"how\":\"exit\"}", JOB_CRASHED, "sys.exit, 4");
	assert_call(*state, "py_values", "{\"how\":\"kill\"}", JOB_CRASHED, "exit status 5");
	assert_call(*state, "py_values", "{\"how\":\"text\"}", JOB_DONE, "just a text");
}

static void a9_python_prints_to_the_log(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "py_values", "{\"how\":\"print\"}");
	assert_text(&outcome, "stdin has 0");
	assert_string_equal(buf_str(&outcome.output), "to stdout\nto stderr\nfrom a child\n");
}

static void a9_python_updates(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "py_values", "{\"how\":\"updates\"}");
	assert_string_equal(buf_str(&outcome.progress),
		"{\"content\":[{\"type\":\"text\",\"text\":\"one\"}]}\n"
		"{\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}\n");
	assert_contains(buf_str(&outcome.output), "on_update: a value that is no JSON");
}

static void a9_a_python_host_stays_warm(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	pass_time(world, 100);
	call(world, &first, "py_values", "{\"how\":\"state\"}");
	pass_time(world, 50);
	call(world, &second, "py_values", "{\"how\":\"state\"}");
	assert_int_equal(first.pid, second.pid);
	auto_free char *end = xasprintf(" %s None\n", world->dir);
	assert_contains(first.result.text, end);
	assert_contains(second.result.text, end);
}

static void a9_a_python_thread_that_is_left_costs_the_host(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	call(world, &first, "py_values", "{\"how\":\"thread\"}");
	pass_time(world, 300);
	call(world, &second, "py_values", "{\"how\":\"thread\"}");
	assert_int_not_equal(first.pid, second.pid);
}

static void a9_a_changed_python_helper_is_loaded_anew(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome first, second;
	copy_tool(world, "py_values");
	call_copy(world, &first, "py_values", "{\"how\":\"helper\"}");
	edit(world, "py_values/helper.py", "s/2 [*] number/3 * number/");
	pass_time(world, 50);
	call_copy(world, &second, "py_values", "{\"how\":\"helper\"}");
	assert_text(&first, "42");
	assert_text(&second, "63");
}

static void r41_python_gets_the_signal(void **state)
{
	struct world *world = *state;
	auto_outcome struct outcome outcome, ignored;
	auto_free char *path = xasprintf("%s/reason", world->dir);
	auto_free char *params = xasprintf("{\"how\":\"wait\",\"file\":\"%s\"}", path);
	call_and_cancel(world, &outcome, "py_values", params);
	auto_buf struct buf text = BUF_INIT(1000);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(io_read_all(fd, &text), 0);
	assert_string_equal(buf_str(&text), "True The call was cancelled 1");
	call_and_cancel(world, &ignored, "py_values", "{\"how\":\"ignore\"}");
	assert_gone(ignored.pid);
}

/* ---- bash */

static void a9_a_bash_tool_works(void **state)
{
	assert_call(
		*state, "sh_tool", "{\"how\":\"text\",\"name\":\"Ann\"}", JOB_DONE, "Hello, Ann!");
	assert_call(*state, "sh_tool", "{\"how\":\"json\",\"x y\":[1]}", JOB_DONE,
		"{\"how\":\"json\",\"x y\":[1]}");
	assert_call(*state, "sh_tool",
		"{\"how\":\"types\",\"number\":1.5,\"flag\":true,\"list\":[1,\"a\"],\"nothing\":null,"
		"\"bad-name\":1}",
		JOB_DONE, "1.5 true [1,\"a\"] unset");
	assert_call(*state, "sh_tool", "{\"how\":\"where\"}", JOB_DONE,
		"sh_tool\ncall-1\nfound\nclean");
}

static void a9_bash_parameters_are_data(void **state)
{
	assert_call(*state, "sh_tool",
		"{\"how\":\"quotes\",\"name\":\"a'b\\\"$(echo no)\\\\n`id`\\n$HOME\"}", JOB_DONE,
		"a'b\"$(echo no)\\n`id`\n$HOME");
	assert_call(*state, "sh_tool", "{\"how\":\"exported\",\"name\":\"x\"}", JOB_DONE, "x");
}

static void a9_a_large_bash_parameter_does_not_stop_the_script_from_starting_others(void **state)
{
	auto_free char *params = xcalloc(1, (1 << 20) + 64);
	int head = sprintf(params, "{\"how\":\"long\",\"name\":\"");
	memset(params + head, 'x', 1 << 20);
	strcpy(params + head + (1 << 20), "\"}");
	assert_call(*state, "sh_tool", params, JOB_DONE, "1048576\nhidden");
}

static void a21_a_sensitive_bash_parameter_is_in_no_environment(void **state)
{
	struct world *world = *state;
	auto_tool struct tool *tool = make_tool(fixtures(), "sh_tool");
	tool->inputs = xcalloc(1, sizeof(*tool->inputs));
	tool->inputs[0].name = xstrdup("token");
	tool->inputs[0].description = xstrdup("");
	tool->inputs[0].sensitive = true;
	tool->input_count = 1;
	struct job_request request = { .tool = tool };
	struct fail why = FAIL_INIT;
	auto_outcome struct outcome outcome;
	assert_non_null(submit_request(world, &outcome, fixtures(), "sh_tool",
		"{\"how\":\"secret\",\"token\":\"s3cret\"}", &request, &why));
	run_until_done(world);
	assert_text(&outcome, "6\n0\nhidden");
}

static void a9_a_bash_tool_fails_by_its_status(void **state)
{
	assert_call(*state, "sh_tool", "{\"how\":\"fail\"}", JOB_FAILED,
		"partial\nno such table\n(exit status 3)");
	assert_call(*state, "sh_tool", "{\"how\":\"silent\"}", JOB_FAILED,
		"The tool failed without a word (exit status 1).");
	assert_call(*state, "sh_tool", "{\"how\":\"large\"}", JOB_FAILED, "printed more than");
}

static void a9_bash_updates_and_log(void **state)
{
	auto_outcome struct outcome updates, log;
	call(*state, &updates, "sh_tool", "{\"how\":\"updates\"}");
	assert_string_equal(buf_str(&updates.progress),
		"{\"content\":[{\"type\":\"text\",\"text\":\"one\"}]}\n"
		"{\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}\n");
	call(*state, &log, "sh_tool", "{\"how\":\"stderr\"}");
	assert_text(&log, "fine");
	assert_string_equal(buf_str(&log.output), "to the log\n");
}

static void t7_a_bash_tool_is_not_kept_by_what_it_left(void **state)
{
	auto_outcome struct outcome outcome;
	call(*state, &outcome, "sh_tool", "{\"how\":\"background\"}");
	assert_text(&outcome, "at once");
}

static void t7_a_bash_tool_is_cancelled_with_its_children(void **state)
{
	auto_outcome struct outcome outcome;
	call_and_cancel(*state, &outcome, "sh_tool", "{\"how\":\"ignore\"}");
	pass_time(*state, 200);
	assert_int_not_equal(system("pgrep -f 'sleep 6[23]' >/dev/null"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a9_a_python_tool_works),
		cmocka_unit_test(a9_python_results),
		cmocka_unit_test(a9_python_errors_name_their_place),
		cmocka_unit_test(a9_python_prints_to_the_log),
		cmocka_unit_test(a9_python_updates),
		cmocka_unit_test(a9_a_python_host_stays_warm),
		cmocka_unit_test(a9_a_python_thread_that_is_left_costs_the_host),
		cmocka_unit_test(a9_a_changed_python_helper_is_loaded_anew),
		cmocka_unit_test(r41_python_gets_the_signal),
		cmocka_unit_test(a9_a_bash_tool_works),
		cmocka_unit_test(a9_bash_parameters_are_data),
		cmocka_unit_test(
			a9_a_large_bash_parameter_does_not_stop_the_script_from_starting_others),
		cmocka_unit_test(a21_a_sensitive_bash_parameter_is_in_no_environment),
		cmocka_unit_test(a9_a_bash_tool_fails_by_its_status),
		cmocka_unit_test(a9_bash_updates_and_log),
		cmocka_unit_test(t7_a_bash_tool_is_not_kept_by_what_it_left),
		cmocka_unit_test(t7_a_bash_tool_is_cancelled_with_its_children),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
