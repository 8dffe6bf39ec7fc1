/* Tools' own files: which of them a number stands for, and what of them is shown. */
#include "core/tools/root.h"
#include "fs/file.h"
#include "fs/ino.h"
#include "tests/unit/scratch.h"

struct world {
	void *scratch;
	struct scratch dir;
	struct files files;
	struct tool *tool;
};

static int setup(void **state)
{
	struct world *world = xcalloc(1, sizeof(*world));
	int result = scratch_setup(&world->scratch);
	world->dir = *(struct scratch *)world->scratch;
	scratch_mkdir(&world->dir, "hello/bin");
	int code = 0;
	world->tool = tool_new();
	world->tool->name = xstrdup("hello");
	world->tool->source = xstrdup(world->dir.path);
	world->tool->dir_name = xstrdup("hello");
	world->tool->dir = xasprintf("%s/hello", world->dir.path);
	world->tool->root = root_open(world->dir.path, NULL, &code);
	*state = world;
	return result < 0 || !world->tool->root ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	files_release(&world->files);
	tool_unref(world->tool);
	int result = scratch_teardown(&world->scratch);
	free(world);
	return result;
}

static const struct file *note(struct world *world, const char *path)
{
	struct stat st;
	assert_int_equal(file_look(world->tool, path, &st), 0);
	const struct file *file = files_note(&world->files, world->tool, path, &st);
	assert_non_null(file);
	return file;
}

/* Puts another file in its place; the old one stays where nobody sees it, so its inode stays taken. */
static void replace(struct world *world, const char *path, const char *text)
{
	static int number = 0;
	auto_free char *old = xasprintf("old-%d", number++);
	auto_free char *whole = xasprintf("hello/%s", path);
	assert_int_equal(renameat(world->dir.fd, whole, world->dir.fd, old), 0);
	scratch_write(&world->dir, whole, text);
}

static void a_file_keeps_its_number(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "1");
	uint64_t ino = note(world, "a")->ino;
	assert_int_equal(ino_class(ino), INO_FILE);
	scratch_write(&world->dir, "hello/a", "changed in its place");
	assert_true(note(world, "a")->ino == ino);
	struct stat st;
	assert_int_equal(files_stat(&world->files, world->tool, ino, &st), 0);
	assert_int_equal(st.st_size, 20);
	assert_int_equal(files_get(&world->files, ino)->lookups, 2);
}

static void a_file_that_was_replaced_stays_what_it_was(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "old");
	const struct file *old = note(world, "a");
	replace(world, "a", "something new");
	struct stat st;
	assert_int_equal(files_stat(&world->files, world->tool, old->ino, &st), 1);
	assert_int_equal(file_reopen(old, world->tool), -ESTALE);
	const struct file *new = note(world, "a");
	assert_true(new->ino != old->ino);
	assert_int_equal(files_stat(&world->files, world->tool, new->ino, &st), 0);
	assert_int_equal(st.st_size, 13);
	auto_close int fd = file_reopen(new, world->tool);
	assert_true(fd >= 0);
	/* What people see as its number is the path's. */
	struct stat shown;
	file_show(old, &shown);
	assert_true(shown.st_ino == st.st_ino);
	assert_true(shown.st_ino == file_ino(world->tool, "a"));
}

static void a_file_that_was_removed_can_still_be_looked_at_but_not_opened(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "old");
	const struct file *file = note(world, "a");
	assert_int_equal(unlinkat(world->dir.fd, "hello/a", 0), 0);
	struct stat st;
	assert_int_equal(files_stat(&world->files, world->tool, file->ino, &st), 1);
	assert_int_equal(file_reopen(file, world->tool), -ESTALE);
}

