/* Records of calls: whole or an error, never shorter, also where there is no room. */
#include <sched.h>
#include <sys/mount.h>

#include "core/running/record.h"
#include "tests/unit/scratch.h"

static char tool_name[] = "hello";
static struct tool tool = { .name = tool_name };

static struct call make_call(const struct record_parts *parts)
{
	struct call call = { .seq = 0x1234, .id = "1234", .tool = &tool, .state = CALL_DONE };
	call.part_len[CALL_PART_REQUEST] = strlen(parts->request);
	call.part_len[CALL_PART_RESULT_JSON] = strlen(parts->result_json);
	call.part_len[CALL_PART_RESULT_TEXT] = strlen(parts->result_text);
	return call;
}

static const struct record_parts small = { "{\"a\":1}\n", "{\"content\":[]}\n", "text\n" };

static void check_part(int dir_fd, const struct call *call, enum call_part part, size_t offset,
	size_t size, const char *wanted)
{
	struct fail why = FAIL_INIT;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	assert_int_equal(record_read(dir_fd, call, part, offset, size, &out, &why), 0);
	assert_string_equal(buf_str(&out), wanted);
	assert_int_equal(out.len, strlen(wanted));
}

static void each_part_comes_back_from_any_offset(void **state)
{
	struct scratch *scratch = *state;
	const struct call call = make_call(&small);
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	check_part(scratch->fd, &call, CALL_PART_REQUEST, 0, 100, "{\"a\":1}\n");
	check_part(scratch->fd, &call, CALL_PART_RESULT_JSON, 0, 100, "{\"content\":[]}\n");
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
	/* Never a byte of the next part. */
	check_part(scratch->fd, &call, CALL_PART_REQUEST, 3, 100, "\":1}\n");
	check_part(scratch->fd, &call, CALL_PART_RESULT_JSON, 2, 3, "con");
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, 5, 1, "");
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, SIZE_MAX, SIZE_MAX, "");
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, 1, SIZE_MAX, "ext\n");
	check_part(scratch->fd, &call, CALL_PART_LOG, 0, 100, "");
}

static void a_record_is_loaded_as_it_was_saved(void **state)
{
	struct scratch *scratch = *state;
	struct call call = make_call(&small), loaded;
	char name[TOOL_KEY_MAX];
	call.uid = 1000;
	call.gid = 1001;
	call.pid_ns = UINT64_C(4026531836);
	call.created_ms = 1;
	call.started_ms = 2;
	call.changed_ms = 3;
	call.chain = (struct chain){ .links = { { 7, 8 }, { 1, 2 } }, .count = 2 };
	strcpy(call.reason, "it \"broke\"");
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	assert_int_equal(record_load(scratch->fd, "1234", &loaded, name), 0);
	assert_string_equal(name, "hello");
	assert_int_equal(loaded.seq, call.seq);
	assert_string_equal(loaded.id, call.id);
	assert_string_equal(loaded.reason, call.reason);
	assert_int_equal(loaded.state, CALL_DONE);
	assert_int_equal(loaded.uid, 1000);
	assert_int_equal(loaded.gid, 1001);
	assert_int_equal(loaded.pid_ns, call.pid_ns);
	assert_int_equal(loaded.created_ms, 1);
	assert_int_equal(loaded.started_ms, 2);
	assert_int_equal(loaded.changed_ms, 3);
	assert_int_equal(loaded.chain.count, 2);
	assert_true(process_equal(&loaded.chain.links[1], &call.chain.links[1]));
	check_part(scratch->fd, &loaded, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
}

static void a_mark_changes_the_header_alone(void **state)
{
	struct scratch *scratch = *state;
	struct call call = make_call(&small), loaded;
	char name[TOOL_KEY_MAX];
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	call.state = CALL_RUNNING;
	assert_int_equal(record_mark(scratch->fd, &call), 0);
	assert_int_equal(record_load(scratch->fd, "1234", &loaded, name), 0);
	assert_int_equal(loaded.state, CALL_RUNNING);
	check_part(scratch->fd, &loaded, CALL_PART_REQUEST, 0, 100, "{\"a\":1}\n");
	check_part(scratch->fd, &loaded, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
}

static void what_is_no_record_is_not_loaded(void **state)
{
	struct scratch *scratch = *state;
	struct call loaded;
	char name[TOOL_KEY_MAX];
	scratch_write(scratch, "77", "{}");
	assert_true(record_load(scratch->fd, "77", &loaded, name) < 0);
	assert_true(record_load(scratch->fd, "78", &loaded, name) < 0);
	assert_true(record_load(scratch->fd, "lock", &loaded, name) < 0);
}

static void the_header_is_one_line_of_json(void **state)
{
	struct scratch *scratch = *state;
	struct call call = make_call(&small);
	call.chain = (struct chain){ .links = { { 7, 8 }, { 1, 2 } }, .count = 2 };
	strcpy(call.reason, "it \"broke\"");
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	auto_buf struct buf file = BUF_INIT(1 << 20);
	assert_int_equal(io_load_beneath(scratch->fd, "1234", &file), 0);
	auto_json json_t *header = json_loadb(file.data, 4096, 0, NULL);
	assert_non_null(header);
	assert_string_equal(json_string_value(json_object_get(header, "reason")), "it \"broke\"");
	assert_string_equal(json_string_value(json_object_get(header, "state")), "done");
	const json_t *chain = json_object_get(header, "chain");
	assert_int_equal(json_array_size(chain), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(chain, 0), 0)), 7);
	assert_string_equal(file.data + 4096, "{\"a\":1}\n{\"content\":[]}\ntext\n");
}

