#include <errno.h>

#include "core/base/utf8.h"
#include "core/tools/answer.h"
#include "tests/unit/golden.h"

#define OUT_MAX (32 * 1024 * 1024)

static struct tool *tool_of(const char *inputs)
{
	auto_json json_t *json =
		json_pack("{s:s,s:o}", "name", "hello", "inputs", json_loads(inputs, 0, NULL));
	return tooljson_read(json);
}

static struct buf result_of(enum arguments_show show, bool failed, const char *text, size_t len)
{
	auto_tool struct tool *tool = tool_of("[{\"name\":\"name\"}]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	arguments.show = show;
	struct buf out = BUF_INIT(OUT_MAX);
	assert_int_equal(
		answer_result(&arguments, failed, text, len, "calls/7/result.txt", &out), 0);
	arguments_release(&arguments);
	return out;
}

static void expect_result(
	enum arguments_show show, bool failed, const char *text, const char *wanted)
{
	auto_buf struct buf out = result_of(show, failed, text, strlen(text));
	assert_string_equal(buf_str(&out), wanted);
}

static void the_first_line_says_how_it_ended_and_where_the_text_goes(void **state)
{
	(void)state;
	expect_result(ARGUMENTS_BOUNDED, false, "Hello\n", "0 1 0\nHello\n");
	expect_result(ARGUMENTS_BOUNDED, true, "no such user\n", "1 2 0\nno such user\n");
	expect_result(ARGUMENTS_FULL, false, "Hello\n", "0 1 0\nHello\n");
	expect_result(ARGUMENTS_FULL, true, "no\n", "1 2 0\nno\n");
	expect_result(ARGUMENTS_BOUNDED, false, "", "0 1 0\n");
}

static void json_goes_to_standard_output_also_where_the_tool_failed(void **state)
{
	(void)state;
	expect_result(ARGUMENTS_JSON, true, "{\"isError\":true}\n", "1 1 0\n{\"isError\":true}\n");
	expect_result(ARGUMENTS_JSON, false, "{\"content\":[]}\n", "0 1 0\n{\"content\":[]}\n");
}

static void notes_come_before_the_text(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[{\"name\":\"name\"}]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	buf_puts(&arguments.notes, "unknown a\nunknown b\n");
	auto_buf struct buf out = BUF_INIT(OUT_MAX);
	assert_int_equal(answer_result(&arguments, false, "Hello\n", 6, "result.txt", &out), 0);
	assert_string_equal(buf_str(&out), "0 1 2\nunknown a\nunknown b\nHello\n");
	arguments_release(&arguments);
}

static size_t count_lines(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/* What is shown of a text that is too long, behind the first line; the notice is checked. */
static struct buf cut_of(const char *text, size_t len)
{
	auto_buf struct buf out = result_of(ARGUMENTS_BOUNDED, false, text, len);
	struct buf body = BUF_INIT(OUT_MAX);
	buf_puts(&body, strchr(buf_str(&out), '\n') + 1);
	assert_true(body.len <= ANSWER_SIZE_MAX);
	assert_true(count_lines(buf_str(&body)) <= ANSWER_LINES_MAX);
	assert_int_equal(utf8_valid_len(body.data, body.len), body.len);
	char *notice = strstr(buf_str(&body), "\n[cut: ");
	assert_non_null(notice);
	auto_free char *ending = xasprintf(" of %zu bytes; the whole text is in "
					   "hello/calls/7/result.txt; a call with --full prints "
					   "all]\n",
		len);
	assert_string_equal(strstr(notice, " of "), ending);
	size_t shown = strtoul(notice + strlen("\n[cut: these are the first "), NULL, 10);
	assert_memory_equal(body.data, text, shown);
	assert_true((size_t)(notice - body.data) + 1 - shown <= 1);
	body.len = shown;
	return body;
}

static struct buf repeat(const char *text, size_t count)
{
	struct buf out = BUF_INIT(OUT_MAX);
	for (size_t i = 0; i < count; i++)
		buf_puts(&out, text);
	return out;
}

static void a_text_of_too_many_lines_is_cut_between_two(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("x\n", ANSWER_LINES_MAX);
	auto_buf struct buf shown = result_of(ARGUMENTS_BOUNDED, false, whole.data, whole.len);
	assert_int_equal(shown.len, whole.len + strlen("0 1 0\n"));
	auto_buf struct buf more = repeat("x\n", ANSWER_LINES_MAX + 1);
	auto_buf struct buf cut = cut_of(more.data, more.len);
	assert_int_equal(cut.len, 2 * (ANSWER_LINES_MAX - 2));
	buf_puts(&whole, "y");
	auto_buf struct buf open_end = cut_of(whole.data, whole.len);
	assert_int_equal(open_end.len, 2 * (ANSWER_LINES_MAX - 2));
}

static void a_text_of_too_many_bytes_is_cut_between_lines(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("0123456789012345678901234567890123456789\n", 2000);
	auto_buf struct buf cut = cut_of(whole.data, whole.len);
	assert_int_equal(cut.len % 41, 0);
	assert_true(cut.len > ANSWER_SIZE_MAX - 2048);
}

static void a_text_of_one_line_is_cut_between_characters(void **state)
{
	(void)state;
	static const char *const characters[] = { "x", "\xc3\xa9", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80" };
	for (size_t i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
		for (size_t shift = 0; shift < 4; shift++) {
			auto_buf struct buf whole = repeat("a", shift);
			auto_buf struct buf more = repeat(characters[i], 60000);
			buf_puts(&whole, buf_str(&more));
			auto_buf struct buf cut = cut_of(whole.data, whole.len);
			assert_true(cut.len > ANSWER_SIZE_MAX - 2048);
		}
	}
}

static void a_short_first_line_does_not_cost_the_rest(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("title\n", 1);
	for (size_t i = 0; i < 100000; i++)
		buf_putc(&whole, 'x');
	auto_buf struct buf cut = cut_of(whole.data, whole.len);
	assert_true(cut.len > ANSWER_SIZE_MAX - 2048);
}

static void the_limit_itself_is_shown_whole(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("x", ANSWER_SIZE_MAX);
	auto_buf struct buf shown = result_of(ARGUMENTS_BOUNDED, false, whole.data, whole.len);
	assert_int_equal(shown.len, whole.len + strlen("0 1 0\n"));
}

static void bytes_that_are_no_utf8_are_cut_as_well(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("\x80", 60000);
	auto_buf struct buf out = result_of(ARGUMENTS_BOUNDED, false, whole.data, whole.len);
	assert_true(out.len <= ANSWER_SIZE_MAX && out.len > ANSWER_SIZE_MAX - 2048);
}

static void full_and_json_are_never_cut(void **state)
{
	(void)state;
	auto_buf struct buf whole = repeat("0123456789\n", 500000);
	auto_buf struct buf full = result_of(ARGUMENTS_FULL, false, whole.data, whole.len);
	assert_int_equal(full.len, whole.len + strlen("0 1 0\n"));
	auto_buf struct buf json = result_of(ARGUMENTS_JSON, false, whole.data, whole.len);
	assert_int_equal(json.len, whole.len + strlen("0 1 0\n"));
}

static void the_notice_does_not_offer_an_option_that_is_the_tools(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[{\"name\":\"full\"}]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	auto_buf struct buf whole = repeat("x", 60000);
	auto_buf struct buf out = BUF_INIT(OUT_MAX);
	assert_int_equal(
		answer_result(&arguments, false, whole.data, whole.len, "result.txt", &out), 0);
	assert_non_null(strstr(out.data, "is in hello/result.txt]\n"));
	arguments_release(&arguments);
}

static struct buf refusal_of(int code, const char *text)
{
	auto_tool struct tool *tool = tool_of("[{\"name\":\"name\"}]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	struct fail why = FAIL_INIT;
	fail_set(&why, code, "%s", text);
	struct buf out = BUF_INIT(OUT_MAX);
	assert_int_equal(answer_refused(tool, &arguments, &why, &out), 0);
	arguments_release(&arguments);
	return out;
}

static void a_bad_request_is_answered_with_the_usage(void **state)
{
	(void)state;
	auto_buf struct buf line = refusal_of(-EINVAL, "--name needs a value");
	assert_string_equal(buf_str(&line), "2 2 0\n"
					    "hello/run: --name needs a value\n"
					    "usage: hello/run --name STRING\n"
					    "`hello/run --help` says more\n");
	auto_buf struct buf lines = refusal_of(-EINVAL, "1 parameter:\n  name: missing\n");
	assert_string_equal(buf_str(&lines), "2 2 0\n"
					     "hello/run: 1 parameter:\n  name: missing\n"
					     "usage: hello/run --name STRING\n"
					     "`hello/run --help` says more\n");
}

static void what_is_not_the_requests_fault_is_answered_without(void **state)
{
	(void)state;
	auto_buf struct buf out = refusal_of(-EBUSY, "too many calls wait");
	assert_string_equal(buf_str(&out), "2 2 0\nhello/run: too many calls wait\n");
}

static void help_goes_to_standard_output(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[{\"name\":\"name\"}]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	auto_buf struct buf out = BUF_INIT(OUT_MAX);
	assert_int_equal(answer_help(tool, &arguments, &out), 0);
	assert_int_equal(strncmp(out.data, "0 1 0\nusage: hello/run --name STRING\n", 37), 0);
	arguments_release(&arguments);
}

static void what_does_not_fit_is_an_error_and_never_a_shorter_text(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("[]");
	struct arguments arguments;
	arguments_init(&arguments, tool);
	auto_buf struct buf out = BUF_INIT(8);
	assert_int_equal(answer_result(&arguments, false, "text", 4, "result.txt", &out), -EFBIG);
	arguments_release(&arguments);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_line_says_how_it_ended_and_where_the_text_goes),
		cmocka_unit_test(json_goes_to_standard_output_also_where_the_tool_failed),
		cmocka_unit_test(notes_come_before_the_text),
		cmocka_unit_test(a_text_of_too_many_lines_is_cut_between_two),
		cmocka_unit_test(a_text_of_too_many_bytes_is_cut_between_lines),
		cmocka_unit_test(a_text_of_one_line_is_cut_between_characters),
		cmocka_unit_test(a_short_first_line_does_not_cost_the_rest),
		cmocka_unit_test(the_limit_itself_is_shown_whole),
		cmocka_unit_test(bytes_that_are_no_utf8_are_cut_as_well),
		cmocka_unit_test(full_and_json_are_never_cut),
		cmocka_unit_test(the_notice_does_not_offer_an_option_that_is_the_tools),
		cmocka_unit_test(a_bad_request_is_answered_with_the_usage),
		cmocka_unit_test(what_is_not_the_requests_fault_is_answered_without),
		cmocka_unit_test(help_goes_to_standard_output),
		cmocka_unit_test(what_does_not_fit_is_an_error_and_never_a_shorter_text),
	};
	return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
