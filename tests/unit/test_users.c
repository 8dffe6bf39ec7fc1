#include <sys/stat.h>

#include "core/tools/users.h"
#include "tests/unit/scratch.h"

static void what_may_be_an_address_is_a_user(void **state)
{
	(void)state;
	static const char *const good[] = { "ada@example.org", "a@b", "Ada.Byron+x@EXAMPLE.org",
		"o{}~!#%^_=-@sub.example.org",
		"\xd0\xb0\xd0\xb4\xd0\xb0@\xd0\xbf\xd1\x80.\xd1\x80\xd1\x84" };
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(user_name_is_valid(good[i]));
}

static void what_is_no_address_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "tools", "ada", "@", "@example.org", "ada@",
		".ada@example.org", "a@b@c", "ada @example.org", "ada\n@example.org",
		"ada\x7f@example.org", "ada\x1b[1m@example.org", "a:b@c", "a,b@c", "a;b@c",
		"a\\b@c", "\"a\"@c", "<a@c>", "a$(id)@c", "a`id`@c", "a|b@c", "a&b@c", "*@c", "?@c",
		"a'@c", "[a]@c", "ada\xff@c", "ada\xc0\x80@c", "ada\xe2\x80\xae@c",
		"ada\xe2\x80\x8b@c", "ada\xc2\x85@c", "ada\xc2\xa0@c", "ada\xef\xbb\xbf@c" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (user_name_is_valid(bad[i]))
			fail_msg("'%s' is taken for a user", bad[i]);
	char name[USER_NAME_MAX + 2];
	memset(name, 'a', sizeof(name));
	name[1] = '@';
	name[USER_NAME_MAX] = '\0';
	assert_true(user_name_is_valid(name));
	name[USER_NAME_MAX] = 'a';
	name[USER_NAME_MAX + 1] = '\0';
	assert_false(user_name_is_valid(name));
}

static void r10_the_users_are_the_directories_named_by_an_address(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "tools/hello");
	scratch_mkdir(scratch, "zoe@example.org/tools");
	scratch_mkdir(scratch, "ada@example.org");
	scratch_mkdir(scratch, ".hidden@example.org");
	scratch_mkdir(scratch, "backup");
	scratch_write(scratch, "file@example.org", "no directory");
	scratch_link(scratch, "ada@example.org", "link@example.org");
	assert_int_equal(mkfifoat(scratch->fd, "fifo@example.org", 0600), 0);
	struct root root = { .path = scratch->path, .fd = scratch->fd };
	struct users users;
	assert_int_equal(users_load(&root, &users), 0);
	assert_int_equal(users.count, 2);
	assert_string_equal(users.items[0], "ada@example.org");
	assert_string_equal(users.items[1], "zoe@example.org");
	assert_int_equal(users.faults.count, 2); /* in whatever order they lie there */
	auto_buf struct buf told = BUF_INIT(10000);
	faults_render(&users.faults, &told);
	assert_non_null(strstr(buf_str(&told), "/backup: warning: no user is shown"));
	assert_non_null(strstr(buf_str(&told), "/link@example.org: warning: no user is shown"));
	users_release(&users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(what_may_be_an_address_is_a_user),
		scratch_test(what_is_no_address_is_refused),
		scratch_test(r10_the_users_are_the_directories_named_by_an_address),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
