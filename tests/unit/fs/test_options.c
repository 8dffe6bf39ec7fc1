/* What `pegfs mount` was asked for: words of the command line, of mount(8) and of fstab(5). */
#include <ctype.h>
#include <sys/mount.h>

#include "core/cmd/command.h"
#include "fs/options.h"
#include "tests/unit/scratch.h"

#define WORDS_MAX 8

struct world {
	void *scratch;
	struct scratch dir;
	struct mount_options options;
	char text[FAIL_TEXT_MAX]; /* of the last failure */
};

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	int result = scratch_setup(&world->scratch);
	world->dir = *(struct scratch *)world->scratch;
	scratch_mkdir(&world->dir, "mnt");
	scratch_mkdir(&world->dir, "lib");
	setenv("PI_TOOLS_DIRS", "/from/environment", 1);
	*state = world;
	return result < 0 || chdir(world->dir.path) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	options_release(&world->options);
	int result = chdir("/") < 0 ? -1 : scratch_teardown(&world->scratch);
	free(world);
	return result;
}

/* Parses `mount WORDS`, which end with NULL; a lib-dir is given unless they have one. */
static int parse(struct world *world, bool is_helper, const char *const words[WORDS_MAX])
{
	char *argv[WORDS_MAX + 4] = { xstrdup("mount"), xstrdup("--lib-dir"), xstrdup("lib") };
	int argc = 3;
	for (size_t i = 0; i < WORDS_MAX && words[i]; i++)
		argv[argc++] = xstrdup(words[i]);
	char *owned[WORDS_MAX + 4];
	memcpy(owned, argv, sizeof(owned)); /* getopt_long changes their order */
	struct fail why = FAIL_INIT;
	options_release(&world->options);
	int result = options_parse(&world->options, is_helper, argc, argv, &why);
	snprintf(world->text, sizeof(world->text), "%s", why.code ? why.text : "");
	for (int i = 0; i < argc; i++)
		free(owned[i]);
	return result;
}

#define WORDS(...) ((const char *const[WORDS_MAX]){ __VA_ARGS__ })

static void check_good(struct world *world, const char *const words[WORDS_MAX])
{
	int result = parse(world, false, words);
	assert_string_equal(world->text, "");
	assert_int_equal(result, 0);
}

static void check_bad(struct world *world, const char *const words[WORDS_MAX], const char *part)
{
	assert_true(parse(world, false, words) < 0);
	if (!strstr(world->text, part))
		fail_msg("'%s' does not contain '%s'", world->text, part);
}

static void r11_tools_come_from_the_environment_unless_they_are_given(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("mnt"));
	assert_string_equal(world->options.tools, "/from/environment");
	check_good(world, WORDS("--tools", "/a:/b", "mnt"));
	assert_string_equal(world->options.tools, "/a:/b");
	check_good(world, WORDS("-t/c", "mnt"));
	assert_string_equal(world->options.tools, "/c");
}

static void r96_empty_segments_do_no_harm_and_relative_ones_are_made_absolute(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("-t", "::/a::tools:", "mnt"));
	auto_free char *wanted = xasprintf("/a:%s/tools", world->dir.path);
	assert_string_equal(world->options.tools, wanted);
	check_bad(world, WORDS("-t", "::", "mnt"), "no tool directories");
	unsetenv("PI_TOOLS_DIRS");
	check_bad(world, WORDS("mnt"), "no tool directories");
}

static void paths_do_not_depend_on_the_working_directory(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "integrations.json", "{}");
	check_good(world, WORDS("--integrations", "integrations.json", "--seed", "lib", "--audit",
				  "audit.log", "mnt"));
	const struct mount_options *options = &world->options;
	const char *const paths[] = { options->mountpoint, options->lib_dir, options->integrations,
		options->seed, options->audit };
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		assert_true(strncmp(paths[i], world->dir.path, strlen(world->dir.path)) == 0);
	check_bad(world, WORDS("--integrations", "nothing", "mnt"), "--integrations 'nothing'");
	check_bad(world, WORDS("--seed", "nothing", "mnt"), "--seed 'nothing'");
	check_bad(world, WORDS("--lib-dir", "nothing", "mnt"), "--lib-dir 'nothing'");
	/* Given twice, the last counts. */
	check_good(world, WORDS("--seed", "mnt", "--seed", "lib", "--lib-dir", "lib", "mnt"));
}

