#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include "core/base/io.h"
#include "tests/unit/scratch.h"

/* ---- reading and writing */

static void read_all_reads_to_the_end(void **state)
{
	struct scratch *scratch = *state;
	auto_free char *big = xcalloc(1, 300000);
	memset(big, 'x', 300000);
	scratch_write_bytes(scratch, "big", big, 300000);
	auto_buf struct buf out = BUF_INIT(300000);
	assert_int_equal(io_load_beneath(scratch->fd, "big", &out), 0);
	assert_int_equal(out.len, 300000);
	assert_memory_equal(out.data, big, 300000);
	assert_int_equal(out.data[out.len], '\0');
}

static void read_all_appends(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "f", "two");
	auto_buf struct buf out = BUF_INIT(100);
	buf_puts(&out, "one ");
	assert_int_equal(io_load_beneath(scratch->fd, "f", &out), 0);
	assert_string_equal(buf_str(&out), "one two");
}

static void read_all_stops_at_the_maximum(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "f", "12345");
	auto_buf struct buf fits = BUF_INIT(5);
	assert_int_equal(io_load_beneath(scratch->fd, "f", &fits), 0);
	assert_string_equal(buf_str(&fits), "12345");
	auto_buf struct buf small = BUF_INIT(4);
	assert_int_equal(io_load_beneath(scratch->fd, "f", &small), -EFBIG);
	auto_buf struct buf none = BUF_INIT(0);
	scratch_write(scratch, "empty", "");
	assert_int_equal(io_load_beneath(scratch->fd, "empty", &none), 0);
}

static void read_all_says_what_read_says(void **state)
{
	(void)state;
	auto_buf struct buf out = BUF_INIT(10);
	assert_int_equal(io_read_all(-1, &out), -EBADF);
}

struct slow_writer {
	int fd;
	size_t len;
};

static void *read_slowly(void *arg)
{
	struct slow_writer *reader = arg;
	char bytes[1000];
	ssize_t got;
	while ((got = read(reader->fd, bytes, sizeof(bytes))) > 0)
		reader->len += (size_t)got;
	return NULL;
}

static void write_all_goes_on_after_short_writes(void **state)
{
	(void)state;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	struct slow_writer reader = { .fd = pair[1] };
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	auto_free char *bytes = xcalloc(1, 2000000);
	assert_int_equal(io_write_all(pair[0], bytes, 2000000), 0);
	close(pair[0]);
	pthread_join(thread, NULL);
	close(pair[1]);
	assert_int_equal(reader.len, 2000000);
}

/* ---- opening beneath */

static void nothing_leads_out_of_the_directory(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "in/file", "in");
	scratch_write(scratch, "secret", "out");
	scratch_link(scratch, "../secret", "in/up");
	scratch_link(scratch, "/etc/passwd", "in/absolute");
	scratch_link(scratch, "file", "in/fine");
	scratch_link(scratch, "/proc/self/root", "in/magic");
	auto_close int dir = openat(scratch->fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(io_open_beneath(dir, "../secret", O_RDONLY), -EXDEV);
	assert_int_equal(io_open_beneath(dir, "/etc/passwd", O_RDONLY), -EXDEV);
	assert_int_equal(io_open_beneath(dir, "up", O_RDONLY), -EXDEV);
	assert_int_equal(io_open_beneath(dir, "absolute", O_RDONLY), -EXDEV);
	assert_true(io_open_beneath(dir, "magic/etc", O_PATH) < 0);
	auto_close int fd = io_open_beneath(dir, "fine", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

static void only_regular_files_are_opened_as_such(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "dir");
	assert_int_equal(mkfifoat(scratch->fd, "fifo", 0644), 0);
	scratch_link(scratch, "fifo", "to_fifo");
	scratch_link(scratch, "nothing", "dangling");
	scratch_link(scratch, "circle", "circle");
	assert_int_equal(io_open_regular(scratch->fd, "dir"), -EISDIR);
	assert_int_equal(io_open_regular(scratch->fd, "fifo"), -EINVAL);
	assert_int_equal(io_open_regular(scratch->fd, "to_fifo"), -EINVAL);
	assert_int_equal(io_open_regular(scratch->fd, "dangling"), -ENOENT);
	assert_int_equal(io_open_regular(scratch->fd, "circle"), -ELOOP);
	assert_int_equal(io_open_regular(scratch->fd, "none"), -ENOENT);
	scratch_write(scratch, "dir/f", "yes");
	auto_close int fd = io_open_regular(scratch->fd, "dir/f");
	assert_true(fd >= 0);
	char byte;
	assert_int_equal(read(fd, &byte, 1), 1);
}

static void a_leased_file_does_not_hold_up_the_daemon(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "f", "x");
	signal(SIGIO, SIG_IGN);
	auto_close int holder = openat(scratch->fd, "f", O_RDWR | O_CLOEXEC);
	if (fcntl(holder, F_SETLEASE, F_WRLCK) < 0)
		skip(); /* the file system has no leases */
	assert_int_equal(io_open_beneath(scratch->fd, "f", O_RDONLY), -EAGAIN);
	fcntl(holder, F_SETLEASE, F_UNLCK);
	auto_close int fd = io_open_beneath(scratch->fd, "f", O_RDONLY);
	assert_true(fd >= 0);
}

