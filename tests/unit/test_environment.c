/* What a tool finds in its environment, and what it does not (R69 to R78). */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/running/environment.h"

static int clear_environment(void **state)
{
	(void)state;
	return clearenv();
}

static const char *value_of(const struct environment *environment, const char *name)
{
	const char *value = NULL;
	size_t len = strlen(name);
	for (size_t i = 0; i < environment->count; i++) {
		const char *item = environment->items[i];
		if (strncmp(item, name, len) != 0 || item[len] != '=')
			continue;
		assert_null(value); /* no name twice */
		value = item + len + 1;
	}
	return value;
}

static void check_default(const char *name, const char *wanted)
{
	struct environment environment = ENVIRONMENT_INIT;
	environment_load(&environment, "/a:/b");
	const char *value = value_of(&environment, name);
	if (wanted)
		assert_string_equal(value, wanted);
	else
		assert_null(value);
	environment_release(&environment);
}

static void check_handed_on(const char *name)
{
	setenv(name, "given", 1);
	check_default(name, "given");
	unsetenv(name);
}

static void r69_home(void **state)
{
	(void)state;
	check_default("HOME", "/");
	check_handed_on("HOME");
}

static void r70_user_home_is_home(void **state)
{
	(void)state;
	check_default("OFFICER_USER_HOME", "/");
	setenv("HOME", "/home/a", 1);
	check_default("OFFICER_USER_HOME", "/home/a");
}

static void r70_user_home_follows_a_home_that_was_asked_for(void **state)
{
	(void)state;
	struct environment environment = ENVIRONMENT_INIT;
	struct fail why = FAIL_INIT;
	environment_load(&environment, "/a");
	assert_int_equal(environment_put(&environment, "HOME=/other", &why), 0);
	assert_string_equal(value_of(&environment, "HOME"), "/other");
	assert_string_equal(value_of(&environment, "OFFICER_USER_HOME"), "/other");
	environment_release(&environment);
}

static void r71_user_root(void **state)
{
	(void)state;
	check_default("OFFICER_USER_ROOT", "/officer/user");
	check_handed_on("OFFICER_USER_ROOT");
}

static void r72_tools_dirs_are_those_of_the_mount(void **state)
{
	(void)state;
	setenv("PI_TOOLS_DIRS", "/elsewhere", 1);
	check_default("PI_TOOLS_DIRS", "/a:/b");
}

static void r73_email_db(void **state)
{
	(void)state;
	check_default("OFFICER_EMAIL_DB", "/officer/data/emails.db");
	check_handed_on("OFFICER_EMAIL_DB");
}

static void r74_resources_are_json(void **state)
{
	(void)state;
	check_default("OFFICER_RESOURCES", "{}");
	check_handed_on("OFFICER_RESOURCES");
}

static void r75_searxng_url(void **state)
{
	(void)state;
	check_default("PI_SEARXNG_URL", NULL);
	check_handed_on("PI_SEARXNG_URL");
}

static void r76_r77_r78_what_is_not_configured_is_absent_and_not_empty(void **state)
{
	(void)state;
	static const char *const names[] = { "OFFICER_APIFY_TOKEN", "OFFICER_BROWSER_RELAY_PORT",
		"OFFICER_BROWSER_RELAY_TOKEN" };
	for (size_t i = 0; i < 3; i++) {
		check_default(names[i], NULL);
		setenv(names[i], "", 1);
		check_default(names[i], NULL);
		check_handed_on(names[i]);
	}
}

static void nothing_else_of_the_daemon_leaks_in(void **state)
{
	(void)state;
	setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
	setenv("LD_PRELOAD", "x", 1);
	setenv("NODE_OPTIONS", "x", 1);
	setenv("OFFICER_OTHER", "x", 1);
	check_default("AWS_SECRET_ACCESS_KEY", NULL);
	check_default("LD_PRELOAD", NULL);
	check_default("NODE_OPTIONS", NULL);
	check_default("OFFICER_OTHER", NULL);
	check_default("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

static void what_is_put_replaces_and_the_list_ends_in_null(void **state)
{
	(void)state;
	struct environment environment = ENVIRONMENT_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(environment_put(&environment, "A=1", &why), 0);
	assert_int_equal(environment_put(&environment, "AB=2", &why), 0);
	assert_int_equal(environment_put(&environment, "A==x", &why), 0);
	for (char name[] = "V0="; name[1] <= '9'; name[1]++)
		assert_int_equal(environment_put(&environment, name, &why), 0);
	assert_int_equal(environment.count, 12);
	assert_string_equal(environment.items[0], "A==x");
	assert_string_equal(value_of(&environment, "AB"), "2");
	assert_null(environment.items[environment.count]);
	environment_release(&environment);
}

static void what_has_no_name_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "=", "=x", "NAME" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct environment environment = ENVIRONMENT_INIT;
		struct fail why = FAIL_INIT;
		assert_int_equal(environment_put(&environment, bad[i], &why), -EINVAL);
		assert_non_null(strstr(why.text, "NAME=VALUE"));
		assert_int_equal(environment.count, 0);
		environment_release(&environment);
	}
}

#define fresh_test(function) cmocka_unit_test_setup(function, clear_environment)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fresh_test(r69_home),
		fresh_test(r70_user_home_is_home),
		fresh_test(r70_user_home_follows_a_home_that_was_asked_for),
		fresh_test(r71_user_root),
		fresh_test(r72_tools_dirs_are_those_of_the_mount),
		fresh_test(r73_email_db),
		fresh_test(r74_resources_are_json),
		fresh_test(r75_searxng_url),
		fresh_test(r76_r77_r78_what_is_not_configured_is_absent_and_not_empty),
		fresh_test(nothing_else_of_the_daemon_leaks_in),
		fresh_test(what_is_put_replaces_and_the_list_ends_in_null),
		fresh_test(what_has_no_name_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