static void the_audit_trail_goes_to_a_file_or_in_front_to_standard_error(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("mnt"));
	assert_null(world->options.audit);
	check_good(world, WORDS("--audit", "/var/log/pegfs", "mnt"));
	assert_string_equal(world->options.audit, "/var/log/pegfs");
	check_good(world, WORDS("-o", "audit=/var/log/pegfs", "mnt"));
	assert_string_equal(world->options.audit, "/var/log/pegfs");
	check_good(world, WORDS("--audit", "-", "-f", "mnt"));
	assert_string_equal(world->options.audit, "-");
	check_bad(world, WORDS("--audit", "-", "mnt"), "--foreground");
}

static void readers_may_see_it_elsewhere(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("mnt/"));
	assert_string_equal(world->options.shown_at, world->options.mountpoint);
	check_good(world, WORDS("--at", "/officer/tools//", "mnt"));
	assert_string_equal(world->options.shown_at, "/officer/tools");
	check_good(world, WORDS("--at", "/", "mnt"));
	assert_string_equal(world->options.shown_at, "/");
	check_bad(world, WORDS("--at", "tools", "mnt"), "no absolute path");
}

static void one_mount_point_is_wanted(void **state)
{
	struct world *world = *state;
	check_bad(world, WORDS(NULL), "mount point is missing");
	check_bad(world, WORDS("mnt", "mnt"), "too many");
	check_bad(world, WORDS("nowhere/at/all"), "mount point 'nowhere/at/all'");
}

static void mount_s_helpers_get_the_tools_first(void **state)
{
	struct world *world = *state;
	assert_int_equal(parse(world, true, WORDS("/a:/b", "mnt", "-o", "rw,keep=3")), 0);
	assert_string_equal(world->options.tools, "/a:/b");
	assert_int_equal(world->options.keep, 3);
	/* A word that is no path names nothing. */
	assert_int_equal(parse(world, true, WORDS("pegfs", "mnt")), 0);
	assert_string_equal(world->options.tools, "/from/environment");
	assert_int_equal(parse(world, true, WORDS("/a", "mnt", "-n", "-s", "-v")), 0);
}

static void words_of_mount_become_flags(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("mnt"));
	assert_int_equal(world->options.mount_flags, MS_NOSUID | MS_NODEV);
	check_good(world, WORDS("-o", "ro,noexec,noatime,suid", "mnt"));
	assert_int_equal(world->options.mount_flags, MS_NODEV | MS_RDONLY | MS_NOEXEC | MS_NOATIME);
	check_good(world, WORDS("-o", "ro,rw,,defaults,nofail,_netdev,x-systemd.automount", "mnt"));
	assert_int_equal(world->options.mount_flags, MS_NOSUID | MS_NODEV);
	check_good(world, WORDS("-o", "comment=x y,user,allow_other", "mnt"));
	assert_true(world->options.allow_other);
}

static void any_option_may_stand_behind_o(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("-o", "tools=/a\\,b:/c,keep=7,foreground", "mnt"));
	assert_string_equal(world->options.tools, "/a,b:/c");
	assert_int_equal(world->options.keep, 7);
	assert_true(world->options.foreground);
	check_bad(world, WORDS("-o", "keep", "mnt"), "no option 'keep'");
	check_bad(world, WORDS("-o", "foreground=1", "mnt"), "no option 'foreground=1'");
	check_bad(world, WORDS("-o", "kee=1", "mnt"), "no option 'kee=1'");
	check_bad(world, WORDS("-o", "keep=0", "mnt"), "no number from 1");
}

