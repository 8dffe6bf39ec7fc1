#include "core/tools/faults.h"
#include "tests/unit/golden.h"

static void assert_rendered(const struct faults *faults, const char *wanted)
{
	auto_buf struct buf out = BUF_INIT(GOLDEN_SIZE_MAX);
	faults_render(faults, &out);
	assert_string_equal(buf_str(&out), wanted);
}

static void faults_read_as_compilers_write_them(void **state)
{
	(void)state;
	auto_faults struct faults all = FAULTS_INIT, some = FAULTS_INIT;
	faults_add(&some, FAULT_ERROR, "code-a", 3, 7, "what is '%s'", "wrong");
	faults_add(&some, FAULT_WARNING, "code-b", 4, 0, "more");
	faults_add(&some, FAULT_WARNING, "code-c", 0, 0, "the whole file");
	faults_move(&all, &some, "/tools/x/TOOL.md");
	faults_add(&all, FAULT_WARNING, "code-d", 0, 0, "nowhere");
	assert_rendered(&all, "/tools/x/TOOL.md:3:7: error: what is 'wrong' [code-a]\n"
			      "/tools/x/TOOL.md:4: warning: more [code-b]\n"
			      "/tools/x/TOOL.md: warning: the whole file [code-c]\n"
			      "warning: nowhere [code-d]\n");
	assert_int_equal(some.count, 0);
}

static void a_file_that_is_known_stays(void **state)
{
	(void)state;
	auto_faults struct faults a = FAULTS_INIT, b = FAULTS_INIT;
	faults_add(&a, FAULT_ERROR, "x", 0, 0, "text");
	faults_move(&b, &a, "first");
	faults_move(&a, &b, "second");
	assert_rendered(&a, "first: error: text [x]\n");
}

static void nothing_in_a_fault_can_forge_a_line_or_speak_to_a_terminal(void **state)
{
	(void)state;
	auto_faults struct faults all = FAULTS_INIT, some = FAULTS_INIT;
	faults_add(
		&some, FAULT_ERROR, "x", 0, 0, "a\nb\x1b[31m\x7f \xc2\x9b \xff gr\xc3\xbc\xc3\x9f");
	faults_move(&all, &some, "/t/a\nerror: b\xff");
	assert_string_equal(
		all.items[0].text, "a\\x0ab\\x1b[31m\\x7f \\xc2\\x9b \\xff gr\xc3\xbc\xc3\x9f");
	assert_rendered(&all,
		"/t/a\\x0aerror: b\\xff: error: a\\x0ab\\x1b[31m\\x7f \\xc2\\x9b \\xff "
		"gr\xc3\xbc\xc3\x9f [x]\n");
}

static void long_texts_are_cut_between_characters(void **state)
{
	(void)state;
	auto_faults struct faults faults = FAULTS_INIT;
	char text[3001];
	for (size_t i = 0; i + 1 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	text[3000] = '\0';
	faults_add(&faults, FAULT_ERROR, "x", 0, 0, "%s", text);
	assert_null(strstr(faults.items[0].text, "\\x"));
	assert_true(strlen(faults.items[0].text) > 1000);
}

static void excerpts_are_short_and_whole(void **state)
{
	(void)state;
	assert_string_equal(faults_excerpt("short").text, "short");
	char text[301];
	memset(text, 'a', 300);
	text[300] = '\0';
	struct faults_excerpt excerpt = faults_excerpt(text);
	assert_int_equal(strlen(excerpt.text), sizeof(excerpt.text) - 1);
	assert_string_equal(excerpt.text + strlen(excerpt.text) - 4, "a...");
	for (size_t i = 0; i + 1 < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	excerpt = faults_excerpt(text);
	assert_string_equal(excerpt.text + strlen(excerpt.text) - 6, "\xe2\x82\xac...");
}

static void copies_are_equal_and_apart(void **state)
{
	(void)state;
	auto_faults struct faults a = FAULTS_INIT, b = FAULTS_INIT, c = FAULTS_INIT;
	assert_true(faults_equal(&a, &b));
	faults_add(&c, FAULT_WARNING, "x", 1, 2, "text");
	faults_move(&a, &c, "file");
	assert_false(faults_equal(&a, &b));
	faults_copy(&b, &a);
	assert_true(faults_equal(&a, &b));
	assert_false(faults_have_error(&b));
	faults_add(&b, FAULT_ERROR, "y", 0, 0, "other");
	assert_true(faults_have_error(&b));
	assert_false(faults_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_read_as_compilers_write_them),
		cmocka_unit_test(a_file_that_is_known_stays),
		cmocka_unit_test(nothing_in_a_fault_can_forge_a_line_or_speak_to_a_terminal),
		cmocka_unit_test(long_texts_are_cut_between_characters),
		cmocka_unit_test(excerpts_are_short_and_whole),
		cmocka_unit_test(copies_are_equal_and_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
