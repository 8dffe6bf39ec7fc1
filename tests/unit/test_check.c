/* Rules for TOOL.md and its body, paths, comparisons. docs/checks.md has an example of each code. */
#include "core/tools/check.h"
#include "core/tools/checkcodes.h"
#include "core/tools/checkdoc.h"
#include "core/tools/sametree.h"
#include "tests/unit/scratch.h"

#define GOOD_CODE "export async function execute(_id: string) {\n  return { content: [] };\n}\n"
#define GOOD_BODY "# T\n## Usage\nx\n## Examples\nx\n## Error Handling\nx\n## Notes\nx\n"
#define GOOD_FRONT                                                                                 \
	"name: t\ndescription: Does a thing. Use this to have it done at once.\nversion: 1\n"

static void write_doc(const struct scratch *scratch, const char *front, const char *body)
{
	auto_free char *text = xasprintf("---\n%s---\n%s", front, body);
	scratch_write(scratch, "tools/t/TOOL.md", text);
	scratch_write(scratch, "tools/t/index.ts", GOOD_CODE);
}

/* What is found at path, as "FILE:LINE:COLUMN:CODE ..." without what is 0, below the scratch. */
static char *findings(
	const struct scratch *scratch, const char *path, const struct check_options *options)
{
	auto_free char *whole = xasprintf("%s/%s", scratch->path, path);
	struct check_report report = { .tools = 0 };
	struct buf out = BUF_INIT(1 << 20);
	check_path(whole, options, &report);
	check_finish(options, &report);
	for (size_t i = 0; i < report.faults.count; i++) {
		const struct fault *fault = &report.faults.items[i];
		buf_printf(&out, "%s%s", i ? " " : "", fault->file + strlen(scratch->path) + 1);
		if (fault->line)
			buf_printf(&out, ":%zu", fault->line);
		if (fault->column)
			buf_printf(&out, ":%zu", fault->column);
		buf_printf(&out, ":%s", fault->code);
		assert_non_null(checkcodes_find(fault->code));
	}
	check_report_release(&report);
	return buf_take(&out);
}

static void assert_found(const struct scratch *scratch, const char *path, const char *wanted)
{
	auto_free char *found = findings(scratch, path, &(struct check_options){ .against = NULL });
	assert_string_equal(found ? found : "", wanted);
}

/* ---- codes */

static void each_code_is_there_once(void **state)
{
	(void)state;
	size_t count;
	const struct checkcode *codes = checkcodes_all(&count);
	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(checkcodes_find(codes[i].code), &codes[i]);
		assert_true(*codes[i].summary);
	}
	assert_null(checkcodes_find("nothing"));
}

/* ---- TOOL.md */

