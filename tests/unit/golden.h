/*
 * Test data below PEGFS_DATA_DIR, and texts compared with files there. With PEGFS_DATA_UPDATE set
 * the files are written instead: read the difference before it is committed.
 */
#ifndef PEGFS_TESTS_UNIT_GOLDEN_H
#define PEGFS_TESTS_UNIT_GOLDEN_H

/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/tools/tool.h"
#include "tests/oracle/tooljson.h"

#define GOLDEN_SIZE_MAX (4 * 1024 * 1024)

static inline const char *golden_dir(void)
{
	const char *dir = getenv("PEGFS_DATA_DIR");
	if (!dir)
		fail_msg("PEGFS_DATA_DIR is not set; run the tests by `make check-unit`");
	return dir;
}

/* The bytes of a file below the data directory; the caller releases them. */
static inline struct buf golden_load(const char *path)
{
	struct buf bytes = BUF_INIT(GOLDEN_SIZE_MAX);
	auto_free char *whole = xasprintf("%s/%s", golden_dir(), path);
	auto_close int fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || io_read_all(fd, &bytes) < 0)
		fail_msg("cannot read %s", whole);
	return bytes;
}

static inline json_t *golden_json(const char *path)
{
	auto_buf struct buf bytes = golden_load(path);
	json_error_t error;
	json_t *json = json_loadb(bytes.data, bytes.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (!json)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	return json;
}

static inline struct tool *golden_tool(const char *path)
{
	auto_json json_t *json = golden_json(path);
	return tooljson_read(json);
}

static inline void golden_update(const char *path, const struct buf *text)
{
	auto_free char *whole = xasprintf("%s/%s", golden_dir(), path);
	auto_close int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || io_write_all(fd, text->data, text->len) < 0)
		fail_msg("cannot write %s", whole);
}

/* Fails unless text is what the file holds, and shows both. */
static inline void golden_check(const char *path, const struct buf *text)
{
	if (getenv("PEGFS_DATA_UPDATE"))
		golden_update(path, text);
	auto_buf struct buf wanted = golden_load(path);
	if (wanted.len == text->len && memcmp(buf_str(&wanted), buf_str(text), wanted.len) == 0)
		return;
	fail_msg("%s: expected\n%s\nbut got\n%s", path, buf_str(&wanted), buf_str(text));
}

/* Calls check with each entry of a directory below the data directory; fails where there is none. */
static inline void golden_each(const char *path, void check(const char *entry))
{
	auto_free char *whole = xasprintf("%s/%s", golden_dir(), path);
	auto_closedir DIR *dir = opendir(whole);
	if (!dir)
		fail_msg("cannot read %s", whole);
	size_t count = 0;
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (entry->d_name[0] == '.')
			continue;
		auto_free char *below = xasprintf("%s/%s", path, entry->d_name);
		check(below);
		count++;
	}
	assert_true(count > 0);
}

#endif
