#include "core/tools/check.h"
#include "core/tools/new.h"
#include "tests/unit/scratch.h"

static void r2_r35_each_language_gives_a_tool_without_findings(void **state)
{
	const struct scratch *scratch = *state;
	struct check_report report = { .tools = 0 };
	const struct check_options options = { .against = NULL };
	for (enum language l = LANGUAGE_TYPESCRIPT; l <= LANGUAGE_BASH; l++) {
		struct fail why = FAIL_INIT;
		auto_free char *name = xasprintf("my_%s", language_name(l));
		assert_int_equal(new_tool(scratch->path, name, l, &why), 0);
	}
	check_path(scratch->path, &options, &report);
	check_finish(&options, &report);
	auto_buf struct buf text = BUF_INIT(1 << 20);
	faults_render(&report.faults, &text);
	assert_string_equal(buf_str(&text), "");
	assert_int_equal(report.tools, 3);
	check_report_release(&report);
}

static void r15_a_name_that_does_not_fit_is_refused_with_one_that_does(void **state)
{
	const struct scratch *scratch = *state;
	static const struct {
		const char *name, *meant;
	} cases[] = {
		{ "MyTool", "'my_tool'" },
		{ "my-tool", "'my_tool'" },
		{ "my tool", "'my_tool'" },
		{ "2nd_tool", "'nd_tool'" },
		{ "a__b_", "'a_b'" },
		{ "../escape", "'escape'" },
		{ "PDFReader", "'pdfreader'" },
		{ "README.md", "'readme_md'" },
		{ "", "at most 64 characters" },
		{ "...", "at most 64 characters" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"at most 64" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fail why = FAIL_INIT;
		assert_int_equal(
			new_tool(scratch->path, cases[i].name, LANGUAGE_PYTHON, &why), -EINVAL);
		if (!strstr(why.text, cases[i].meant))
			fail_msg("%s", why.text);
	}
}

static void r13_what_is_there_already_stays(void **state)
{
	const struct scratch *scratch = *state;
	struct fail why = FAIL_INIT;
	scratch_write(scratch, "mine/file", "x");
	assert_int_equal(new_tool(scratch->path, "mine", LANGUAGE_BASH, &why), -EEXIST);
	fail_clear(&why);
	scratch_mkdir(scratch, "empty");
	assert_int_equal(new_tool(scratch->path, "empty", LANGUAGE_BASH, &why), -EEXIST);
	fail_clear(&why);
	scratch_link(scratch, "nowhere", "link");
	assert_int_equal(new_tool(scratch->path, "link", LANGUAGE_BASH, &why), -EEXIST);
	struct stat st;
	assert_int_equal(fstatat(scratch->fd, "mine/file", &st, 0), 0);
	assert_int_not_equal(fstatat(scratch->fd, "mine/TOOL.md", &st, 0), 0);
	/* And nothing else is left. */
	auto_free char *command = xasprintf("[ \"$(ls -A %s | wc -l)\" = 3 ]", scratch->path);
	assert_int_equal(system(command), 0);
}

static void a_directory_that_is_not_there_is_told(void **state)
{
	const struct scratch *scratch = *state;
	auto_free char *dir = xasprintf("%s/nothing", scratch->path);
	struct fail why = FAIL_INIT;
	assert_int_equal(new_tool(dir, "tool", LANGUAGE_BASH, &why), -ENOENT);
	assert_non_null(strstr(why.text, "nothing' cannot be opened"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(r2_r35_each_language_gives_a_tool_without_findings),
		scratch_test(r15_a_name_that_does_not_fit_is_refused_with_one_that_does),
		scratch_test(r13_what_is_there_already_stays),
		scratch_test(a_directory_that_is_not_there_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
