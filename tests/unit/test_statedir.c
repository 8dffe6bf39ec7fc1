/* State directories: one server a mount point, nothing of the dead, no foreign directory. */
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "core/running/statedir.h"
#include "tests/unit/scratch.h"

/* Where the directories of these tests lie: a /run of this process's own, or a runtime directory. */
static const char *base(void)
{
	return geteuid() == 0 ? "/run/pegfs" : getenv("XDG_RUNTIME_DIR");
}

static int own_base(void **state)
{
	if (geteuid() == 0) {
		(void)state;
		return unshare(CLONE_NEWNS) == 0 &&
				       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				       mount("none", "/run", "tmpfs", 0, NULL) == 0
			       ? 0
			       : -1;
	}
	static char path[] = "/tmp/pegfs-unit-XXXXXX";
	return mkdtemp(path) && setenv("XDG_RUNTIME_DIR", path, 1) == 0 ? 0 : -1;
}

static int clear_base(void **state)
{
	(void)state;
	if (geteuid() == 0)
		return umount2("/run", MNT_DETACH);
	return io_remove_tree(AT_FDCWD, getenv("XDG_RUNTIME_DIR"));
}

static void make(struct statedir *dir, const char *mountpoint)
{
	struct fail why = FAIL_INIT;
	statedir_make(dir, mountpoint, &why);
	assert_string_equal(why.text, "");
}