static void refusals_leave_no_descriptor_open(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "dir");
	assert_int_equal(mkfifoat(scratch->fd, "fifo", 0644), 0);
	size_t before = scratch_count_fds();
	auto_buf struct buf out = BUF_INIT(10);
	io_load_beneath(scratch->fd, "dir", &out);
	io_load_beneath(scratch->fd, "fifo", &out);
	io_load_beneath(scratch->fd, "none", &out);
	io_replace_file(scratch->fd, "dir", "x", 1, 0644);
	assert_int_equal(scratch_count_fds(), before);
}

/* ---- replacing and removing */

static void assert_holds(const struct scratch *scratch, const char *path, const char *wanted)
{
	auto_buf struct buf out = BUF_INIT(1000);
	assert_int_equal(io_load_beneath(scratch->fd, path, &out), 0);
	assert_string_equal(buf_str(&out), wanted);
}

static void a_file_is_replaced_whole(void **state)
{
	struct scratch *scratch = *state;
	assert_int_equal(io_replace_file(scratch->fd, "f", "one", 3, 0600), 0);
	auto_close int old = io_open_regular(scratch->fd, "f");
	assert_int_equal(io_replace_file(scratch->fd, "f", "two!", 4, 0600), 0);
	assert_holds(scratch, "f", "two!");
	auto_buf struct buf before = BUF_INIT(100);
	assert_int_equal(io_read_all(old, &before), 0);
	assert_string_equal(buf_str(&before), "one");
	assert_int_equal(faccessat(scratch->fd, ".f.new", F_OK, 0), -1);
}

static void what_a_crash_left_is_no_hindrance(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "victim", "safe");
	scratch_link(scratch, "victim", ".f.new");
	assert_int_equal(io_replace_file(scratch->fd, "f", "new", 3, 0600), 0);
	assert_holds(scratch, "f", "new");
	assert_holds(scratch, "victim", "safe");
}

static void a_file_that_cannot_be_replaced_leaves_nothing(void **state)
{
	struct scratch *scratch = *state;
	scratch_mkdir(scratch, "d");
	assert_int_equal(io_replace_file(scratch->fd, "d", "x", 1, 0600), -EISDIR);
	assert_int_equal(faccessat(scratch->fd, ".d.new", F_OK, 0), -1);
	char name[NAME_MAX + 1];
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX] = '\0';
	assert_int_equal(io_replace_file(scratch->fd, name, "x", 1, 0600), -ENAMETOOLONG);
}

static void a_tree_is_removed_and_links_are_not_followed(void **state)
{
	struct scratch *scratch = *state;
	scratch_write(scratch, "keep/file", "x");
	scratch_write(scratch, "tree/a/b/c", "x");
	scratch_write(scratch, "tree/d", "x");
	scratch_link(scratch, "../keep", "tree/link");
	scratch_link(scratch, "nothing", "tree/dangling");
	assert_int_equal(io_remove_tree(scratch->fd, "tree"), 0);
	assert_int_equal(faccessat(scratch->fd, "tree", F_OK, 0), -1);
	assert_holds(scratch, "keep/file", "x");
	assert_int_equal(io_remove_tree(scratch->fd, "tree"), 0);
	assert_int_equal(io_remove_tree(scratch->fd, "keep/file"), 0);
}

static void a_tree_that_is_too_deep_is_refused(void **state)
{
	struct scratch *scratch = *state;
	int at = dup(scratch->fd);
	for (int i = 0; i < IO_REMOVE_DEPTH_MAX + 10; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = below;
	}
	close(at);
	size_t before = scratch_count_fds();
	assert_int_equal(io_remove_tree(scratch->fd, "d"), -ELOOP);
	assert_int_equal(scratch_count_fds(), before);
	/* Halve it, so that the test can clean up. */
	auto_buf struct buf path = BUF_INIT(4096);
	for (int i = 0; i < 200; i++)
		buf_puts(&path, "d/");
	assert_int_equal(renameat(scratch->fd, buf_str(&path), scratch->fd, "rest"), 0);
	assert_int_equal(io_remove_tree(scratch->fd, "d"), 0);
}

static void nonblock_is_set_and_cleared(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(io_set_nonblock(ends[0], true), 0);
	assert_true(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(io_set_nonblock(ends[0], false), 0);
	assert_false(fcntl(ends[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(io_set_nonblock(-1, true), -EBADF);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(read_all_reads_to_the_end),
		scratch_test(read_all_appends),
		scratch_test(read_all_stops_at_the_maximum),
		scratch_test(read_all_says_what_read_says),
		scratch_test(write_all_goes_on_after_short_writes),
		scratch_test(nothing_leads_out_of_the_directory),
		scratch_test(only_regular_files_are_opened_as_such),
		scratch_test(a_leased_file_does_not_hold_up_the_daemon),
		scratch_test(refusals_leave_no_descriptor_open),
		scratch_test(a_file_is_replaced_whole),
		scratch_test(what_a_crash_left_is_no_hindrance),
		scratch_test(a_file_that_cannot_be_replaced_leaves_nothing),
		scratch_test(a_tree_is_removed_and_links_are_not_followed),
		scratch_test(a_tree_that_is_too_deep_is_refused),
		scratch_test(nonblock_is_set_and_cleared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