static void a_directory_is_the_one_at_its_path(void **state)
{
	struct world *world = *state;
	uint64_t ino = note(world, "bin")->ino;
	struct stat st;
	assert_int_equal(renameat(world->dir.fd, "hello/bin", world->dir.fd, "old"), 0);
	assert_int_equal(files_stat(&world->files, world->tool, ino, &st), -ENOENT);
	scratch_mkdir(&world->dir, "hello/bin");
	assert_true(note(world, "bin")->ino == ino);
	/* A file in its place is another thing. */
	assert_int_equal(unlinkat(world->dir.fd, "hello/bin", AT_REMOVEDIR), 0);
	scratch_write(&world->dir, "hello/bin", "");
	assert_int_equal(files_stat(&world->files, world->tool, ino, &st), -ESTALE);
	assert_true(note(world, "bin")->ino != ino);
}

static void what_is_no_file_directory_or_link_is_not_there(void **state)
{
	struct world *world = *state;
	struct stat st;
	assert_int_equal(mkfifoat(world->dir.fd, "hello/pipe", 0666), 0);
	assert_int_equal(file_look(world->tool, "pipe", &st), -ENOENT);
	assert_int_equal(file_open(world->tool, "pipe", O_RDONLY), -ENOENT);
	assert_int_equal(file_look(world->tool, "nothing", &st), -ENOENT);
}

static void links_are_shown_and_not_followed(void **state)
{
	struct world *world = *state;
	scratch_link(&world->dir, "/etc/passwd", "hello/out");
	scratch_link(&world->dir, "/etc", "hello/dir");
	struct stat st;
	assert_int_equal(file_look(world->tool, "out", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_true(file_open(world->tool, "out", O_RDONLY) < 0);
	assert_true(file_open(world->tool, "dir/passwd", O_RDONLY) < 0);
	assert_true(file_look(world->tool, "dir/passwd", &st) < 0);
	assert_true(file_look(world->tool, "../hello", &st) < 0);
	auto_buf struct buf target = BUF_INIT(4096);
	assert_int_equal(file_read_link(world->tool, "out", &target), 0);
	assert_string_equal(buf_str(&target), "/etc/passwd");
}

static void nothing_is_writable_and_no_bit_gives_rights(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "");
	assert_int_equal(fchmodat(world->dir.fd, "hello/a", 07777, 0), 0);
	struct stat st;
	file_show(note(world, "a"), &st);
	assert_int_equal(st.st_mode, S_IFREG | 0555);
}

static void what_the_kernel_gives_up_is_forgotten(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "");
	uint64_t ino = note(world, "a")->ino;
	note(world, "a");
	note(world, "a");
	files_forget(&world->files, ino, 2);
	assert_non_null(files_get(&world->files, ino));
	files_forget(&world->files, ino, 1);
	assert_null(files_get(&world->files, ino));
	/* Of look-ups that an earlier server answered. */
	files_forget(&world->files, ino, 5);
	note(world, "a");
	files_forget(&world->files, ino, 5);
	assert_null(files_get(&world->files, ino));
	struct stat st;
	assert_int_equal(files_stat(&world->files, world->tool, ino, &st), -ESTALE);
}

/* Names can be made whose hashes meet; here a stranger simply sits on the number. */
static void who_has_the_number_of_another_file_gets_its_own(void **state)
{
	struct world *world = *state;
	scratch_write(&world->dir, "hello/a", "");
	uint64_t ino = note(world, "a")->ino;
	struct file *stranger = map_get(&world->files.by_ino, ino);
	free(stranger->path);
	stranger->path = xstrdup("stranger");
	const struct file *file = note(world, "a");
	assert_true(file->ino != ino);
	assert_true(note(world, "a")->ino == file->ino);
	assert_int_equal(file->lookups, 2);
}

#define file_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_test(a_file_keeps_its_number),
		file_test(a_file_that_was_replaced_stays_what_it_was),
		file_test(a_file_that_was_removed_can_still_be_looked_at_but_not_opened),
		file_test(a_directory_is_the_one_at_its_path),
		file_test(what_is_no_file_directory_or_link_is_not_there),
		file_test(links_are_shown_and_not_followed),
		file_test(nothing_is_writable_and_no_bit_gives_rights),
		file_test(what_the_kernel_gives_up_is_forgotten),
		file_test(who_has_the_number_of_another_file_gets_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
