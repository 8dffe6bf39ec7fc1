#include <errno.h>

#include "core/tools/manifest.h"
#include "tests/unit/golden.h"

/* ---- what a TOOL.md gives, as text: the tool, then the faults */

static void write_text(struct buf *out, const char *key, const char *text)
{
	auto_json json_t *json = json_string(text);
	auto_free char *shown = json ? json_dumps(json, JSON_ENCODE_ANY) : xasprintf("no UTF-8");
	buf_printf(out, "%s: %s\n", key, shown);
}

static void write_input(struct buf *out, const struct input *input)
{
	write_text(out, "- input", input->name);
	write_text(out, "  description", input->description);
	buf_printf(out, "  %s%s%s\n", input_type_name(input->type),
		input->optional ? ", optional" : "", input->sensitive ? ", sensitive" : "");
	for (size_t i = 0; i < input->value_count; i++)
		write_text(out, "  value", input->values[i]);
	if (!input->default_value)
		return;
	auto_free char *shown = json_dumps(input->default_value, JSON_ENCODE_ANY);
	buf_printf(out, "  default: %s\n", shown);
}

static void write_tool(struct buf *out, const struct tool *tool)
{
	write_text(out, "name", tool->name);
	write_text(out, "label", tool->label);
	write_text(out, "description", tool->description);
	buf_printf(out, "version: %lld\nlanguage: %s\n", (long long)tool->version,
		language_name(tool->language));
	if (tool->timeout_ms)
		buf_printf(out, "timeout_ms: %u\n", tool->timeout_ms);
	for (size_t i = 0; i < tool->input_count; i++)
		write_input(out, &tool->inputs[i]);
	write_text(out, "body", tool->body);
	assert_int_equal(strlen(tool->body), tool->body_len);
}

static int parse(const char *bytes, size_t len, struct buf *out)
{
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	int result = manifest_parse(bytes, len, tool, &faults);
	assert_int_equal(result < 0, faults_have_error(&faults));
	if (result == 0)
		write_tool(out, tool);
	faults_render(&faults, out);
	return result;
}

static void check_case(const char *path, int wanted)
{
	auto_free char *file = xasprintf("%s/TOOL.md", path);
	auto_free char *expected = xasprintf("%s/expected.txt", path);
	auto_buf struct buf bytes = golden_load(file);
	auto_buf struct buf out = BUF_INIT(GOLDEN_SIZE_MAX);
	int result = parse(buf_str(&bytes), bytes.len, &out);
	golden_check(expected, &out);
	if (result != wanted)
		fail_msg("%s: %d", path, result);
}

static void check_valid(const char *path)
{
	check_case(path, 0);
}

static void check_invalid(const char *path)
{
	check_case(path, -EINVAL);
}

static void valid_files_give_the_expected_tools(void **state)
{
	(void)state;
	golden_each("manifest/valid", check_valid);
}

static void a5_invalid_files_give_the_expected_faults(void **state)
{
	(void)state;
	golden_each("manifest/invalid", check_invalid);
}

/* ---- the rules, one by one */

#define HEAD "name: t\ndescription: Does it.\nversion: 1\n"

/* The tool of a front matter that must be usable; the caller's. */
static struct tool *tool_of(const char *front)
{
	auto_free char *text = xasprintf("---\n%s---\n# Body\n", front);
	struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	auto_buf struct buf shown = BUF_INIT(GOLDEN_SIZE_MAX);
	int result = manifest_parse(text, strlen(text), tool, &faults);
	faults_render(&faults, &shown);
	if (result < 0)
		fail_msg("%s%s", text, buf_str(&shown));
	return tool;
}

/* The codes of the faults of a whole file, separated by blanks; the caller's. */
static char *codes_of_file(const char *text)
{
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	struct buf codes = BUF_INIT(GOLDEN_SIZE_MAX);
	manifest_parse(text, strlen(text), tool, &faults);
	for (size_t i = 0; i < faults.count; i++)
		buf_printf(&codes, "%s%s", i ? " " : "", faults.items[i].code);
	return buf_take(&codes);
}

static char *codes_of(const char *front)
{
	auto_free char *text = xasprintf("---\n%s---\n# Body\n", front);
	return codes_of_file(text);
}

static void assert_codes(const char *front, const char *wanted)
{
	auto_free char *codes = codes_of(front);
	assert_string_equal(codes, wanted);
}

