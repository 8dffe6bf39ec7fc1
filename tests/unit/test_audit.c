#include <jansson.h>
#include <sched.h>
#include <sys/mount.h>

#include "core/running/audit.h"
#include "core/tools/tool.h"
#include "tests/unit/scratch.h"

#define SMALL ((size_t)8192)

static char tool_name[] = "it's \"odd\",\"uid\":7,\"pid_ns\":9";
static struct tool tool = { .name = tool_name, .version = 3 };

static struct call call_of(uid_t uid, uint64_t pid_ns)
{
	return (struct call){ .id = "6a3f",
		.tool = &tool,
		.uid = uid,
		.gid = 100,
		.pid_ns = pid_ns,
		.chain = { .links = { { .pid = 42 } }, .count = 1 },
		.state = CALL_DONE,
		.reason = "s3cret",
		.created_ms = 1000,
		.started_ms = 1010,
		.changed_ms = 1500 };
}

static void open_trail(struct audit *audit, int dir_fd, size_t size_max, const char *path)
{
	struct fail why = FAIL_INIT;
	assert_int_equal(audit_open(audit, dir_fd, size_max, path, &why), 0);
}

static struct buf rendered(const struct audit *audit, bool all, uid_t uid, uint64_t pid_ns)
{
	const struct audit_reader reader = { .all = all, .uid = uid, .pid_ns = pid_ns };
	struct buf out = BUF_INIT(AUDIT_SIZE_MAX);
	assert_int_equal(audit_render(audit, &reader, &out), 0);
	return out;
}

static size_t lines_for(const struct audit *audit, bool all, uid_t uid, uint64_t pid_ns)
{
	auto_buf struct buf text = rendered(audit, all, uid, pid_ns);
	size_t lines = 0;
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	return lines;
}

static void a_record_is_a_line_of_json_without_any_text(void **state)
{
	const struct scratch *scratch = *state;
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, NULL);
	const struct call call = call_of(1000, 5);
	audit_end(&audit, &call);
	auto_buf struct buf text = rendered(&audit, true, 0, 0);
	auto_json json_t *record = json_loads(buf_str(&text), 0, NULL);
	assert_non_null(record);
	assert_string_equal(json_string_value(json_object_get(record, "tool")), tool_name);
	assert_string_equal(json_string_value(json_object_get(record, "state")), "done");
	assert_int_equal(json_integer_value(json_object_get(record, "uid")), 1000);
	assert_int_equal(json_integer_value(json_object_get(record, "waited_ms")), 10);
	assert_int_equal(json_integer_value(json_object_get(record, "ran_ms")), 490);
	assert_int_equal(json_integer_value(json_object_get(record, "pid")), 42);
	assert_null(strstr(buf_str(&text), "s3cret"));
	audit_release(&audit);
}

/* The name of the tool looks like more fields: only those before it count. */
static void each_sees_his_own(void **state)
{
	const struct scratch *scratch = *state;
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, NULL);
	const struct call ones = call_of(1000, 5), others = call_of(1001, 5),
			  far = call_of(1000, 6), unknown = call_of(1000, 0);
	audit_call(&audit, &ones);
	audit_call(&audit, &others);
	audit_call(&audit, &far);
	audit_call(&audit, &unknown);
	audit_server(&audit, 1);
	assert_int_equal(lines_for(&audit, true, 1000, 5), 5);
	assert_int_equal(lines_for(&audit, false, 1000, 5), 2);
	assert_int_equal(lines_for(&audit, false, 1000, 0), 3);
	assert_int_equal(lines_for(&audit, false, 1001, 5), 1);
	assert_int_equal(lines_for(&audit, false, 7, 9), 0);
	assert_int_equal(lines_for(&audit, false, 100, 5), 0);
	audit_release(&audit);
}

static void the_trail_is_bounded_and_keeps_the_newest(void **state)
{
	const struct scratch *scratch = *state;
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, scratch->fd, SMALL, NULL);
	size_t most = 0;
	for (uint64_t i = 1; i <= 500; i++) {
		audit_server(&audit, i);
		auto_buf struct buf text = rendered(&audit, true, 0, 0);
		assert_true(text.len <= SMALL);
		most = text.len > most ? text.len : most;
	}
	assert_true(most > SMALL * 3 / 4);
	auto_buf struct buf text = rendered(&audit, true, 0, 0);
	assert_non_null(strstr(buf_str(&text), "\"generation\":500}\n"));
	assert_non_null(strstr(buf_str(&text), "\"generation\":480}\n"));
	assert_null(strstr(buf_str(&text), "\"generation\":1}\n"));
	audit_release(&audit);
}

