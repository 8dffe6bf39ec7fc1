/* The command line of bubblewrap. What it does is tested on real mounts (test_security.py). */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <stdbool.h>
#include <string.h>

#include "core/running/sandbox.h"

static const char *const env[] = { "OFFICER_USER_ROOT=/data/ada", "OFFICER_EMAIL_DB=mails", NULL };
static const char *const bare_env[] = { "OFFICER_USER_ROOT=//", NULL };
static const char *const argv[] = { "/bin/sh", "-c", "true", NULL };

static void make(struct sandbox *sandbox, enum sandbox_kind kind, const char *const *given_env)
{
	const struct sandbox_setup setup = { .kind = kind,
		.bwrap = "/usr/bin/bwrap",
		.program = argv[0],
		.lib_dir = "/lib/pegfs",
		.tool_dir = "/tools/a",
		.cache_dir = "/run/cache",
		.env = given_env,
		.argv = argv };
	sandbox_make(sandbox, &setup);
}

static bool shows(const struct sandbox *sandbox, const char *how, const char *path)
{
	for (size_t i = 0; i + 2 < sandbox->count; i++)
		if (strcmp(sandbox->words[i], how) == 0 && strcmp(sandbox->words[i + 1], path) == 0)
			return strcmp(sandbox->words[i + 2], path) == 0;
	return false;
}

static bool has(const struct sandbox *sandbox, const char *word)
{
	for (size_t i = 0; i < sandbox->count; i++)
		if (strcmp(sandbox->words[i], word) == 0)
			return true;
	return false;
}

static void only_the_users_data_and_the_cache_can_be_written(void **state)
{
	(void)state;
	struct sandbox sandbox;
	make(&sandbox, SANDBOX_BWRAP, env);
	assert_true(shows(&sandbox, "--ro-bind", "/tools/a"));
	assert_true(shows(&sandbox, "--ro-bind", "/lib/pegfs"));
	assert_true(shows(&sandbox, "--bind-try", "/data/ada"));
	assert_true(shows(&sandbox, "--bind", "/run/cache"));
	assert_false(has(&sandbox, "mails")); /* no path */
	assert_false(has(&sandbox, "--unshare-net"));
	assert_string_equal(sandbox.words[0], "/usr/bin/bwrap");
	assert_string_equal(sandbox.words[sandbox.count - 4], "--");
	assert_string_equal(sandbox.words[sandbox.count - 1], "true");
	assert_null(sandbox.words[sandbox.count]);
	sandbox_release(&sandbox);
}

static void the_whole_system_is_never_the_users_data(void **state)
{
	(void)state;
	struct sandbox sandbox;
	make(&sandbox, SANDBOX_BWRAP_OFFLINE, bare_env);
	assert_false(has(&sandbox, "--bind-try"));
	assert_true(has(&sandbox, "--unshare-net"));
	sandbox_release(&sandbox);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_users_data_and_the_cache_can_be_written),
		cmocka_unit_test(the_whole_system_is_never_the_users_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
