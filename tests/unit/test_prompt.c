#include <errno.h>
#include <sys/stat.h>

#include "core/tools/prompt.h"
#include "tests/unit/golden.h"

#define MOUNT "/officer/tools"

static struct tool *case_tool(const char *dir)
{
	auto_free char *path = xasprintf("%s/tool.json", dir);
	return golden_tool(path);
}

static void check_file(const char *dir, const char *file, const struct buf *text)
{
	auto_free char *path = xasprintf("%s/%s", dir, file);
	golden_check(path, text);
}

static void check_case(const char *dir)
{
	auto_tool struct tool *tool = case_tool(dir);
	auto_buf struct buf prompt = BUF_INIT(PROMPT_SIZE_MAX);
	assert_int_equal(prompt_tool(tool, MOUNT, &prompt), 0);
	check_file(dir, "prompt.md", &prompt);
	auto_buf struct buf usage = BUF_INIT(PROMPT_SIZE_MAX);
	assert_int_equal(prompt_usage(tool, MOUNT, &usage), 0);
	check_file(dir, "usage.txt", &usage);
	auto_buf struct buf schema = BUF_INIT(PROMPT_SIZE_MAX);
	assert_int_equal(prompt_schema(tool, &schema), 0);
	check_file(dir, "schema.json", &schema);
}

static void r34_each_tool_is_described_as_the_files_say(void **state)
{
	(void)state;
	golden_each("prompt", check_case);
}

static struct tool *tool_of(const char *json)
{
	auto_json json_t *given = json_loads(json, 0, NULL);
	assert_non_null(given);
	return tooljson_read(given);
}

static void r34_the_body_is_in_the_prompt_byte_for_byte(void **state)
{
	(void)state;
	auto_tool struct tool *tool =
		tool_of("{\"body\":\"text  \\n\\n    # code\\n\\n\\ttab \\\\\\n\"}");
	auto_buf struct buf prompt = BUF_INIT(PROMPT_SIZE_MAX);
	assert_int_equal(prompt_tool(tool, MOUNT, &prompt), 0);
	assert_string_equal(prompt.data + prompt.len - tool->body_len, tool->body);
	assert_int_equal(prompt.data[prompt.len - tool->body_len - 1], '\n');
}

static void r27_each_input_is_in_the_prompt(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/my_db");
	auto_buf struct buf prompt = BUF_INIT(PROMPT_SIZE_MAX);
	prompt_tool(tool, MOUNT, &prompt);
	for (size_t i = 0; i < tool->input_count; i++) {
		assert_non_null(strstr(buf_str(&prompt), tool->inputs[i].name));
		assert_non_null(strstr(buf_str(&prompt), tool->inputs[i].description));
	}
}

static void r29_a_sensitive_default_is_in_no_text(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/sensitive");
	auto_buf struct buf text = BUF_INIT(PROMPT_ALL_SIZE_MAX);
	prompt_tool(tool, MOUNT, &text);
	prompt_schema(tool, &text);
	prompt_usage(tool, MOUNT, &text);
	prompt_all(&tool, 1, MOUNT, &text);
	prompt_readme(&tool, 1, MOUNT, &text);
	prompt_tools_json(&tool, 1, &text);
	assert_int_equal(text.failed, 0);
	assert_null(strstr(buf_str(&text), "4711"));
}

/* H9: written back to `call`, the usage text must fail at its first byte. */
static void the_usage_text_is_comments_only(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/awkward");
	auto_buf struct buf usage = BUF_INIT(PROMPT_SIZE_MAX);
	prompt_usage(tool, MOUNT, &usage);
	const char *at = buf_str(&usage);
	while (*at) {
		assert_int_equal(*at, '#');
		at += strcspn(at, "\n");
		assert_int_equal(*at++, '\n');
	}
}

