#include "core/tools/pathwalk.h"
#include "tests/unit/mounts.h"

static void note_step(void *arg, int dir_fd, const char *name)
{
	struct stat st;
	assert_int_equal(fstat(dir_fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	buf_printf(arg, "%s ", name);
}

/* Walks to path in the scratch directory, to the same directory as the kernel does. */
static void assert_leads(const struct scratch *scratch, const char *path, const char *steps)
{
	auto_buf struct buf seen = BUF_INIT(10000);
	auto_free char *whole = xasprintf("%s/%s", scratch->path, path);
	auto_close int fd = pathwalk_open(whole, NULL, note_step, &seen);
	auto_close int wanted = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat a, b;
	assert_true(fd >= 0 && wanted >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(wanted, &b), 0);
	assert_true(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	/* Behind "tmp" and the name of the scratch directory. */
	const char *own = strchr(strchr(buf_str(&seen), ' ') + 1, ' ') + 1;
	assert_string_equal(own, steps);
}

static void assert_fails(const struct scratch *scratch, const char *path, int code)
{
	auto_free char *whole = xasprintf("%s/%s", scratch->path, path);
	size_t fds = scratch_count_fds();
	assert_int_equal(pathwalk_open(whole, NULL, NULL, NULL), code);
	assert_int_equal(scratch_count_fds(), fds);
}

static void each_name_on_the_way_is_told(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "a/b/c");
	assert_leads(scratch, "a/b/c", "a b c ");
	assert_leads(scratch, "a//./b/c/", "a b c ");
	assert_leads(scratch, "a/b/../b/c/.", "a b b c ");
	assert_leads(scratch, ".", "");
	auto_close int top = pathwalk_open("/", NULL, NULL, NULL);
	assert_true(top >= 0);
}

static void links_are_followed(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "a/b/c");
	scratch_link(scratch, "b/c", "a/link");
	scratch_link(scratch, "../a/link", "a/again");
	auto_free char *absolute = xasprintf("%s/a", scratch->path);
	scratch_link(scratch, absolute, "top");
	assert_leads(scratch, "a/link", "a link b c ");
	assert_leads(scratch, "a/again/", "a again a link b c ");
	auto_free char *last = xstrdup(strrchr(scratch->path, '/') + 1);
	auto_free char *steps = xasprintf("top tmp %s a link b c ", last);
	assert_leads(scratch, "top/link", steps);
}

static void what_leads_nowhere_is_an_error(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "a");
	scratch_write(scratch, "a/file", "");
	scratch_link(scratch, "nothing", "a/dangling");
	scratch_link(scratch, "circle", "a/circle");
	assert_fails(scratch, "a/none", -ENOENT);
	assert_fails(scratch, "a/none/deeper", -ENOENT);
	assert_fails(scratch, "a/dangling", -ENOENT);
	assert_fails(scratch, "a/circle", -ELOOP);
	assert_fails(scratch, "a/file", -ENOTDIR);
	assert_fails(scratch, "a/file/x", -ENOTDIR);
	char name[300];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_fails(scratch, name, -ENAMETOOLONG);
}

static void a_mount_is_entered(void **state)
{
	need_mounts();
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "mnt/below");
	auto_free char *path = xasprintf("%s/mnt", scratch->path);
	assert_int_equal(mount("none", path, "tmpfs", 0, NULL), 0);
	/* Not through the scratch directory's descriptor: that is of the namespace from before. */
	auto_free char *upper = xasprintf("%s/upper", path);
	assert_int_equal(mkdir(upper, 0755), 0);
	assert_leads(scratch, "mnt/upper", "mnt upper ");
	assert_leads(scratch, "mnt/upper/../../mnt", "mnt upper mnt ");
	assert_fails(scratch, "mnt/below", -ENOENT);
	assert_int_equal(umount(path), 0);
}

static void t17_our_own_mount_is_never_entered(void **state)
{
	need_mounts();
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "mnt/sub");
	scratch_link(scratch, "mnt/sub", "link");
	auto_free char *path = xasprintf("%s/mnt", scratch->path);
	auto_free char *sub = xasprintf("%s/mnt/sub", scratch->path);
	auto_close int below = openat(scratch->fd, "mnt", O_PATH | O_CLOEXEC);
	auto_close int fuse = mount_unserved(path);
	assert_fails(scratch, "mnt", -EXDEV);
	assert_fails(scratch, "mnt/sub", -EXDEV);
	assert_fails(scratch, "link", -EXDEV);
	const struct covered other = { .path = scratch->path, .fd = below };
	assert_int_equal(pathwalk_open(sub, &other, NULL, NULL), -EXDEV);
	const struct covered covered = { .path = path, .fd = below };
	auto_close int fd = pathwalk_open(sub, &covered, NULL, NULL);
	struct stat a, b;
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstatat(below, "sub", &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

static void where_no_link_is_to_be_none_is_followed(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "real/ada/tools");
	scratch_mkdir(scratch, "real/bob");
	scratch_link(scratch, "real", "data");
	scratch_link(scratch, "../ada/tools", "real/bob/tools");
	scratch_link(scratch, "ada", "real/eve");
	static const char *const paths[] = { "data/ada/tools", "data/bob/tools", "data/eve/tools" };
	for (size_t i = 0; i < 3; i++) {
		auto_free char *path = xasprintf("%s/%s", scratch->path, paths[i]);
		const struct covered plain = { .fd = -1, .plain = strlen("/ada/tools") };
		auto_buf struct buf seen = BUF_INIT(1000);
		auto_close int fd = pathwalk_open(path, &plain, note_step, &seen);
		assert_true(i == 0 ? fd >= 0 : fd == -ELOOP);
		assert_string_equal(buf_str(&seen), i == 0   ? "ada tools "
						    : i == 1 ? "bob tools "
							     : "eve ");
		auto_close int free_fd = pathwalk_open(path, NULL, NULL, NULL);
		assert_true(free_fd >= 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(each_name_on_the_way_is_told),
		scratch_test(links_are_followed),
		scratch_test(where_no_link_is_to_be_none_is_followed),
		scratch_test(what_leads_nowhere_is_an_error),
		scratch_test(a_mount_is_entered),
		scratch_test(t17_our_own_mount_is_never_entered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
