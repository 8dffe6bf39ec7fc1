#include <errno.h>

#include "core/tools/mend.h"
#include "tests/unit/golden.h"

static void assert_mended(const char *text, const char *wanted)
{
	auto_buf struct buf out = BUF_INIT(MEND_SIZE_MAX);
	struct mended mended = MENDED_INIT;
	int result = mend_yaml(text, strlen(text), &out, &mended);
	buf_release(&mended.keys);
	assert_int_equal(result, 0);
	assert_string_equal(buf_str(&out), wanted);
}

static void an_entry_that_needs_quotes_gets_them(void **state)
{
	(void)state;
	assert_mended("a: x: y\nb: 1\n", "a: \"x: y\"\nb: 1\n");
	assert_mended("a: [x] | y\n", "a: \"[x] | y\"\n");
	assert_mended("a: \"x\" and \\y\n", "a: \"\\\"x\\\" and \\\\y\"\n");
	assert_mended("'a': *x\n", "'a': \"*x\"\n");
	assert_mended("größe: a: b\n", "größe: \"a: b\"\n");
}

static void quotes_around_the_whole_are_taken_off(void **state)
{
	(void)state;
	assert_mended("a: \"C:\\dir\"\n", "a: \"C:\\\\dir\"\n");
	assert_mended("a: 'x' : 'y'\n", "a: \"'x' : 'y'\"\n");
}

static void lines_that_go_on_are_joined_and_their_number_stays(void **state)
{
	(void)state;
	assert_mended("a: x: y\n  z\n\n  w\nb: 1\n", "a: \"x: y z\\nw\"\n\n\n\nb: 1\n");
	assert_mended("a: |\n   x\n  y\nb: 1\n", "a: \"x\\ny\"\n\n\nb: 1\n");
	assert_mended("a: >-\n   x\n  y\nb: 1\n", "a: \"x y\"\n\n\nb: 1\n");
}

static void valid_entries_stay_as_they_are(void **state)
{
	(void)state;
	assert_mended("a:   'x' # y\nb:\n- 1\n- 2\nc: d: e\n",
		"a:   'x' # y\nb:\n- 1\n- 2\nc: \"d: e\"\n");
}

static void inputs_are_mended_one_by_one(void **state)
{
	(void)state;
	assert_mended("inputs:\n  # note\n  a:\n    type: string\n    description: x: y\n"
		      "  b:\n    type: number\n",
		"inputs:\n  # note\n  a:\n    type: string\n    description: \"x: y\"\n"
		"  b:\n    type: number\n");
	assert_mended("other:\n  a: x: y\n", "other: \"a: x: y\"\n\n");
}

static void lines_before_the_first_key_are_dropped(void **state)
{
	(void)state;
	auto_buf struct buf out = BUF_INIT(MEND_SIZE_MAX);
	struct mended mended = MENDED_INIT;
	const char text[] = "prose here\n# comment\n\na: x: y\n";
	assert_int_equal(mend_yaml(text, strlen(text), &out, &mended), 0);
	assert_string_equal(buf_str(&out), "\n\n\na: \"x: y\"\n");
	assert_int_equal(mended.dropped, 1);
	assert_int_equal(mended.count, 1);
	assert_string_equal(buf_str(&mended.keys), "'a'");
	buf_release(&mended.keys);
}

static void comments_of_their_own_are_no_text(void **state)
{
	(void)state;
	assert_mended("a: x: y\n# note\n  z\nb: 1\n", "a: \"x: y z\"\n\n\nb: 1\n");
	assert_mended("inputs:\n  a:\n    description: x: y\n  # next\n  b:\n    type: string\n",
		"inputs:\n  a:\n    description: \"x: y\"\n\n  b:\n    type: string\n");
}

static void r15_a_name_is_never_guessed(void **state)
{
	(void)state;
	static const char *const names[] = { "&n x", "*n", "!t x", "{{ X }}", "{a: b} c", "a: b",
		"[x] y", "|x", "\n  a: b\n  c" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		auto_buf struct buf out = BUF_INIT(MEND_SIZE_MAX);
		struct mended mended = MENDED_INIT;
		auto_free char *text = xasprintf("description: a: b\n\"name\": %s\n", names[i]);
		assert_int_equal(mend_yaml(text, strlen(text), &out, &mended), -ENOTSUP);
		assert_int_equal(mended.name_line, 2);
		buf_release(&mended.keys);
	}
	assert_mended("name: x\ndescription: a: b\n", "name: x\ndescription: \"a: b\"\n");
	assert_mended("inputs:\n  name:\n    description: a: b\n",
		"inputs:\n  name:\n    description: \"a: b\"\n");
}

static void r29_nothing_is_mended_that_may_lose_a_sensitive(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"a: x: y\n inputs:\n  t:\n    sensitive: true\n",
		"inputs:\n  t:\n    type: a: b\n   sensitive: true\n",
		"inputs:\n  t:\n    type: a: b\n     sensitive: true\n",
		"inputs:\n  t:\n    description: a: b\n   u:\n    sensitive: true\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		auto_buf struct buf out = BUF_INIT(MEND_SIZE_MAX);
		struct mended mended = MENDED_INIT;
		assert_int_equal(mend_yaml(texts[i], strlen(texts[i]), &out, &mended), -ENOTSUP);
		buf_release(&mended.keys);
	}
}

static void text_without_a_key_cannot_be_mended(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "\n", ": no key", "- a\n- b\n", "http://x\n",
		"a b: c\n" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		auto_buf struct buf out = BUF_INIT(MEND_SIZE_MAX);
		struct mended mended = MENDED_INIT;
		assert_int_equal(mend_yaml(texts[i], strlen(texts[i]), &out, &mended), -ENOENT);
		buf_release(&mended.keys);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_that_needs_quotes_gets_them),
		cmocka_unit_test(quotes_around_the_whole_are_taken_off),
		cmocka_unit_test(lines_that_go_on_are_joined_and_their_number_stays),
		cmocka_unit_test(valid_entries_stay_as_they_are),
		cmocka_unit_test(inputs_are_mended_one_by_one),
		cmocka_unit_test(lines_before_the_first_key_are_dropped),
		cmocka_unit_test(comments_of_their_own_are_no_text),
		cmocka_unit_test(r15_a_name_is_never_guessed),
		cmocka_unit_test(r29_nothing_is_mended_that_may_lose_a_sensitive),
		cmocka_unit_test(text_without_a_key_cannot_be_mended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