/* The example of a tool, as people paste it: run by a shell, it writes the example request. */
static void check_pasted(const char *dir)
{
	auto_tool struct tool *tool = case_tool(dir);
	auto_free char *mount = xstrdup("/tmp/pegfs it's a mount-XXXXXX");
	assert_non_null(mkdtemp(mount));
	auto_buf struct buf prompt = BUF_INIT(PROMPT_SIZE_MAX);
	prompt_tool(tool, mount, &prompt);
	char *begin = strstr(buf_str(&prompt), "```sh\n");
	assert_non_null(begin);
	begin += strlen("```sh\n");
	*strstr(begin, "```") = '\0';
	auto_free char *tool_dir = xasprintf("%s/%s", mount, tool->name);
	auto_free char *script = xasprintf("%s/script", mount);
	assert_int_equal(mkdir(tool_dir, 0700), 0);
	auto_free char *answer = xasprintf("%s/result.txt", tool_dir);
	auto_close int answer_fd = open(answer, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	auto_close int script_fd = open(script, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(answer_fd >= 0);
	assert_int_equal(io_write_all(script_fd, begin, strlen(begin)), 0);
	auto_free char *command = xasprintf("sh \"%s\"", script);
	assert_int_equal(system(command), 0);
	auto_free char *call = xasprintf("%s/call", tool_dir);
	auto_json json_t *written = json_load_file(call, 0, NULL);
	auto_free char *example_path = xasprintf("schema/%s/example.json", strrchr(dir, '/') + 1);
	auto_json json_t *example = golden_json(example_path);
	assert_true(json_equal(written, example));
	assert_int_equal(io_remove_tree(AT_FDCWD, mount), 0);
}

static void the_first_example_can_be_pasted_into_a_shell(void **state)
{
	(void)state;
	golden_each("prompt", check_pasted);
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;
	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static void the_texts_of_the_root_are_as_the_files_say(void **state)
{
	(void)state;
	struct tool *tools[3] = { case_tool("prompt/hello"), case_tool("prompt/awkward"),
		case_tool("prompt/my_db") };
	auto_buf struct buf readme = BUF_INIT(PROMPT_SIZE_MAX);
	assert_int_equal(prompt_readme(tools, 3, MOUNT, &readme), 0);
	golden_check("prompt_all/README.md", &readme);
	assert_true(count_lines(buf_str(&readme)) < 40);
	buf_reset(&readme);
	assert_int_equal(prompt_readme(tools + 1, 1, MOUNT, &readme), 0);
	assert_true(count_lines(buf_str(&readme)) < 40);
	buf_reset(&readme);
	assert_int_equal(prompt_readme(tools, 0, MOUNT, &readme), 0);
	golden_check("prompt_all/README-empty.md", &readme);
	assert_true(count_lines(buf_str(&readme)) < 40);
	buf_reset(&readme);
	assert_int_equal(prompt_all(tools, 3, MOUNT, &readme), 0);
	golden_check("prompt_all/prompt.md", &readme);
	buf_reset(&readme);
	assert_int_equal(prompt_all(tools, 0, MOUNT, &readme), 0);
	golden_check("prompt_all/prompt-empty.md", &readme);
	buf_reset(&readme);
	assert_int_equal(prompt_tools_json(tools, 3, &readme), 0);
	golden_check("prompt_all/tools.json", &readme);
	for (size_t i = 0; i < 3; i++)
		tool_unref(tools[i]);
}

static void r17_name_and_description_of_each_tool_are_in_the_whole_prompt(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/my_db");
	auto_buf struct buf text = BUF_INIT(PROMPT_ALL_SIZE_MAX);
	prompt_all(&tool, 1, MOUNT, &text);
	assert_non_null(strstr(buf_str(&text), tool->name));
	assert_non_null(strstr(buf_str(&text), tool->description));
}

static void r16_the_label_is_the_title(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/my_db");
	auto_buf struct buf text = BUF_INIT(PROMPT_ALL_SIZE_MAX);
	prompt_tool(tool, MOUNT, &text);
	assert_memory_equal(buf_str(&text), "# My Database\n", 14);
}

static void no_tools_give_an_empty_list(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(PROMPT_ALL_SIZE_MAX);
	assert_int_equal(prompt_tools_json(NULL, 0, &text), 0);
	assert_string_equal(buf_str(&text), "[]\n");
}

static void too_long_a_text_is_refused(void **state)
{
	(void)state;
	auto_tool struct tool *tool = case_tool("prompt/my_db");
	auto_buf struct buf text = BUF_INIT(100);
	assert_int_equal(prompt_tool(tool, MOUNT, &text), -EFBIG);
	buf_reset(&text);
	assert_int_equal(prompt_tools_json(&tool, 1, &text), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r34_each_tool_is_described_as_the_files_say),
		cmocka_unit_test(r34_the_body_is_in_the_prompt_byte_for_byte),
		cmocka_unit_test(r27_each_input_is_in_the_prompt),
		cmocka_unit_test(r29_a_sensitive_default_is_in_no_text),
		cmocka_unit_test(the_usage_text_is_comments_only),
		cmocka_unit_test(the_first_example_can_be_pasted_into_a_shell),
		cmocka_unit_test(the_texts_of_the_root_are_as_the_files_say),
		cmocka_unit_test(r17_name_and_description_of_each_tool_are_in_the_whole_prompt),
		cmocka_unit_test(r16_the_label_is_the_title),
		cmocka_unit_test(no_tools_give_an_empty_list),
		cmocka_unit_test(too_long_a_text_is_refused),
	};
	return cmocka_run_group_tests_name("prompt", tests, NULL, NULL);
}