static void the_next_one_goes_on(void **state)
{
	const struct scratch *scratch = *state;
	for (uint64_t generation = 1; generation <= 3; generation++) {
		struct audit audit = AUDIT_INIT;
		open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, NULL);
		audit_server(&audit, generation);
		assert_int_equal(lines_for(&audit, true, 0, 0), generation);
		audit_release(&audit);
	}
}

static void half_a_line_of_one_who_was_killed_is_not_shown(void **state)
{
	const struct scratch *scratch = *state;
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, NULL);
	audit_server(&audit, 1);
	assert_int_equal(io_write_all(audit.fd, "{\"time\":\"20", 11), 0);
	audit_release(&audit);
	open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, NULL);
	audit_server(&audit, 2);
	auto_buf struct buf text = rendered(&audit, true, 0, 0);
	char *second = strchr(buf_str(&text), '\n') + 1;
	auto_json json_t *record = json_loads(second, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(record, "generation")), 2);
	audit_release(&audit);
}

static void a_file_gets_each_record_and_is_made_anew_where_it_is_gone(void **state)
{
	const struct scratch *scratch = *state;
	auto_free char *path = xasprintf("%s/audit.log", scratch->path);
	auto_free char *moved = xasprintf("%s/audit.1", scratch->path);
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, scratch->fd, AUDIT_SIZE_MAX, path);
	audit_server(&audit, 1);
	assert_int_equal(rename(path, moved), 0);
	audit_server(&audit, 2);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = BUF_INIT(4096);
	struct stat st;
	assert_int_equal(io_read_all(fd, &text), 0);
	assert_non_null(strstr(buf_str(&text), "\"generation\":2}\n"));
	assert_null(strstr(buf_str(&text), "\"generation\":1}\n"));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	audit_release(&audit);
}

static bool is_whole(const struct buf *text)
{
	for (char *line = text->data, *end; line && *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return false;
		*end = '\0';
		auto_json json_t *record = json_loads(line, 0, NULL);
		if (!record)
			return false;
	}
	return true;
}

/* A record that has no room is missing, none is half there, and with room it goes on. */
static void a_full_disk_makes_a_gap_and_no_half_record(void **state)
{
	const struct scratch *scratch = *state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	scratch_mkdir(scratch, "small");
	auto_free char *path = xasprintf("%s/small", scratch->path);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=16k"), 0);
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ballast = openat(dir_fd, "ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct audit audit = AUDIT_INIT;
	open_trail(&audit, dir_fd, AUDIT_SIZE_MAX, NULL);
	audit_server(&audit, 1);
	char page[4096] = { 0 };
	while (write(ballast, page, sizeof(page)) > 0)
		;
	for (uint64_t i = 2; i < 200; i++)
		audit_server(&audit, i);
	assert_true(audit.complained);
	assert_int_equal(ftruncate(ballast, 0), 0);
	audit_server(&audit, 4711);
	assert_false(audit.complained);
	auto_buf struct buf text = rendered(&audit, true, 0, 0);
	assert_non_null(strstr(buf_str(&text), "\"generation\":4711}\n"));
	assert_null(strstr(buf_str(&text), "\"generation\":199}\n"));
	assert_true(is_whole(&text));
	audit_release(&audit);
	close(ballast);
	close(dir_fd);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

static void a_file_that_cannot_be_is_an_error_at_the_start(void **state)
{
	const struct scratch *scratch = *state;
	auto_free char *pipe_path = xasprintf("%s/pipe", scratch->path);
	assert_int_equal(mkfifo(pipe_path, 0600), 0);
	const char *const paths[] = { pipe_path, scratch->path, "/dev/null", "/no/such/place" };
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct audit audit = AUDIT_INIT;
		struct fail why = FAIL_INIT;
		assert_true(audit_open(&audit, scratch->fd, AUDIT_SIZE_MAX, paths[i], &why) < 0);
		assert_non_null(strstr(why.text, paths[i]));
		audit_release(&audit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_is_a_line_of_json_without_any_text,
			scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(each_sees_his_own, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			the_trail_is_bounded_and_keeps_the_newest, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			the_next_one_goes_on, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(half_a_line_of_one_who_was_killed_is_not_shown,
			scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			a_file_gets_each_record_and_is_made_anew_where_it_is_gone, scratch_setup,
			scratch_teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_makes_a_gap_and_no_half_record,
			scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_is_an_error_at_the_start,
			scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
