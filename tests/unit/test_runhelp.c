#include "core/tools/runhelp.h"
#include "tests/unit/golden.h"

static void check_help(const char *entry)
{
	auto_free char *tool_path = xasprintf("%s/tool.json", entry);
	auto_free char *help_path = xasprintf("%s/help.txt", entry);
	auto_tool struct tool *tool = golden_tool(tool_path);
	auto_buf struct buf text = BUF_INIT(RUNHELP_SIZE_MAX);
	auto_free char *program = xasprintf("%s/run", tool->name);
	assert_int_equal(runhelp_text(tool, program, &text), 0);
	golden_check(help_path, &text);
}

static void r27_to_r31_help_shows_each_input_as_the_files_say(void **state)
{
	(void)state;
	golden_each("runhelp", check_help);
}

static void a21_help_holds_nothing_of_a_sensitive_default(void **state)
{
	(void)state;
	auto_tool struct tool *tool = golden_tool("runhelp/sensitive/tool.json");
	auto_buf struct buf text = BUF_INIT(RUNHELP_SIZE_MAX);
	assert_int_equal(runhelp_text(tool, "./run", &text), 0);
	assert_null(strstr(buf_str(&text), "4711"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r27_to_r31_help_shows_each_input_as_the_files_say),
		cmocka_unit_test(a21_help_holds_nothing_of_a_sensitive_default),
	};
	return cmocka_run_group_tests_name("runhelp", tests, NULL, NULL);
}