/* The longest of everything, with bytes that JSON writes as six. */
static void the_largest_header_has_room(void **state)
{
	struct scratch *scratch = *state;
	struct call call = make_call(&small);
	char name[TOOL_NAME_MAX + 1];
	memset(name, 'n', TOOL_NAME_MAX);
	name[TOOL_NAME_MAX] = '\0';
	struct tool long_named = { .name = name };
	call.tool = &long_named;
	memset(call.id, 'i', CALL_ID_MAX);
	memset(call.reason, '\x01', CALL_REASON_MAX - 1);
	for (size_t i = 0; i < CALLER_CHAIN_MAX; i++)
		call.chain.links[i] = (struct process){ 4194303, INT64_MAX };
	call.chain.count = CALLER_CHAIN_MAX;
	call.uid = call.gid = UINT32_MAX;
	call.created_ms = call.started_ms = call.changed_ms = INT64_MAX;
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
}

static void big_parts_come_back(void **state)
{
	struct scratch *scratch = *state;
	const size_t len = 3 << 20;
	char *text = xcalloc(len + 1, 1);
	memset(text, 'x', len);
	const struct record_parts parts = { "r", "j", text };
	const struct call call = make_call(&parts);
	assert_int_equal(record_save(scratch->fd, &call, &parts), 0);
	struct fail why = FAIL_INIT;
	auto_buf struct buf out = BUF_INIT(len);
	assert_int_equal(
		record_read(scratch->fd, &call, CALL_PART_RESULT_TEXT, 0, len, &out, &why), 0);
	assert_int_equal(out.len, len);
	assert_memory_equal(out.data, text, len);
	free(text);
}

static void a_later_record_takes_the_place_of_an_earlier(void **state)
{
	struct scratch *scratch = *state;
	const struct record_parts first = { "{}\n", "", "" };
	struct call call = make_call(&first);
	assert_int_equal(record_save(scratch->fd, &call, &first), 0);
	call = make_call(&small);
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	check_part(scratch->fd, &call, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
}

static void a_file_that_ends_too_early_is_an_error(void **state)
{
	struct scratch *scratch = *state;
	const struct call call = make_call(&small);
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	auto_close int fd = openat(scratch->fd, "1234", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 4096 + 9), 0);
	struct fail why = FAIL_INIT;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	assert_int_equal(
		record_read(scratch->fd, &call, CALL_PART_RESULT_JSON, 0, 100, &out, &why), -EIO);
	assert_non_null(strstr(why.text, "1234"));
	check_part(scratch->fd, &call, CALL_PART_REQUEST, 0, 100, "{\"a\":1}\n");
}

