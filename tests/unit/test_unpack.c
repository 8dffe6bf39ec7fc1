#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/running/unpack.h"
#include "tests/unit/scratch.h"

#define ARCHIVE_MAX (64 * 1024)

/* A member as tar(1) writes it in --format=ustar. */
static void add(struct buf *archive, const char *prefix, const char *name, char type,
	const char *mode, const char *contents)
{
	char header[512] = { 0 };
	size_t len = strlen(contents);
	strcpy(header, name);
	strcpy(header + 100, mode);
	snprintf(header + 124, 12, "%011o", (unsigned)len & 07777);
	header[156] = type;
	memcpy(header + 257,
		"ustar\0"
		"00",
		8);
	strcpy(header + 345, prefix);
	buf_append(archive, header, sizeof(header));
	char block[512] = { 0 };
	memcpy(block, contents, len);
	if (len > 0)
		buf_append(archive, block, sizeof(block));
}

struct place {
	char path[64];
	int fd;
};

static void begin(struct place *place)
{
	strcpy(place->path, "/tmp/test-unpack-XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->fd >= 0);
}

static void end(struct place *place)
{
	close(place->fd);
	assert_int_equal(io_remove_tree(AT_FDCWD, place->path), 0);
}

static void check_file(const struct place *place, const char *path, mode_t mode, const char *text)
{
	struct stat st;
	auto_buf struct buf bytes = BUF_INIT(ARCHIVE_MAX);
	assert_int_equal(fstatat(place->fd, path, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(io_load_beneath(place->fd, path, &bytes), 0);
	assert_string_equal(buf_str(&bytes), text);
}

static void files_and_directories_come_with_their_modes(void **state)
{
	(void)state;
	struct place place;
	begin(&place);
	auto_buf struct buf archive = BUF_INIT(ARCHIVE_MAX);
	add(&archive, "", "./", '5', "0000755", "");
	add(&archive, "", "./bin/", '5', "0000700", "");
	add(&archive, "", "./bin/run", '0', "0000700", "#!/bin/sh\n");
	add(&archive, "bin", "text", '0', "0000600", "");
	char zeros[1024] = { 0 };
	buf_append(&archive, zeros, sizeof(zeros));
	struct fail why = FAIL_INIT;
	mode_t mask = umask(077);
	assert_int_equal(unpack_archive(archive.data, archive.len, place.fd, &why), 0);
	umask(mask);
	check_file(&place, "bin/run", 0755, "#!/bin/sh\n");
	check_file(&place, "bin/text", 0644, "");
	end(&place);
}

static void check_refused(const char *prefix, const char *name, char type, int code)
{
	struct place place;
	begin(&place);
	auto_buf struct buf archive = BUF_INIT(ARCHIVE_MAX);
	add(&archive, prefix, name, type, "0000644", "x");
	struct fail why = FAIL_INIT;
	assert_int_equal(unpack_archive(archive.data, archive.len, place.fd, &why), code);
	assert_true(strlen(why.text) > 0);
	end(&place);
}

static void nothing_is_written_elsewhere(void **state)
{
	(void)state;
	check_refused("", "/tmp/x", '0', -EINVAL);
	check_refused("", "../x", '0', -EINVAL);
	check_refused("a/..", "../x", '0', -EINVAL);
	check_refused("", "..", '5', -EINVAL);
	check_refused("", "link", '2', -EINVAL);
	check_refused("", "device", '3', -EINVAL);
}

static void nothing_is_replaced(void **state)
{
	(void)state;
	struct place place;
	begin(&place);
	auto_buf struct buf archive = BUF_INIT(ARCHIVE_MAX);
	add(&archive, "", "x", '0', "0000644", "new");
	assert_int_equal(io_replace_file(place.fd, "x", "old", 3, 0644), 0);
	struct fail why = FAIL_INIT;
	assert_int_equal(unpack_archive(archive.data, archive.len, place.fd, &why), -EEXIST);
	check_file(&place, "x", 0644, "old");
	end(&place);
}

static void what_is_cut_short_or_no_archive_is_refused(void **state)
{
	(void)state;
	struct place place;
	begin(&place);
	auto_buf struct buf archive = BUF_INIT(ARCHIVE_MAX);
	add(&archive, "", "x", '0', "0000644", "text");
	struct fail why = FAIL_INIT;
	assert_int_equal(unpack_archive(archive.data, 512, place.fd, &why), -EINVAL);
	char noise[512];
	memset(noise, 'x', sizeof(noise));
	fail_clear(&why);
	assert_int_equal(unpack_archive(noise, sizeof(noise), place.fd, &why), -EINVAL);
	end(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_and_directories_come_with_their_modes),
		cmocka_unit_test(nothing_is_written_elsewhere),
		cmocka_unit_test(nothing_is_replaced),
		cmocka_unit_test(what_is_cut_short_or_no_archive_is_refused),
	};
	return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