static void r4_the_minimal_tool_has_nothing_to_complain_about(void **state)
{
	(void)state;
	assert_codes("name: hello\nlabel: Hello\ndescription: Say hello.\nversion: 1\n"
		     "language: typescript\ninputs:\n  name:\n    type: string\n"
		     "    description: Who to greet.\n",
		"");
}

static void r14_the_body_is_what_follows_the_front_matter(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("name: t\ndescription: \"Action to perform: query "
					      "runs SQL, stats shows overview.\"\nversion: 1\n");
	assert_string_equal(tool->body, "# Body\n");
	assert_string_equal(
		tool->description, "Action to perform: query runs SQL, stats shows overview.");
}

static void r15_name_is_required(void **state)
{
	(void)state;
	assert_codes("description: D.\nversion: 1\n", "missing-name");
	auto_tool struct tool *tool = tool_of(HEAD);
	assert_string_equal(tool->name, "t");
}

static void r16_label_defaults_to_the_name(void **state)
{
	(void)state;
	auto_tool struct tool *without = tool_of(HEAD);
	assert_string_equal(without->label, "t");
	auto_tool struct tool *with = tool_of(HEAD "label: The Tool\n");
	assert_string_equal(with->label, "The Tool");
}

static void r17_description_is_required(void **state)
{
	(void)state;
	assert_codes("name: t\nversion: 1\n", "missing-description");
}

static void r18_a_missing_version_is_0_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of("name: t\ndescription: D.\n");
	assert_int_equal(tool->version, 0);
	assert_codes("name: t\ndescription: D.\n", "missing-version");
}

static void a1_a_version_that_is_no_integer_is_0_and_reported(void **state)
{
	(void)state;
	static const char *const versions[] = { "1.5", "abc", "-1", "1.2.3", "[1]", "1e999" };
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		auto_free char *front =
			xasprintf("name: t\ndescription: D.\nversion: %s\n", versions[i]);
		auto_tool struct tool *tool = tool_of(front);
		assert_int_equal(tool->version, 0);
		assert_codes(front, "version-not-integer");
	}
}

static void r19_language_is_one_of_three_and_defaults_to_typescript(void **state)
{
	(void)state;
	auto_tool struct tool *none = tool_of(HEAD);
	assert_int_equal(none->language, LANGUAGE_TYPESCRIPT);
	auto_tool struct tool *python = tool_of(HEAD "language: python\n");
	assert_int_equal(python->language, LANGUAGE_PYTHON);
	auto_tool struct tool *bash = tool_of(HEAD "language: bash\n");
	assert_int_equal(bash->language, LANGUAGE_BASH);
	auto_tool struct tool *typescript = tool_of(HEAD "language: typescript\n");
	assert_int_equal(typescript->language, LANGUAGE_TYPESCRIPT);
}

static void a9_an_unknown_language_is_typescript_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of(HEAD "language: ruby\n");
	assert_int_equal(tool->language, LANGUAGE_TYPESCRIPT);
	assert_codes(HEAD "language: ruby\n", "unknown-language");
}

static void r20_inputs_are_optional(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of(HEAD);
	assert_int_equal(tool->input_count, 0);
}

/* The only input of a tool whose input has these lines. */
static struct tool *with_input(const char *lines)
{
	auto_free char *front = xasprintf(HEAD "inputs:\n  a:\n    description: A.\n%s", lines);
	struct tool *tool = tool_of(front);
	assert_int_equal(tool->input_count, 1);
	return tool;
}

static void assert_input_codes(const char *lines, const char *wanted)
{
	auto_free char *front = xasprintf(HEAD "inputs:\n  a:\n    description: A.\n%s", lines);
	assert_codes(front, wanted);
}

static void r21_an_unknown_type_is_a_string_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *string = with_input("    type: string\n");
	assert_int_equal(string->inputs[0].type, INPUT_STRING);
	auto_tool struct tool *date = with_input("    type: date\n");
	assert_int_equal(date->inputs[0].type, INPUT_STRING);
	assert_input_codes("    type: date\n", "unknown-type");
}

static void r22_number(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("    type: number\n");
	assert_int_equal(tool->inputs[0].type, INPUT_NUMBER);
}

static void r23_boolean(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("    type: boolean\n");
	assert_int_equal(tool->inputs[0].type, INPUT_BOOLEAN);
}

