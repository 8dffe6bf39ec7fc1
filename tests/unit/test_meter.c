#include "core/running/meter.h"
#include "tests/unit/scratch.h"

static void note(struct meter *meter, const char *name, enum call_state state, int64_t waited_ms,
	int64_t took_ms)
{
	auto_free char *copy = xstrdup(name);
	struct tool tool = { .name = copy };
	const struct call call = { .tool = &tool,
		.state = state,
		.created_ms = 1000,
		.started_ms = state == CALL_REFUSED ? 0 : 1000 + waited_ms,
		.changed_ms = 1000 + took_ms };
	meter_note(meter, &call);
}

static const struct meter_tool *find(const struct meter *meter, const char *name)
{
	const struct meter_tool *tool;
	for (size_t at = 0; (tool = meter_next(meter, &at));)
		if (strcmp(tool->name, name) == 0)
			return tool;
	return NULL;
}

static void a_call_is_in_the_first_class_that_it_fits(void **state)
{
	(void)state;
	struct meter meter = METER_INIT;
	note(&meter, "a", CALL_DONE, 0, 5);
	note(&meter, "a", CALL_DONE, 5, 6);
	note(&meter, "a", CALL_FAILED, 600000, 600000);
	note(&meter, "a", CALL_TIMED_OUT, 600001, 600001);
	const struct meter_tool *tool = find(&meter, "a");
	assert_int_equal(tool->ended[CALL_DONE], 2);
	assert_int_equal(tool->ended[CALL_FAILED], 1);
	assert_int_equal(tool->took.in_class[0], 1);
	assert_int_equal(tool->took.in_class[1], 1);
	assert_int_equal(tool->took.in_class[METER_CLASSES - 1], 1);
	assert_int_equal(tool->took.count, 4);
	assert_int_equal(tool->took.sum_ms, 5 + 6 + 600000 + 600001);
	assert_int_equal(meter.waited.in_class[0], 2);
	assert_int_equal(meter.waited.count, 4);
	meter_release(&meter);
}

static void what_has_not_run_took_no_time_and_a_clock_set_back_none_either(void **state)
{
	(void)state;
	struct meter meter = METER_INIT;
	note(&meter, "a", CALL_REFUSED, 0, 50);
	assert_int_equal(find(&meter, "a")->ended[CALL_REFUSED], 1);
	assert_int_equal(find(&meter, "a")->took.count, 0);
	note(&meter, "a", CALL_DONE, -500, -200);
	assert_int_equal(find(&meter, "a")->took.sum_ms, 0);
	assert_int_equal(meter.waited.sum_ms, 0);
	meter_release(&meter);
}

static void too_many_tools_are_counted_together(void **state)
{
	(void)state;
	struct meter meter = METER_INIT;
	char name[32];
	for (int i = 0; i < METER_TOOLS_MAX + 50; i++) {
		snprintf(name, sizeof(name), "tool_%d", i);
		note(&meter, name, CALL_DONE, 0, 1);
	}
	assert_int_equal(meter.by_name.count, METER_TOOLS_MAX + 1);
	assert_int_equal(find(&meter, METER_OTHERS)->ended[CALL_DONE], 50);
	note(&meter, "tool_0", CALL_DONE, 0, 1);
	assert_int_equal(find(&meter, "tool_0")->ended[CALL_DONE], 2);
	meter_release(&meter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_in_the_first_class_that_it_fits),
		cmocka_unit_test(what_has_not_run_took_no_time_and_a_clock_set_back_none_either),
		cmocka_unit_test(too_many_tools_are_counted_together),
	};
	return cmocka_run_group_tests_name("meter", tests, NULL, NULL);
}
