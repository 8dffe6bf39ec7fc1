/* The command line of what enters containers. What it does is tested on real mounts (test_runin.py). */
#include <string.h>

#include "core/running/enter.h"
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

static char no_text[] = "", cgroups[] = "0::/a b";

static struct anchor make_anchor(void)
{
	struct anchor anchor = {
		.user_fd = -1, .root_fd = 90, .cgroups = cgroups, .label = no_text
	};
	for (size_t i = 0; i < ANCHOR_NAMESPACES; i++)
		anchor.namespaces[i] = -1;
	anchor.limits[0] = (struct rlimit){ 1, 2 };
	return anchor;
}

static const char *find(const struct enter *enter, const char *name)
{
	for (size_t i = 0; i < enter->count; i++)
		if (strncmp(enter->words[i], name, strlen(name)) == 0)
			return enter->words[i] + strlen(name);
	return NULL;
}

static void descriptors_are_numbered_as_the_child_has_them(void **state)
{
	(void)state;
	struct anchor anchor = make_anchor();
	anchor.namespaces[3] = 70;
	anchor.namespaces[6] = 71;
	anchor.user_fd = 80;
	const struct identity who = {
		.uid = 7, .gid = 8, .groups = { 9, 10 }, .group_count = 2, .caps = 0xff
	};
	const struct enter_setup setup = { .lib_dir = "/lib/x",
		.who = &who,
		.anchor = &anchor,
		.tool_dir = "/t/a",
		.heap = "--heap" };
	struct enter enter;
	enter_make(&enter, &setup);
	assert_string_equal(enter.words[0], "/lib/x/host/enter/enter");
	assert_string_equal(find(&enter, "namespaces="), "5,6,");
	assert_string_equal(find(&enter, "user="), "7");
	assert_string_equal(find(&enter, "root="), "8");
	const int expected[] = { 70, 71, 80, 90 };
	assert_int_equal(enter.fd_count, 4);
	assert_memory_equal(enter.fds, expected, sizeof(expected));
	assert_string_equal(find(&enter, "uid="), "7");
	assert_string_equal(find(&enter, "gid="), "8");
	assert_string_equal(find(&enter, "groups="), "9,10,");
	assert_string_equal(find(&enter, "caps="), "ff");
	assert_string_equal(find(&enter, "cgroups="), "0::/a b");
	assert_string_equal(find(&enter, "dir="), "/t/a");
	assert_string_equal(find(&enter, "script="), "/lib/x/host/node/bundle.cjs");
	assert_int_equal(strncmp(find(&enter, "limits="), "1:2,0:0,", 8), 0);
	assert_non_null(find(&enter, "--heap"));
	assert_null(enter.words[enter.count]);
	enter_release(&enter);
}

static void what_is_the_same_as_here_is_not_joined(void **state)
{
	(void)state;
	const struct anchor anchor = make_anchor();
	const struct identity who = { .uid = 0 };
	const struct enter_setup setup = {
		.lib_dir = "/l", .who = &who, .anchor = &anchor, .tool_dir = "/t", .is_python = true
	};
	struct enter enter;
	enter_make(&enter, &setup);
	assert_string_equal(find(&enter, "namespaces="), "");
	assert_null(find(&enter, "user="));
	assert_string_equal(find(&enter, "root="), "5");
	assert_string_equal(find(&enter, "script="), "/l/host/python/bundle.py");
	assert_int_equal(enter.fd_count, 1);
	enter_release(&enter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptors_are_numbered_as_the_child_has_them),
		cmocka_unit_test(what_is_the_same_as_here_is_not_joined),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