static void r24_enum_values_are_a_comma_list_or_an_array(void **state)
{
	(void)state;
	static const char *const forms[] = { "single,batch", "\"single, batch\"", "[single, batch]",
		"\n      - single\n      - batch" };
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		auto_free char *lines = xasprintf("    type: enum\n    values: %s\n", forms[i]);
		auto_tool struct tool *tool = with_input(lines);
		const struct input *input = &tool->inputs[0];
		assert_int_equal(input->type, INPUT_ENUM);
		assert_int_equal(input->value_count, 2);
		assert_string_equal(input->values[0], "single");
		assert_string_equal(input->values[1], "batch");
		assert_input_codes(lines, "");
	}
}

static void a3_values_are_trimmed_kept_in_order_and_made_strings(void **state)
{
	(void)state;
	auto_tool struct tool *list = with_input("    type: enum\n    values: \" z ,, a , \"\n");
	assert_int_equal(list->inputs[0].value_count, 2);
	assert_string_equal(list->inputs[0].values[0], "z");
	assert_string_equal(list->inputs[0].values[1], "a");
	auto_tool struct tool *array =
		with_input("    type: enum\n    values: [1.0, true, 010, on]\n");
	assert_int_equal(array->inputs[0].value_count, 4);
	assert_string_equal(array->inputs[0].values[0], "1.0");
	assert_string_equal(array->inputs[0].values[1], "true");
	assert_string_equal(array->inputs[0].values[2], "010");
	assert_string_equal(array->inputs[0].values[3], "on");
}

static void a4_an_enum_without_values_is_a_string_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("    type: enum\n");
	assert_int_equal(tool->inputs[0].type, INPUT_STRING);
	assert_input_codes("    type: enum\n", "missing-values");
	assert_input_codes("    type: enum\n    values: []\n", "missing-values");
	assert_input_codes("    type: enum\n    values: ' , '\n", "missing-values");
}

static void r25_object_and_array_are_strings_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *object = with_input("    type: object\n");
	assert_int_equal(object->inputs[0].type, INPUT_STRING);
	assert_input_codes("    type: object\n", "unsupported-type");
	assert_input_codes("    type: array\n", "unsupported-type");
}

static void r26_a_missing_type_is_a_string_and_reported(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("");
	assert_int_equal(tool->inputs[0].type, INPUT_STRING);
	assert_input_codes("", "missing-type");
}

static void r27_an_inputs_description_is_kept_and_missed(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("    type: string\n");
	assert_string_equal(tool->inputs[0].description, "A.");
	assert_codes(HEAD "inputs:\n  a:\n    type: string\n", "input-missing-description");
}

static void r28_an_input_is_required_unless_optional(void **state)
{
	(void)state;
	auto_tool struct tool *required = with_input("    type: string\n    default: x\n");
	assert_false(required->inputs[0].optional);
	auto_tool struct tool *optional = with_input("    type: string\n    optional: true\n");
	assert_true(optional->inputs[0].optional);
	auto_tool struct tool *not_so = with_input("    type: string\n    optional: false\n");
	assert_false(not_so->inputs[0].optional);
}

static void r29_what_may_be_meant_as_sensitive_is(void **state)
{
	(void)state;
	static const char *const lines[] = { "sensitive: true", "sensitive: yes",
		"sensitive: 'true'", "sensitive: perhaps", "sensitive: []", "sensitiv: true",
		"Sensitive: true" };
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		auto_free char *text = xasprintf("    type: string\n    %s\n", lines[i]);
		auto_tool struct tool *tool = with_input(text);
		if (!tool->inputs[0].sensitive)
			fail_msg("%s", lines[i]);
	}
	auto_tool struct tool *plain = with_input("    type: string\n    sensitive: false\n");
	assert_false(plain->inputs[0].sensitive);
}

static void r29_a_sensitive_default_stands_in_no_fault(void **state)
{
	(void)state;
	static const char text[] = "---\n" HEAD "inputs:\n  a:\n    type: number\n"
				   "    default: hunter2\n    sensitive: true\n---\n";
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	auto_buf struct buf shown = BUF_INIT(GOLDEN_SIZE_MAX);
	assert_int_equal(manifest_parse(text, strlen(text), tool, &faults), 0);
	faults_render(&faults, &shown);
	assert_non_null(strstr(buf_str(&shown), "bad-default"));
	assert_null(strstr(buf_str(&shown), "hunter2"));
}

static void r30_values_of_an_enum_are_kept(void **state)
{
	(void)state;
	auto_tool struct tool *tool = with_input("    type: enum\n    values: a, b, c\n");
	assert_int_equal(tool->inputs[0].value_count, 3);
	assert_input_codes("    type: string\n    values: a, b\n", "unused-values");
}

