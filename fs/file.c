#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/tools/source.h"
#include "fs/ino.h"

static void free_file(struct file *file)
{
	free(file->tool_name);
	free(file->path);
	free(file);
}

void files_release(struct files *files)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&files->by_ino, &at)))
		free_file(slot->value);
	map_release(&files->by_ino);
	if (files->journal_fd > 0)
		close(files->journal_fd);
}

/* ---- the journal: tool, NUL, path, NUL, for each number that was given */

#define JOURNAL_NAME "files"
#define JOURNAL_MAX ((size_t)256 << 20)
#define JOURNAL_SLACK ((size_t)1 << 20) /* up to this it may grow; then what is gone is left out */
#define LOOKUPS_UNKNOWN (UINT64_C(1) << 40)

static uint64_t ino_of(const char *tool_name, const char *path)
{
	uint64_t hash = map_hash(MAP_HASH_SEED, tool_name, strlen(tool_name) + 1);
	return ino_file(map_hash(hash, path, strlen(path)));
}

static void put_entry(const struct file *file, struct buf *out)
{
	buf_append(out, file->tool_name, strlen(file->tool_name) + 1);
	buf_append(out, file->path, strlen(file->path) + 1);
}

static void append_journal(struct files *files, const struct file *file)
{
	if (files->journal_fd <= 0)
		return;
	auto_buf struct buf entry = BUF_INIT(JOURNAL_MAX);
	put_entry(file, &entry);
	int result = io_write_all(files->journal_fd, entry.data, entry.len);
	if (result < 0)
		log_msg(LOG_LEVEL_ERROR, "%s/%s will not survive the server while it is open: %s",
			file->tool_name, file->path, strerror(-result));
	files->journal_len += entry.len;
}

/* How often the kernel holds it is not known: it is never given up. */
static void load_file(struct files *files, const char *tool_name, const char *path)
{
	uint64_t ino = ino_of(tool_name, path);
	if (map_get(&files->by_ino, ino))
		return;
	struct file *file = xcalloc(1, sizeof(*file));
	*file = (struct file){ .ino = ino,
		.tool_name = xstrdup(tool_name),
		.path = xstrdup(path),
		.lookups = LOOKUPS_UNKNOWN };
	map_put(&files->by_ino, ino, file);
}

static void load_journal(struct files *files, int dir_fd)
{
	auto_close int fd = openat(dir_fd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_buf struct buf text = BUF_INIT(JOURNAL_MAX);
	if (fd < 0 || io_read_all(fd, &text) < 0)
		return;
	/* A server that was killed may have left half an entry at the end: it was not given. */
	for (size_t at = 0; at < text.len;) {
		const char *tool_name = text.data + at;
		size_t name_len = strnlen(tool_name, text.len - at);
		if (at + name_len >= text.len)
			return;
		const char *path = tool_name + name_len + 1;
		size_t path_len = strnlen(path, text.len - at - name_len - 1);
		if (at + name_len + 1 + path_len >= text.len)
			return;
		load_file(files, tool_name, path);
		at += name_len + path_len + 2;
		files->journal_len = at;
	}
}

static void open_journal(struct files *files)
{
	int fd = openat(files->dir_fd, JOURNAL_NAME,
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)files->journal_len) < 0)
		log_errno(LOG_LEVEL_ERROR, "open files will not survive the server");
	files->journal_fd = fd < 0 ? 0 : fd;
}

void files_load(struct files *files, int dir_fd)
{
	files->dir_fd = dir_fd;
	load_journal(files, dir_fd);
	open_journal(files);
}

/* What nobody holds any more is left out. */
static void shorten_journal(struct files *files)
{
	if (files->journal_fd <= 0 || files->journal_len < JOURNAL_SLACK ||
		files->journal_len / 512 < files->by_ino.count)
		return;
	auto_buf struct buf text = BUF_INIT(JOURNAL_MAX);
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&files->by_ino, &at)))
		put_entry(slot->value, &text);
	if (text.failed ||
		io_replace_file(files->dir_fd, JOURNAL_NAME, text.data, text.len, 0600) < 0)
		return;
	close(files->journal_fd);
	files->journal_len = text.len;
	open_journal(files);
}

const struct file *files_get(const struct files *files, uint64_t ino)
{
	return map_get(&files->by_ino, ino);
}

const struct file *files_next(const struct files *files, size_t *at)
{
	const struct map_slot *slot = map_next(&files->by_ino, at);
	return slot ? slot->value : NULL;
}

uint64_t file_ino(const struct tool *tool, const char *path)
{
	return ino_of(tool->name, path);
}

const struct file *files_note(
	struct files *files, const struct tool *tool, const char *path, mode_t type)
{
	uint64_t ino = file_ino(tool, path);
	struct file *file = map_get(&files->by_ino, ino);
	if (!file) {
		file = xcalloc(1, sizeof(*file));
		*file = (struct file){
			.ino = ino, .tool_name = xstrdup(tool->name), .path = xstrdup(path)
		};
		map_put(&files->by_ino, ino, file);
		append_journal(files, file);
	}
	if (strcmp(file->tool_name, tool->name) != 0 || strcmp(file->path, path) != 0) {
		log_msg(LOG_LEVEL_ERROR,
			"%s/%s has the node number of %s/%s and is not shown: "
			"give it another name",
			tool->name, path, file->tool_name, file->path);
		return NULL;
	}
	file->type = type & S_IFMT;
	file->lookups++;
	return file;
}

void files_forget(struct files *files, uint64_t ino, uint64_t count)
{
	struct file *file = map_get(&files->by_ino, ino);
	if (!file)
		return;
	if (file->lookups > count) {
		file->lookups -= count;
		return;
	}
	map_remove(&files->by_ino, ino);
	free_file(file);
	shorten_journal(files);
}

static int open_in_tool(const struct tool *tool, const char *path, int flags)
{
	auto_close int dir_fd = source_open_tool(tool);
	if (dir_fd < 0)
		return dir_fd;
	return io_open_resolve(dir_fd, path, flags, RESOLVE_NO_SYMLINKS);
}

static bool is_shown(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

int file_stat(const struct tool *tool, const char *path, struct stat *st)
{
	auto_close int fd = open_in_tool(tool, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	if (!is_shown(st->st_mode))
		return -ENOENT;
	st->st_mode &= S_IFMT | (S_ISLNK(st->st_mode) ? 0777 : 0555);
	st->st_ino = file_ino(tool, path);
	return 0;
}

int file_open(const struct tool *tool, const char *path, int flags)
{
	auto_close int seen = open_in_tool(tool, path, O_PATH | O_NOFOLLOW);
	struct stat st;
	if (seen < 0)
		return seen;
	if (fstat(seen, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return open_in_tool(tool, path, flags | O_DIRECTORY);
	return S_ISREG(st.st_mode) ? io_reopen(seen) : -ENOENT;
}

int file_read_link(const struct tool *tool, const char *path, struct buf *out)
{
	auto_close int fd = open_in_tool(tool, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	char target[4096];
	ssize_t len = readlinkat(fd, "", target, sizeof(target));
	if (len < 0)
		return -errno;
	return buf_append(out, target, (size_t)len);
}
