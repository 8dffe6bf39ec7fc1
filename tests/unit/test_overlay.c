#include "core/tools/overlay.h"
#include "tests/unit/scratch.h"

static struct tool *made(const char *name, const char *dir_name)
{
	struct tool *tool = tool_new();
	tool->name = xstrdup(name);
	tool->dir_name = xstrdup(dir_name);
	tool->dir = xasprintf("/s/%s", dir_name);
	return tool;
}

/* As "NAME/DIR@SOURCE" with '-' where it is hidden and '=' where it is doubled. */
static void assert_is(const struct overlay *overlay, const char *wanted)
{
	auto_buf struct buf out = BUF_INIT(10000);
	for (size_t i = 0; i < overlay->count; i++) {
		const struct overlay_entry *entry = &overlay->entries[i];
		buf_printf(&out, "%s%s/%s@%zu%s%s", i ? " " : "", entry->tool->name,
			entry->tool->dir_name, entry->source, entry->hidden ? "-" : "",
			entry->doubled ? "=" : "");
	}
	assert_string_equal(buf_str(&out), wanted);
}

static void r12_the_last_of_a_name_is_not_hidden(void **state)
{
	(void)state;
	auto_tool struct tool *a = made("x", "a"), *b = made("x", "b"), *c = made("x", "c");
	auto_tool struct tool *w = made("w", "w"), *y = made("y", "a");
	struct overlay overlay = OVERLAY_INIT;
	assert_false(overlay_add(&overlay, b, 1));
	assert_false(overlay_add(&overlay, y, 0));
	assert_false(overlay_add(&overlay, w, 2));
	assert_is(&overlay, "w/w@2 x/b@1 y/a@0");
	assert_false(overlay_add(&overlay, c, 0));
	assert_is(&overlay, "w/w@2 x/c@0- x/b@1 y/a@0");
	assert_true(overlay_add(&overlay, a, 1));
	assert_is(&overlay, "w/w@2 x/c@0- x/a@1-= x/b@1 y/a@0");
	auto_faults struct faults faults = FAULTS_INIT;
	overlay_tell_doubled(&overlay, 0, &faults);
	assert_int_equal(faults.count, 0);
	overlay_tell_doubled(&overlay, 1, &faults);
	assert_int_equal(faults.count, 1);
	assert_string_equal(faults.items[0].file, "/s/a/TOOL.md");
	assert_true(overlay_remove(&overlay, b, 1));
	assert_is(&overlay, "w/w@2 x/c@0- x/a@1 y/a@0");
	assert_false(overlay_remove(&overlay, a, 1));
	assert_is(&overlay, "w/w@2 x/c@0 y/a@0");
	assert_false(overlay_remove(&overlay, y, 0));
	assert_false(overlay_remove(&overlay, w, 2));
	assert_false(overlay_remove(&overlay, c, 0));
	assert_is(&overlay, "");
	overlay_release(&overlay);
}

static void many_at_once_are_sorted(void **state)
{
	(void)state;
	auto_tool struct tool *a = made("x", "a"), *b = made("x", "b"), *c = made("w", "c");
	struct overlay overlay = OVERLAY_INIT;
	overlay_sort(&overlay);
	overlay_append(&overlay, b, 0);
	overlay_append(&overlay, a, 1);
	overlay_append(&overlay, a, 0);
	overlay_append(&overlay, c, 0);
	overlay_sort(&overlay);
	assert_is(&overlay, "w/c@0 x/a@0-= x/b@0- x/a@1");
	overlay_clear(&overlay);
	assert_is(&overlay, "");
	overlay_release(&overlay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r12_the_last_of_a_name_is_not_hidden),
		cmocka_unit_test(many_at_once_are_sorted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