static void r31_a_default_has_the_inputs_type(void **state)
{
	(void)state;
	auto_tool struct tool *number = with_input("    type: number\n    default: 10\n");
	assert_int_equal(json_integer_value(number->inputs[0].default_value), 10);
	auto_tool struct tool *text = with_input("    type: string\n    default: 010\n");
	assert_string_equal(json_string_value(text->inputs[0].default_value), "010");
	auto_tool struct tool *boolean = with_input("    type: boolean\n    default: true\n");
	assert_true(json_is_true(boolean->inputs[0].default_value));
	assert_input_codes("    type: number\n    default: ten\n", "bad-default");
	assert_input_codes("    type: boolean\n    default: yes\n", "bad-default");
	assert_input_codes("    type: enum\n    values: a\n    default: b\n", "bad-default");
}

static void r32_inputs_keep_their_order(void **state)
{
	(void)state;
	auto_tool struct tool *tool = tool_of(HEAD "inputs: {z: x, a: x, m: x, b: x}\n");
	assert_int_equal(tool->input_count, 4);
	assert_string_equal(tool->inputs[0].name, "z");
	assert_string_equal(tool->inputs[1].name, "a");
	assert_string_equal(tool->inputs[2].name, "m");
	assert_string_equal(tool->inputs[3].name, "b");
}

static void a10_unknown_keys_are_ignored(void **state)
{
	(void)state;
	assert_codes(HEAD "license: MIT\nmetadata:\n  a: {b: [1, 2]}\nhomepage: x\n", "");
}

static void a13_line_ends_a_mark_and_blanks_after_the_fence_are_accepted(void **state)
{
	(void)state;
	static const char *const files[] = {
		"---\r\nname: t\r\ndescription: D.\r\nversion: 1\r\n---\r\nx\r\n",
		"\xef\xbb\xbf---\nname: t\ndescription: D.\nversion: 1\n---\nx\n",
		"---  \nname: t\ndescription: D.\nversion: 1\n--- \t\nx\n",
	};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		auto_free char *codes = codes_of_file(files[i]);
		assert_string_equal(codes, "");
	}
	auto_free char *none = codes_of_file("# Just text\n");
	assert_string_equal(none, "no-front-matter");
}

static void names_are_safe_as_directories_of_the_tree(void **state)
{
	(void)state;
	auto_free char *longest = xcalloc(1, TOOL_NAME_MAX + 2);
	memset(longest, 'a', TOOL_NAME_MAX);
	static const char *const safe[] = { "a", "web_search", "With Space",
		"gr\xc3\xb6\xc3\x9f"
		"e",
		"a.b", "prompt", "readme.md", "~x", "call" };
	static const char *const unsafe[] = { "", ".", "..", ".x", "-x", "a/b", "/", "a\nb", "\x7f",
		"a\xc2\x80", "\xff", "\xc3", "README.md", "prompt.md", "tools.json" };
	for (size_t i = 0; i < sizeof(safe) / sizeof(*safe); i++)
		if (!manifest_name_is_safe(safe[i]))
			fail_msg("%s", safe[i]);
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++)
		if (manifest_name_is_safe(unsafe[i]))
			fail_msg("%s", unsafe[i]);
	assert_true(manifest_name_is_safe(longest));
	longest[TOOL_NAME_MAX] = 'a';
	assert_false(manifest_name_is_safe(longest));
}

/* ---- hostile files: each must end soon, whatever comes of it */

static void fill(struct buf *text, const char *piece, size_t len)
{
	while (text->len + strlen(piece) < len)
		buf_puts(text, piece);
}

static void assert_ends(const char *head, const char *piece, size_t len, const char *tail)
{
	auto_buf struct buf text = BUF_INIT(MANIFEST_SIZE_MAX * 2);
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	buf_puts(&text, head);
	fill(&text, piece, len);
	buf_puts(&text, tail);
	int result = manifest_parse(buf_str(&text), text.len, tool, &faults);
	assert_int_equal(result < 0, faults_have_error(&faults));
	if (faults.count > 120)
		fail_msg("%zu faults from '%s'", faults.count, piece);
}