static void r15_names_are_in_snake_case(void **state)
{
	(void)state;
	static const char *const good[] = { "a", "a1", "send_mail", "a_1_b", "x2y" };
	static const char *const bad[] = { "", "A", "1a", "_a", "a_", "a__b", "a-b", "a.b",
		"sendMail", "\xc3\xa4" };
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(checkdoc_is_snake_case(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(checkdoc_is_snake_case(bad[i]));
}

static void a_good_tool_has_no_findings(void **state)
{
	write_doc(*state, GOOD_FRONT, GOOD_BODY);
	assert_found(*state, "tools/t", "");
	assert_found(*state, "tools", "");
}

static void r18_findings_stand_at_the_line_of_the_field(void **state)
{
	write_doc(*state, "version: 0\nname: t\ndescription: Does it.\n", GOOD_BODY);
	assert_found(*state, "tools",
		"tools/t/TOOL.md:2:10:version-zero tools/t/TOOL.md:4:14:vague-description");
}

static void r29_what_looks_secret_is_found_by_the_words_of_its_name(void **state)
{
	static const struct {
		const char *name;
		bool is_secret;
	} cases[] = {
		{ "token", true },
		{ "api_token", true },
		{ "tokens", true },
		{ "password", true },
		{ "api_key", true },
		{ "client_secret", true },
		{ "page_token", false },
		{ "next_page_token", false },
		{ "tokenizer", false },
		{ "secretary", false },
		{ "key", false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		auto_free char *front =
			xasprintf(GOOD_FRONT "inputs:\n  %s:\n    type: string\n    "
					     "optional: true\n    description: d\n",
				cases[i].name);
		write_doc(*state, front, GOOD_BODY);
		assert_found(*state, "tools",
			cases[i].is_secret ? "tools/t/TOOL.md:6:3:secret-not-sensitive" : "");
	}
	write_doc(*state,
		GOOD_FRONT "inputs:\n  max_tokens:\n    type: number\n    description: d\n",
		GOOD_BODY);
	assert_found(*state, "tools", "");
}

static void r35_a_body_lacks_what_it_has_in_code_alone(void **state)
{
	write_doc(*state, GOOD_FRONT,
		"# T\n```\n## Usage\n```\n## Examples\n## Error Handling\n## Notes\n");
	assert_found(*state, "tools", "tools/t/TOOL.md:6:missing-section");
	write_doc(*state, GOOD_FRONT,
		"```\n# T\n```\n## USAGE\n## examples\n## Error handling\n## Notes and links\n");
	assert_found(*state, "tools", "tools/t/TOOL.md:6:missing-title");
}

static void r35_a_tool_with_credentials_says_how_it_gets_them(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch,
		GOOD_FRONT "inputs:\n  api_token:\n    type: string\n    optional: true\n    "
			   "sensitive: true\n    description: d\n",
		GOOD_BODY);
	assert_found(scratch, "tools", "tools/t/TOOL.md:12:missing-section");
	write_doc(scratch, GOOD_FRONT, GOOD_BODY);
	scratch_write(scratch, "tools/t/index.ts",
		"const token = process.env.OFFICER_APIFY_TOKEN;\n" GOOD_CODE);
	assert_found(scratch, "tools", "tools/t/TOOL.md:6:missing-section");
}

static void r36_examples_are_valid_calls(void **state)
{
	static const char front[] = GOOD_FRONT
		"inputs:\n  n:\n    type: number\n    description: d\n  tone:\n    type: enum\n    "
		"values: kind, cold\n    optional: true\n    description: d\n";
	static const char body[] = "# T\n## Usage\n`{\"n\": \"not here\"}`\n## Examples\n"
				   "- `{\"n\": 1}`\n"
				   "- `{\"n\": 1, \"tone\": \"warm\"}`\n"
				   "- gives `{\"sum\": 3}` and { n: 1 }\n"
				   "```\n{\"tone\": \"kind\"}\n```\n"
				   "- `{\"n\": 1, \"m\": {\"}\": 2}}`\n"
				   "## Error Handling\n`{\"n\": \"nor here\"}`\n## Notes\n";
	write_doc(*state, front, body);
	assert_found(*state, "tools",
		"tools/t/TOOL.md:20:4:bad-example tools/t/TOOL.md:23:1:bad-example "
		"tools/t/TOOL.md:25:4:bad-example");
}

static void r14_line_ends_do_not_move_findings(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch, GOOD_FRONT, "# T\n");
	scratch_write(scratch, "tools/t/TOOL.md",
		"\xef\xbb\xbf---\r\nname: t\r\ndescription: Does it.\r\nversion: 1\r\n---\r\n# T\r\n"
		"## Usage\r\n## Examples\r\n## Error Handling\r\n");
	assert_found(scratch, "tools",
		"tools/t/TOOL.md:3:14:vague-description tools/t/TOOL.md:6:missing-section");
}

/* ---- places */

static void r8_r107_what_is_clutter_is_told_and_what_is_not_is_not(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch, GOOD_FRONT, GOOD_BODY);
	scratch_write(scratch, "tools/t/bin/process.py", "");
	scratch_write(scratch, "tools/t/README.md", "");
	scratch_write(scratch, "tools/t/data.json", "");
	assert_found(scratch, "tools", "");
	scratch_write(scratch, "tools/t/node_modules/x/index.js", "");
	scratch_write(scratch, "tools/t/index.test.ts", "");
	assert_found(
		scratch, "tools", "tools/t/index.test.ts:clutter tools/t/node_modules:clutter");
}

static void a7_r98_names_are_compared_with_directories_and_each_other(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch, GOOD_FRONT, GOOD_BODY);
	scratch_write(scratch, "tools/u/TOOL.md", "---\n" GOOD_FRONT "---\n" GOOD_BODY);
	scratch_write(scratch, "tools/u/index.ts", GOOD_CODE);
	assert_found(scratch, "tools",
		"tools/t/TOOL.md:duplicate-name tools/u/TOOL.md:2:7:directory-name");
}

static void r6_code_is_looked_at_though_the_manifest_is_broken(void **state)
{
	const struct scratch *scratch = *state;
	scratch_write(scratch, "tools/t/TOOL.md", "nothing");
	scratch_write(scratch, "tools/t/index.js", "Bun.file();\n");
	assert_found(scratch, "tools/t",
		"tools/t/TOOL.md:1:no-front-matter tools/t/index.js:1:1:bun-api "
		"tools/t/index.js:1:1:no-execute");
}