static void what_grows_is_read_as_far_as_it_is_counted(void **state)
{
	struct scratch *scratch = *state;
	struct call call = make_call(&small);
	auto_close int fd = record_open_growing(scratch->fd, call.seq, CALL_PART_LOG);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, "one\ntwo\n", 8), 0);
	call.part_len[CALL_PART_LOG] = 4;
	check_part(scratch->fd, &call, CALL_PART_LOG, 0, 100, "one\n");
	call.part_len[CALL_PART_LOG] = 8;
	check_part(scratch->fd, &call, CALL_PART_LOG, 4, 100, "two\n");
	/* Opened again, it goes on. */
	auto_close int again = record_open_growing(scratch->fd, call.seq, CALL_PART_LOG);
	assert_int_equal(io_write_all(again, "three\n", 6), 0);
	call.part_len[CALL_PART_LOG] = 14;
	check_part(scratch->fd, &call, CALL_PART_LOG, 8, 100, "three\n");
}

static void nothing_is_left_of_a_call_that_is_removed(void **state)
{
	struct scratch *scratch = *state;
	const struct call call = make_call(&small);
	assert_int_equal(record_save(scratch->fd, &call, &small), 0);
	close(record_open_growing(scratch->fd, call.seq, CALL_PART_LOG));
	close(record_open_growing(scratch->fd, call.seq, CALL_PART_PROGRESS));
	record_remove(scratch->fd, call.seq);
	record_remove(scratch->fd, call.seq);
	assert_int_equal(unlinkat(scratch->fd, "1234", 0), -1);
	assert_int_equal(unlinkat(scratch->fd, "1234.log", 0), -1);
	assert_int_equal(unlinkat(scratch->fd, "1234.progress", 0), -1);
	struct fail why = FAIL_INIT;
	auto_buf struct buf out = BUF_INIT(1 << 20);
	assert_int_equal(
		record_read(scratch->fd, &call, CALL_PART_REQUEST, 0, 9, &out, &why), -ENOENT);
}

/* What was there stays as it was, and nothing half-written lies about. */
static void a_full_disk_is_an_error_and_leaves_the_record_before(void **state)
{
	struct scratch *scratch = *state;
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip();
	scratch_mkdir(scratch, "small");
	auto_free char *path = xasprintf("%s/small", scratch->path);
	assert_int_equal(mount("none", path, "tmpfs", 0, "size=64k"), 0);
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct call call = make_call(&small);
	assert_int_equal(record_save(dir_fd, &call, &small), 0);
	char *text = xcalloc(200001, 1);
	memset(text, 'x', 200000);
	const struct record_parts large = { "r", "j", text };
	const struct call other = make_call(&large);
	assert_int_equal(record_save(dir_fd, &other, &large), -ENOSPC);
	check_part(dir_fd, &call, CALL_PART_RESULT_TEXT, 0, 100, "text\n");
	/* There is room for as much as before. */
	const struct record_parts medium = { "r", "j", "medium" };
	struct call next = make_call(&medium);
	next.seq++;
	assert_int_equal(record_save(dir_fd, &next, &medium), 0);
	check_part(dir_fd, &next, CALL_PART_RESULT_TEXT, 0, 100, "medium");
	free(text);
	close(dir_fd);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(each_part_comes_back_from_any_offset),
		scratch_test(the_header_is_one_line_of_json),
		scratch_test(a_record_is_loaded_as_it_was_saved),
		scratch_test(a_mark_changes_the_header_alone),
		scratch_test(what_is_no_record_is_not_loaded),
		scratch_test(the_largest_header_has_room),
		scratch_test(big_parts_come_back),
		scratch_test(a_later_record_takes_the_place_of_an_earlier),
		scratch_test(a_file_that_ends_too_early_is_an_error),
		scratch_test(what_grows_is_read_as_far_as_it_is_counted),
		scratch_test(nothing_is_left_of_a_call_that_is_removed),
		scratch_test(a_full_disk_is_an_error_and_leaves_the_record_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
