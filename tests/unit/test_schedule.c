/* Which call goes to which host: warm ones, spares, limits, nested calls; and the table of a job. */
#include "tests/unit/jobs.h"

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
	struct identity who = { .uid = 12345, .gid = 12345, .place = place_here() };
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