static void it_is_private_and_goes_with_all_that_is_in_it(void **state)
{
	(void)state;
	struct statedir dir = STATEDIR_INIT;
	struct stat st;
	mode_t mask = umask(077);
	make(&dir, "/a");
	umask(mask);
	assert_int_equal(fstat(dir.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711); /* hosts of others reach their caches */
	assert_int_equal(fstat(dir.calls_fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(base(), &st), 0);
	if (geteuid() == 0)
		assert_int_equal(st.st_mode & 07777, 0711);
	auto_free char *path = xstrdup(dir.path);
	int fd = openat(dir.calls_fd, "1", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkdirat(dir.fd, "cache", 0711), 0);
	assert_int_equal(mkdirat(dir.fd, "cache/0", 0711), 0);
	uint8_t secret[16];
	struct fail why = FAIL_INIT;
	assert_int_equal(statedir_get_secret(&dir, secret, sizeof(secret), &why), 0);
	statedir_remove(&dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_null(dir.path);
}

static void each_mount_point_has_its_own(void **state)
{
	(void)state;
	struct statedir a = STATEDIR_INIT, b = STATEDIR_INIT;
	make(&a, "/a");
	make(&b, "/b");
	assert_string_not_equal(a.path, b.path);
	statedir_remove(&a);
	assert_int_equal(access(b.path, F_OK), 0);
	statedir_remove(&b);
}

static void descriptors_do_not_leak(void **state)
{
	(void)state;
	size_t before = scratch_count_fds();
	struct statedir dir = STATEDIR_INIT;
	make(&dir, "/a");
	statedir_remove(&dir);
	assert_int_equal(scratch_count_fds(), before);
}

/* In a process of its own: takes a mount point, tells so, and waits to be killed. */
static pid_t start_server(const char *mountpoint)
{
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct statedir dir = STATEDIR_INIT;
		struct fail why = FAIL_INIT;
		if (statedir_make(&dir, mountpoint, &why) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void kill_server(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void what_a_killed_server_left_is_cleared(void **state)
{
	(void)state;
	kill_server(start_server("/a"));
	struct statedir dir = STATEDIR_INIT, other = STATEDIR_INIT;
	make(&dir, "/a");
	int fd = openat(dir.calls_fd, "1", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	/* Another mount's directory, whose server was killed as well, goes when anyone comes. */
	pid_t pid = start_server("/b");
	kill_server(pid);
	make(&other, "/c");
	statedir_remove(&dir);
	statedir_remove(&other);
	assert_int_equal(rmdir(base()), 0); /* empty */
}

static void who_serves_is_not_disturbed(void **state)
{
	(void)state;
	struct statedir dir = STATEDIR_INIT, other = STATEDIR_INIT;
	make(&dir, "/a");
	int fd = openat(dir.calls_fd, "1", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	make(&other, "/b");
	assert_int_equal(faccessat(dir.calls_fd, "1", F_OK, 0), 0);
	statedir_remove(&other);
	assert_int_equal(faccessat(dir.calls_fd, "1", F_OK, 0), 0);
	statedir_remove(&dir);
}

static void a_second_server_is_refused(void **state)
{
	(void)state;
	pid_t pid = start_server("/a");
	struct statedir dir = STATEDIR_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(statedir_make(&dir, "/a", &why), -EBUSY);
	assert_non_null(strstr(why.text, "umount"));
	/* What is not ours is not removed. */
	auto_free char *path = xstrdup(dir.path);
	statedir_remove(&dir);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(statedir_wait_free("/a", 0), -ETIMEDOUT);
	kill_server(pid);
	assert_int_equal(statedir_wait_free("/a", 1000), 0);
}

static void nobody_is_waited_for_where_nobody_serves(void **state)
{
	(void)state;
	assert_int_equal(statedir_wait_free("/nowhere", 0), 0);
	struct statedir dir = STATEDIR_INIT;
	make(&dir, "/a");
	statedir_remove(&dir);
	assert_int_equal(statedir_wait_free("/a", 0), 0);
}

static void check_base_refused(void)
{
	struct statedir dir = STATEDIR_INIT;
	struct fail why = FAIL_INIT;
	assert_int_equal(statedir_make(&dir, "/a", &why), -EPERM);
	assert_non_null(strstr(why.text, "remove it"));
	statedir_remove(&dir);
}

static void a_foreign_base_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir("/run/elsewhere", 0700), 0);
	assert_int_equal(symlink("/run/elsewhere", "/run/pegfs"), 0);
	check_base_refused();
	assert_int_equal(unlink("/run/pegfs"), 0);
	assert_int_equal(mkdir("/run/pegfs", 0700), 0);
	assert_int_equal(chown("/run/pegfs", 1, 1), 0);
	check_base_refused();
	assert_int_equal(chown("/run/pegfs", 0, 0), 0);
	assert_int_equal(chmod("/run/pegfs", 0777), 0);
	check_base_refused();
	assert_int_equal(rmdir("/run/pegfs"), 0);
	int fd = open("/run/pegfs", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	check_base_refused();
}

static void a_link_in_the_place_of_a_directory_is_refused(void **state)
{
	(void)state;
	struct statedir dir = STATEDIR_INIT;
	make(&dir, "/a");
	auto_free char *path = xstrdup(dir.path);
	statedir_remove(&dir);
	assert_int_equal(symlink("/tmp", path), 0);
	check_base_refused();
	assert_int_equal(unlink(path), 0);
}

/* In a container /run is often on a disk, on which each call would cost milliseconds. */
static void where_run_is_no_tmpfs_it_is_in_shared_memory(void **state)
{
	(void)state;
	struct statfs fs;
	if (geteuid() != 0 || statfs("/tmp", &fs) < 0 || fs.f_type == TMPFS_MAGIC)
		skip();
	assert_int_equal(mount("/tmp", "/run", NULL, MS_BIND, NULL), 0);
	assert_int_equal(mount("none", "/dev/shm", "tmpfs", 0, "size=1g"), 0);
	struct statedir dir = STATEDIR_INIT, taken = STATEDIR_INIT;
	make(&dir, "/a");
	assert_true(strncmp(dir.path, "/dev/shm/pegfs-0/", 17) == 0);
	statedir_remove(&dir);
	/* Anybody can write there: who was first keeps nobody from serving. */
	assert_int_equal(rmdir("/dev/shm/pegfs-0"), 0);
	assert_int_equal(mkdir("/dev/shm/pegfs-0", 0777), 0);
	assert_int_equal(chown("/dev/shm/pegfs-0", 1, 1), 0);
	make(&taken, "/a");
	assert_true(strncmp(taken.path, "/run/pegfs/", 11) == 0);
	statedir_remove(&taken);
	assert_int_equal(rmdir("/run/pegfs"), 0);
	assert_int_equal(umount2("/dev/shm", MNT_DETACH), 0);
	assert_int_equal(mount("none", "/dev/shm", "tmpfs", 0, "size=1m"), 0);
	make(&dir, "/a");
	assert_true(strncmp(dir.path, "/run/pegfs/", 11) == 0);
	statedir_remove(&dir);
	assert_int_equal(rmdir("/run/pegfs"), 0);
	assert_int_equal(umount2("/dev/shm", MNT_DETACH), 0);
	assert_int_equal(umount2("/run", MNT_DETACH), 0);
}

#define RACERS 4
#define ROUNDS 200

/* Each comes and goes, and clears away what it takes for abandoned. */
static void race(int number)
{
	auto_free char *mountpoint = xasprintf("/race-%d", number);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < ROUNDS; i++) {
		struct statedir dir = STATEDIR_INIT;
		struct fail why = FAIL_INIT;
		if (statedir_make(&dir, mountpoint, &why) < 0) {
			fprintf(stderr, "round %d: %s\n", i, why.text);
			_exit(1);
		}
		int fd = openat(dir.calls_fd, "1", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
		if (fd < 0)
			_exit(2);
		close(fd);
		sched_yield();
		struct stat st;
		if (fstatat(dir.calls_fd, "1", &st, 0) < 0 || stat(dir.path, &st) < 0)
			_exit(3);
		statedir_remove(&dir);
	}
	_exit(0);
}

static void servers_that_come_and_go_at_once_do_not_clear_each_other_away(void **state)
{
	(void)state;
	pid_t racers[RACERS];
	for (int i = 0; i < RACERS; i++)
		if ((racers[i] = fork()) == 0)
			race(i);
	for (int i = 0; i < RACERS; i++) {
		int status = 0;
		assert_int_equal(waitpid(racers[i], &status, 0), racers[i]);
		assert_int_equal(status, 0);
	}
}

#define base_test(function) cmocka_unit_test_setup_teardown(function, own_base, clear_base)

int main(void)
{
	const struct CMUnitTest tests[] = {
		base_test(it_is_private_and_goes_with_all_that_is_in_it),
		base_test(each_mount_point_has_its_own),
		base_test(descriptors_do_not_leak),
		base_test(what_a_killed_server_left_is_cleared),
		base_test(who_serves_is_not_disturbed),
		base_test(a_second_server_is_refused),
		base_test(nobody_is_waited_for_where_nobody_serves),
		base_test(a_foreign_base_is_refused),
		base_test(a_link_in_the_place_of_a_directory_is_refused),
		base_test(where_run_is_no_tmpfs_it_is_in_shared_memory),
		base_test(servers_that_come_and_go_at_once_do_not_clear_each_other_away),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