static void codes_can_be_ignored(void **state)
{
	const struct scratch *scratch = *state;
	static const char *const ignored[] = { "no-execute", "no-front-matter", NULL };
	scratch_write(scratch, "tools/t/TOOL.md", "nothing");
	scratch_write(scratch, "tools/t/index.js", "Bun.file();\n");
	auto_free char *found =
		findings(scratch, "tools/t", &(struct check_options){ .ignored = ignored });
	assert_string_equal(found, "tools/t/index.js:1:1:bun-api");
}

static void a_directory_without_tools_is_a_finding(void **state)
{
	const struct scratch *scratch = *state;
	scratch_mkdir(scratch, "empty/below");
	assert_found(scratch, "empty", "empty:no-tools");
	assert_found(scratch, "nothing", "nothing:missing-source");
}

static void check_keeps_no_descriptor(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch, GOOD_FRONT, GOOD_BODY);
	size_t before = scratch_count_fds();
	assert_found(scratch, "tools", "");
	assert_found(scratch, "tools/t", "");
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- comparing with an earlier state */

static bool same(const struct scratch *scratch)
{
	auto_close int a = openat(scratch->fd, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int b = openat(scratch->fd, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return sametree(a, b);
}

static void r104_directories_are_compared_by_all_that_counts(void **state)
{
	const struct scratch *scratch = *state;
	scratch_write(scratch, "a/bin/x", "1");
	scratch_write(scratch, "b/bin/x", "1");
	scratch_link(scratch, "bin", "a/link");
	scratch_link(scratch, "bin", "b/link");
	assert_true(same(scratch));
	scratch_write(scratch, "b/bin/x", "2");
	assert_false(same(scratch));
	scratch_write(scratch, "b/bin/x", "1");
	assert_int_equal(fchmodat(scratch->fd, "b/bin/x", 0755, 0), 0);
	assert_false(same(scratch));
	assert_int_equal(fchmodat(scratch->fd, "b/bin/x", 0600, 0), 0);
	assert_true(same(scratch));
	scratch_write(scratch, "b/more", "");
	assert_false(same(scratch));
	scratch_mkdir(scratch, "a/more");
	assert_false(same(scratch));
	assert_int_equal(unlinkat(scratch->fd, "a/more", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(scratch->fd, "b/more", 0), 0);
	assert_int_equal(unlinkat(scratch->fd, "b/link", 0), 0);
	scratch_link(scratch, "bim", "b/link");
	assert_false(same(scratch));
}

static void r104_a_change_without_a_greater_version_is_found(void **state)
{
	const struct scratch *scratch = *state;
	write_doc(scratch, GOOD_FRONT, GOOD_BODY);
	auto_free char *before = xasprintf("%s/before", scratch->path);
	const struct check_options options = { .against = before };
	auto_free char *new_tool = findings(scratch, "tools", &options);
	assert_true(!new_tool || !*new_tool);
	scratch_write(scratch, "before/t/TOOL.md", "---\n" GOOD_FRONT "---\n" GOOD_BODY);
	scratch_write(scratch, "before/t/index.ts", GOOD_CODE);
	auto_free char *equal = findings(scratch, "tools", &options);
	assert_true(!equal || !*equal);
	scratch_write(scratch, "before/t/index.ts", GOOD_CODE "// older\n");
	auto_free char *changed = findings(scratch, "tools/t", &options);
	assert_string_equal(changed, "tools/t/TOOL.md:unbumped-version");
	scratch_write(scratch, "before/t/TOOL.md", "---\nname: t\nversion: 0\n---\n");
	auto_free char *bumped = findings(scratch, "tools/t", &options);
	assert_true(!bumped || !*bumped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_is_there_once),
		cmocka_unit_test(r15_names_are_in_snake_case),
		scratch_test(a_good_tool_has_no_findings),
		scratch_test(r18_findings_stand_at_the_line_of_the_field),
		scratch_test(r29_what_looks_secret_is_found_by_the_words_of_its_name),
		scratch_test(r35_a_body_lacks_what_it_has_in_code_alone),
		scratch_test(r35_a_tool_with_credentials_says_how_it_gets_them),
		scratch_test(r36_examples_are_valid_calls),
		scratch_test(r14_line_ends_do_not_move_findings),
		scratch_test(r8_r107_what_is_clutter_is_told_and_what_is_not_is_not),
		scratch_test(a7_r98_names_are_compared_with_directories_and_each_other),
		scratch_test(r6_code_is_looked_at_though_the_manifest_is_broken),
		scratch_test(codes_can_be_ignored),
		scratch_test(a_directory_without_tools_is_a_finding),
		scratch_test(check_keeps_no_descriptor),
		scratch_test(r104_directories_are_compared_by_all_that_counts),
		scratch_test(r104_a_change_without_a_greater_version_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