static void pathological_front_matter_ends_soon(void **state)
{
	(void)state;
	static const char *const pieces[] = { "[", "{", "- ", "? ", "a: ", "a: b: ", "a:\n ",
		"- - ", "\"", "'", "&a ", "*a ", "!a ", "| ", "x,", "[a,", "{a: ", "a\n", "\n", " ",
		"\t", "#\n", " #", "\xc2\x85", "\xe2\x80\xa8", "\xff", "\x1b", "\\", "%",
		"<<: ", "a: >\n", "---x\n", " ---\n", ": ", ":\n" };
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		assert_ends("---\n" HEAD "x: ", pieces[i], MANIFEST_FRONT_MAX - 16, "\n---\n");
		assert_ends("---\n", pieces[i], MANIFEST_FRONT_MAX - 16, "\n---\n");
		assert_ends("---\n" HEAD "inputs:\n  a: ", pieces[i], MANIFEST_FRONT_MAX - 16,
			"\n---\n");
	}
}

static void many_different_keys_end_soon(void **state)
{
	(void)state;
	auto_buf struct buf text = BUF_INIT(MANIFEST_SIZE_MAX);
	buf_puts(&text, "---\n" HEAD);
	for (unsigned i = 0; text.len < MANIFEST_FRONT_MAX - 64; i++)
		buf_printf(&text, "%x:\n", i);
	buf_puts(&text, "---\n");
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	assert_int_equal(manifest_parse(buf_str(&text), text.len, tool, &faults), 0);
}

static void one_line_of_a_megabyte_ends_soon(void **state)
{
	(void)state;
	size_t len = MANIFEST_SIZE_MAX - 128;
	assert_ends("---\n" HEAD "x: ", "y", len, "\n---\n");
	assert_ends("---\n" HEAD "---\n", "y", len, "\n");
	assert_ends("---\n" HEAD "---\n", "\xff", len, "\n");
	assert_ends("", "y", len, "");
	assert_ends("", "\n", len, "");
	assert_ends("", "\r", len, "");
	assert_ends("", "<!-- -->\n", len, "");
	assert_ends("---\n", "\r\n", len, "");
	assert_ends("---\n" HEAD, " ---\n", len, "");
	assert_ends("---\n" HEAD "---\n", "y", MANIFEST_SIZE_MAX + 1, "\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(valid_files_give_the_expected_tools),
		cmocka_unit_test(a5_invalid_files_give_the_expected_faults),
		cmocka_unit_test(r4_the_minimal_tool_has_nothing_to_complain_about),
		cmocka_unit_test(r14_the_body_is_what_follows_the_front_matter),
		cmocka_unit_test(r15_name_is_required),
		cmocka_unit_test(r16_label_defaults_to_the_name),
		cmocka_unit_test(r17_description_is_required),
		cmocka_unit_test(r18_a_missing_version_is_0_and_reported),
		cmocka_unit_test(a1_a_version_that_is_no_integer_is_0_and_reported),
		cmocka_unit_test(r19_language_is_one_of_three_and_defaults_to_typescript),
		cmocka_unit_test(a9_an_unknown_language_is_typescript_and_reported),
		cmocka_unit_test(r20_inputs_are_optional),
		cmocka_unit_test(r21_an_unknown_type_is_a_string_and_reported),
		cmocka_unit_test(r22_number),
		cmocka_unit_test(r23_boolean),
		cmocka_unit_test(r24_enum_values_are_a_comma_list_or_an_array),
		cmocka_unit_test(a3_values_are_trimmed_kept_in_order_and_made_strings),
		cmocka_unit_test(a4_an_enum_without_values_is_a_string_and_reported),
		cmocka_unit_test(r25_object_and_array_are_strings_and_reported),
		cmocka_unit_test(r26_a_missing_type_is_a_string_and_reported),
		cmocka_unit_test(r27_an_inputs_description_is_kept_and_missed),
		cmocka_unit_test(r28_an_input_is_required_unless_optional),
		cmocka_unit_test(r29_what_may_be_meant_as_sensitive_is),
		cmocka_unit_test(r29_a_sensitive_default_stands_in_no_fault),
		cmocka_unit_test(r30_values_of_an_enum_are_kept),
		cmocka_unit_test(r31_a_default_has_the_inputs_type),
		cmocka_unit_test(r32_inputs_keep_their_order),
		cmocka_unit_test(a10_unknown_keys_are_ignored),
		cmocka_unit_test(a13_line_ends_a_mark_and_blanks_after_the_fence_are_accepted),
		cmocka_unit_test(names_are_safe_as_directories_of_the_tree),
		cmocka_unit_test(pathological_front_matter_ends_soon),
		cmocka_unit_test(many_different_keys_end_soon),
		cmocka_unit_test(one_line_of_a_megabyte_ends_soon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
