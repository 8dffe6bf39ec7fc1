/* The values of sensitive inputs, out of whole texts and out of streams cut anywhere. */
#include "core/running/scrub.h"
#include "tests/unit/jobs.h"

static struct tool *tool_with_secrets(void)
{
	static const char *const names[] = { "token", "password", "pin", "plain" };
	struct tool *tool = tool_new();
	tool->inputs = xcalloc(4, sizeof(*tool->inputs));
	for (size_t i = 0; i < 4; i++) {
		tool->inputs[i].name = xstrdup(names[i]);
		tool->inputs[i].description = xstrdup("");
		tool->inputs[i].sensitive = i < 3;
	}
	tool->input_count = 4;
	return tool;
}

static struct scrub *make(const char *params)
{
	auto_tool struct tool *tool = tool_with_secrets();
	auto_json json_t *value = json_loads(params, 0, NULL);
	return scrub_new(tool, value);
}

static void assert_scrubbed(const char *params, const char *text, const char *expected)
{
	struct scrub *scrub = make(params);
	auto_buf struct buf whole = BUF_INIT(10000);
	assert_int_equal(scrub_text(scrub, text, strlen(text), &whole), 0);
	assert_string_equal(buf_str(&whole), expected);
	for (size_t step = 1; step <= strlen(text); step++) {
		auto_buf struct buf out = BUF_INIT(10000);
		for (size_t at = 0; at < strlen(text); at += step) {
			size_t len = strlen(text) - at < step ? strlen(text) - at : step;
			assert_int_equal(scrub_stream(scrub, text + at, len, &out), 0);
		}
		assert_int_equal(scrub_flush(scrub, &out), 0);
		assert_string_equal(buf_str(&out), expected);
	}
	scrub_free(scrub);
}

static void r29_each_sensitive_value_is_hidden(void **state)
{
	(void)state;
	static const char params[] =
		"{\"token\":\"s3cret\",\"password\":\"s3cret-longer\",\"pin\":12345,\"plain\":\"open\"}";
	assert_scrubbed(params, "nothing here", "nothing here");
	assert_scrubbed(params, "s3cret", "[sensitive]");
	assert_scrubbed(params, "a s3crets3cret b", "a [sensitive][sensitive] b");
	assert_scrubbed(
		params, "s3cret-longer and s3cret-long", "[sensitive] and [sensitive]-long");
	assert_scrubbed(params, "ss3cres3cret s3cre", "ss3cre[sensitive] s3cre");
	assert_scrubbed(params, "pin 12345, open", "pin [sensitive], open");
}

static void r29_a_value_is_hidden_as_it_stands_in_json_too(void **state)
{
	(void)state;
	assert_scrubbed("{\"token\":\"a\\\"b\\nc\"}", "{\"t\":\"a\\\"b\\nc\"} a\"b\nc",
		"{\"t\":\"[sensitive]\"} [sensitive]");
}

static void r29_json_stays_json(void **state)
{
	(void)state;
	struct scrub *scrub = make("{\"token\":\"s3cret\",\"pin\":12345}");
	auto_json json_t *value =
		json_loads("{\"a s3cret\":[12345,\"s3cret!\",1,null,true,1.5]}", 0, NULL);
	auto_json json_t *scrubbed = scrub_value(scrub, value);
	auto_free char *text = json_dumps(scrubbed, JSON_COMPACT);
	assert_string_equal(
		text, "{\"a [sensitive]\":[\"[sensitive]\",\"[sensitive]!\",1,null,true,1.5]}");
	auto_json json_t *same = scrub_value(NULL, value);
	assert_ptr_equal(same, value);
	scrub_free(scrub);
}

static void r29_what_is_too_short_or_absent_is_not_looked_for(void **state)
{
	(void)state;
	assert_null(make("{}"));
	assert_null(make("{\"plain\":\"visible\"}"));
	assert_null(make("{\"token\":\"abc\",\"password\":\"\",\"pin\":null}"));
	assert_scrubbed("{\"token\":\"abc\"}", "abc", "abc");
}

/* ---- in a job */

static void call_with_secret(struct world *world, struct outcome *outcome, const char *how)
{
	auto_tool struct tool *tool = make_tool(fixtures(), "leaks");
	tool->inputs = xcalloc(1, sizeof(*tool->inputs));
	tool->inputs[0].name = xstrdup("token");
	tool->inputs[0].description = xstrdup("");
	tool->inputs[0].sensitive = true;
	tool->input_count = 1;
	struct job_request request = { .tool = tool };
	struct fail why = FAIL_INIT;
	auto_free char *params = xasprintf("{\"how\":\"%s\",\"token\":\"s3cr\\\"et\"}", how);
	assert_non_null(
		submit_request(world, outcome, fixtures(), "leaks", params, &request, &why));
	run_until_done(world);
	assert_null(strstr(buf_str(&outcome->output), "s3cr"));
	assert_null(strstr(buf_str(&outcome->progress), "s3cr"));
	if (outcome->result.is_error) {
		assert_null(strstr(outcome->result.json, "s3cr"));
		assert_null(strstr(outcome->result.text, "s3cr"));
	}
}

static void r29_a_sensitive_value_is_in_no_log_progress_or_result(void **state)
{
	static const char *const hows[] = { "throws", "error", "crashes", "exits" };
	for (size_t i = 0; i < 4; i++) {
		auto_outcome struct outcome outcome;
		call_with_secret(*state, &outcome, hows[i]);
		assert_true(outcome.result.is_error);
		assert_contains(buf_str(&outcome.output), "token is [sensitive]!");
		assert_contains(buf_str(&outcome.progress), "using [sensitive]");
	}
	auto_outcome struct outcome outcome;
	call_with_secret(*state, &outcome, "returns");
	assert_text(&outcome, "the token is [sensitive]");
	assert_contains(buf_str(&outcome.output), "and its end: [sensitive]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r29_each_sensitive_value_is_hidden),
		cmocka_unit_test(r29_a_value_is_hidden_as_it_stands_in_json_too),
		cmocka_unit_test(r29_json_stays_json),
		cmocka_unit_test(r29_what_is_too_short_or_absent_is_not_looked_for),
		cmocka_unit_test(r29_a_sensitive_value_is_in_no_log_progress_or_result),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
