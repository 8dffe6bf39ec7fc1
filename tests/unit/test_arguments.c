#include <errno.h>

#include "core/tools/arguments.h"
#include "core/tools/jsontext.h"
#include "tests/unit/runwords.h"

static const json_t *get(const json_t *row, const char *key)
{
	return json_object_get(row, key);
}

/* Reads bytes as `run` hands them over. */
static int read_bytes(struct arguments *arguments, const struct tool *tool, const struct buf *bytes,
	size_t size_max, struct fail *why)
{
	struct document document;
	document_init(&document, RUNWORDS_MAX);
	assert_int_equal(document_add(&document, bytes->data, bytes->len, why), 0);
	assert_int_equal(document.state, DOCUMENT_COMPLETE);
	int result = arguments_read(arguments, tool, &document, size_max, why);
	document_release(&document);
	return result;
}

static int read_row(
	struct arguments *arguments, const struct tool *tool, const json_t *row, struct fail *why)
{
	const char *how = json_string_value(get(row, "how"));
	auto_buf struct buf bytes = runwords_render("hello/run", get(row, "words"),
		json_string_value(get(row, "stdin")), how ? how : "end");
	return read_bytes(arguments, tool, &bytes, RUNWORDS_MAX, why);
}

static void expect(const char *name, const char *what, const char *got, const char *wanted)
{
	if (strcmp(got, wanted) != 0)
		fail_msg("%s: %s: expected\n%s\nbut got\n%s", name, what, wanted, got);
}

static void check_request(const char *name, const json_t *row, const struct arguments *arguments)
{
	auto_buf struct buf wanted = BUF_INIT(RUNWORDS_MAX);
	if (get(row, "raw"))
		buf_puts(&wanted, json_string_value(get(row, "raw")));
	else if (get(row, "request"))
		jsontext_append(&wanted, get(row, "request"), JSONTEXT_COMPACT);
	expect(name, "request", buf_str(&arguments->request), buf_str(&wanted));
}

static void check_row(const json_t *row, const struct tool *tool)
{
	static const char *const shows[] = { "bounded", "full", "json" };
	const char *name = json_string_value(get(row, "name"));
	const char *error = json_string_value(get(row, "error"));
	const char *show = json_string_value(get(row, "show"));
	const char *notes = json_string_value(get(row, "notes"));
	struct fail why = FAIL_INIT;
	struct arguments arguments;
	int result = read_row(&arguments, tool, row, &why);
	expect(name, "error", why.text, error ? error : "");
	assert_int_equal(result, error ? -EINVAL : 0);
	expect(name, "notes", buf_str(&arguments.notes), notes ? notes : "");
	if (!error) {
		check_request(name, row, &arguments);
		expect(name, "show", shows[arguments.show], show ? show : "bounded");
		assert_int_equal(arguments.help, json_is_true(get(row, "help")));
	}
	assert_int_equal(arguments.has_full, !json_is_false(get(row, "has_full")));
	arguments_release(&arguments);
}

static void r21_to_r29_words_become_the_request_that_the_file_says(void **state)
{
	(void)state;
	auto_json json_t *cases = golden_json("arguments/read.json");
	const json_t *rows = get(cases, "rows");
	assert_true(json_array_size(rows) > 50);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *tool_name = json_string_value(get(row, "tool"));
		auto_tool struct tool *tool = tooljson_read(get(get(cases, "tools"), tool_name));
		check_row(row, tool);
	}
}

static struct tool *the_tool(void)
{
	auto_json json_t *json =
		json_loads("{\"name\":\"my tool\",\"inputs\":[{\"name\":\"text\"}]}", 0, NULL);
	return tooljson_read(json);
}

static void a_word_that_is_no_utf8_is_refused_with_its_place(void **state)
{
	(void)state;
	auto_tool struct tool *tool = the_tool();
	auto_buf struct buf bytes = BUF_INIT(RUNWORDS_MAX);
	buf_printf(&bytes, "run%c2%c./run%c--text%cab\xff%c", 0, 0, 0, 0, 0);
	struct fail why = FAIL_INIT;
	struct arguments arguments;
	assert_int_equal(read_bytes(&arguments, tool, &bytes, RUNWORDS_MAX, &why), -EINVAL);
	assert_non_null(strstr(why.text, "word 2 is not UTF-8 from its byte 3 on"));
	arguments_release(&arguments);
}

static void a_request_larger_than_the_limit_is_refused(void **state)
{
	(void)state;
	auto_tool struct tool *tool = the_tool();
	auto_json json_t *words = json_pack("[s,s]", "--text", "a long value");
	auto_buf struct buf bytes = runwords_render("./run", words, NULL, NULL);
	struct fail why = FAIL_INIT;
	struct arguments arguments;
	assert_int_equal(read_bytes(&arguments, tool, &bytes, 10, &why), -EFBIG);
	arguments_release(&arguments);
}

static void many_words_are_read(void **state)
{
	(void)state;
	auto_tool struct tool *tool = the_tool();
	auto_json json_t *words = json_array();
	for (size_t i = 0; i < DOCUMENT_WORDS_MAX; i++) {
		auto_free char *word = xasprintf("--x%zu", i);
		json_array_append_new(words, json_string(word));
	}
	auto_buf struct buf bytes = runwords_render("./run", words, NULL, NULL);
	struct fail why = FAIL_INIT;
	struct arguments arguments;
	assert_int_equal(read_bytes(&arguments, tool, &bytes, RUNWORDS_MAX, &why), 0);
	auto_json json_t *request = json_loads(buf_str(&arguments.request), 0, NULL);
	assert_int_equal(json_object_size(request), DOCUMENT_WORDS_MAX);
	assert_true(arguments.notes.len < 4096);
	arguments_release(&arguments);
}

/* The program's name is shown, and pasted: it comes from anybody. */
static void the_program_is_named_as_a_shell_takes_it(void **state)
{
	(void)state;
	static const struct {
		const char *program, *shown, *dir;
	} rows[] = {
		{ "./run", "./run", "." },
		{ "/t/hello/run", "/t/hello/run", "/t/hello" },
		{ "/t/it's here/run", "'/t/it'\\''s here/run'", "'/t/it'\\''s here'" },
		{ "/run", "/run", "" },
		{ "run", "'my tool'/run", "'my tool'" },
		{ "", "'my tool'/run", "'my tool'" },
		{ "/t/\x1b[31m/run", "'my tool'/run", "'my tool'" },
		{ "/t/\xff/run", "'my tool'/run", "'my tool'" },
	};
	auto_tool struct tool *tool = the_tool();
	auto_json json_t *words = json_array();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_buf struct buf bytes = runwords_render(rows[i].program, words, NULL, NULL);
		struct fail why = FAIL_INIT;
		struct arguments arguments;
		assert_int_equal(read_bytes(&arguments, tool, &bytes, RUNWORDS_MAX, &why), 0);
		assert_string_equal(arguments.program, rows[i].shown);
		assert_string_equal(arguments.dir, rows[i].dir);
		arguments_release(&arguments);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r21_to_r29_words_become_the_request_that_the_file_says),
		cmocka_unit_test(a_word_that_is_no_utf8_is_refused_with_its_place),
		cmocka_unit_test(a_request_larger_than_the_limit_is_refused),
		cmocka_unit_test(many_words_are_read),
		cmocka_unit_test(the_program_is_named_as_a_shell_takes_it),
	};
	return cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
}