static void what_is_not_known_is_named(void **state)
{
	struct world *world = *state;
	check_bad(world, WORDS("--nonsense", "mnt"), "no option '--nonsense'");
	check_bad(world, WORDS("-z", "mnt"), "no option '-z'");
	check_bad(world, WORDS("mnt", "--keep"), "missing behind '--keep'");
	check_bad(world, WORDS("--log-level", "loud", "mnt"), "none of error");
	check_bad(world, WORDS("--env", "NAME", "mnt"), "NAME=VALUE");
}

/* Every option that takes a number: its limits are told, and nothing else is taken for one. */
static void numbers_are_numbers(void **state)
{
	struct world *world = *state;
	size_t count = 0;
	for (const struct command_option *row = options_table(); row->name; row++) {
		auto_free char *option = xasprintf("--%s", row->name);
		const char *at = strstr(row->help, "(default: ");
		if (!row->value || !at || !isdigit((unsigned char)at[10]))
			continue;
		static const char *const bad[] = { "", "x", "1x", "-1", "1.5",
			"99999999999999999999", "0x10" };
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
			check_bad(world, WORDS(option, bad[i], "mnt"), "is no number from");
		/* Its default is one of them. */
		auto_free char *usual = xstrndup(at + 10, strcspn(at + 10, ")"));
		check_good(world, WORDS(option, usual, "mnt"));
		count++;
	}
	assert_true(count >= 10);
}

static void a_default_is_what_the_help_says(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("mnt"));
	auto_buf struct buf out = BUF_INIT(1 << 16);
	assert_int_equal(options_render(&world->options, &out), 0);
	for (const struct command_option *row = options_table(); row->name; row++) {
		const char *at = strstr(row->help, "(default: ");
		if (!at || at[10] < '0' || at[10] > '9')
			continue;
		auto_free char *line =
			xasprintf("\n%s=%.*s\n", row->name, (int)strcspn(at + 10, ")"), at + 10);
		if (!strstr(out.data, line))
			fail_msg("%s is not in\n%s", line, out.data);
	}
}

static void values_of_the_environment_are_not_shown(void **state)
{
	struct world *world = *state;
	check_good(world, WORDS("--env", "TOKEN=s3cret", "--env", "A=1", "mnt"));
	auto_buf struct buf out = BUF_INIT(1 << 16);
	assert_int_equal(options_render(&world->options, &out), 0);
	assert_non_null(strstr(out.data, "env=TOKEN\n"));
	assert_null(strstr(out.data, "s3cret"));
}

static void what_was_asked_for_goes_over_the_integrations(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "i.json", "{\"apify\":{\"token\":\"from-file\"}}");
	check_good(world, WORDS("--integrations", "i.json", "--env", "HOME=/h", "mnt"));
	struct environment environment = ENVIRONMENT_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(options_load_environment(&world->options, &environment, &why), 0);
	bool home = false, user_home = false, resources = false;
	for (size_t i = 0; i < environment.count; i++) {
		home |= strcmp(environment.items[i], "HOME=/h") == 0;
		user_home |= strcmp(environment.items[i], "OFFICER_USER_HOME=/h") == 0;
		resources |= strstr(environment.items[i], "OFFICER_RESOURCES=") &&
			     strstr(environment.items[i], "from-file");
	}
	assert_true(home && user_home && resources);
	environment_release(&environment);
}

#define options_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		options_test(r11_tools_come_from_the_environment_unless_they_are_given),
		options_test(r96_empty_segments_do_no_harm_and_relative_ones_are_made_absolute),
		options_test(paths_do_not_depend_on_the_working_directory),
		options_test(the_audit_trail_goes_to_a_file_or_in_front_to_standard_error),
		options_test(readers_may_see_it_elsewhere),
		options_test(one_mount_point_is_wanted),
		options_test(mount_s_helpers_get_the_tools_first),
		options_test(words_of_mount_become_flags),
		options_test(any_option_may_stand_behind_o),
		options_test(what_is_not_known_is_named),
		options_test(numbers_are_numbers),
		options_test(a_default_is_what_the_help_says),
		options_test(values_of_the_environment_are_not_shown),
		options_test(what_was_asked_for_goes_over_the_integrations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
