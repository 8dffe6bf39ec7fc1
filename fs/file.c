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
	uint64_t hash = map_hash(MAP_HASH_SEED, tool->name, strlen(tool->name) + 1);
	return ino_file(map_hash(hash, path, strlen(path)));
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
