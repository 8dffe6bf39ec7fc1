#include "fs/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

#define TRIES_MAX 16 /* for a number that no other file has */

static void free_file(struct file *file)
{
	free(file->tool_key);
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

/*
 * ---- the journal: for each number that was given, with a NUL behind each: the tool, the path, and
 * in hexadecimal the number and the file's own device, inode and mode
 */

#define JOURNAL_NAME "files"
#define JOURNAL_MAX ((size_t)256 << 20)
#define JOURNAL_SLACK ((size_t)1 << 20) /* up to this it may grow; then what is gone is left out */
#define LOOKUPS_UNKNOWN (UINT64_C(1) << 40)

static void put_entry(const struct file *file, struct buf *out)
{
	buf_append(out, file->tool_key, strlen(file->tool_key) + 1);
	buf_append(out, file->path, strlen(file->path) + 1);
	buf_printf(out, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %x", file->ino,
		(uint64_t)file->seen.st_dev, (uint64_t)file->seen.st_ino,
		(unsigned)file->seen.st_mode);
	buf_putc(out, '\0');
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
			file->tool_key, file->path, strerror(-result));
	files->journal_len += entry.len;
}

/* How often the kernel holds it is not known: it is never given up. */
static void load_file(struct files *files, const char *key, const char *path, const char *numbers)
{
	char *at = NULL;
	uint64_t ino = strtoull(numbers, &at, 16);
	if (ino_class(ino) != INO_FILE || map_get(&files->by_ino, ino))
		return;
	struct file *file = xcalloc(1, sizeof(*file));
	*file = (struct file){ .ino = ino,
		.tool_key = xstrdup(key),
		.path = xstrdup(path),
		.lookups = LOOKUPS_UNKNOWN };
	file->seen.st_dev = strtoull(at, &at, 16);
	file->seen.st_ino = strtoull(at, &at, 16);
	file->seen.st_mode = (mode_t)strtoul(at, &at, 16);
	map_put(&files->by_ino, ino, file);
}

/* The string at *at, which moves behind it; NULL where it has no end. */
static const char *next_string(const struct buf *text, size_t *at)
{
	const char *string = text->data + *at;
	size_t left = text->len - *at, len = left ? strnlen(string, left) : 0;
	if (len == left)
		return NULL;
	*at += len + 1;
	return string;
}

static void load_journal(struct files *files, int dir_fd)
{
	auto_close int fd = openat(dir_fd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	auto_buf struct buf text = BUF_INIT(JOURNAL_MAX);
	if (fd < 0 || io_read_all(fd, &text) < 0)
		return;
	/* A server that was killed may have left half an entry at the end: it was not given. */
	for (size_t at = 0;;) {
		const char *key = next_string(&text, &at);
		const char *path = key ? next_string(&text, &at) : NULL;
		const char *numbers = path ? next_string(&text, &at) : NULL;
		if (!numbers)
			return;
		load_file(files, key, path, numbers);
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

static uint64_t hash_path(const char *key, const char *path)
{
	uint64_t hash = map_hash(MAP_HASH_SEED, key, strlen(key) + 1);
	return map_hash(hash, path, strlen(path));
}

uint64_t file_ino(const struct tool *tool, const char *path)
{
	return ino_file(hash_path(tool_key(tool), path));
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT);
}

/* Directories and links have no pages: whichever it is, it is the one at that path. */
static bool is_this(
	const struct file *file, const char *key, const char *path, const struct stat *st)
{
	return strcmp(file->tool_key, key) == 0 && strcmp(file->path, path) == 0 &&
	       (is_same(&file->seen, st) ||
		       (!S_ISREG(st->st_mode) && !S_ISREG(file->seen.st_mode)));
}

static uint64_t hash_file(const struct tool *tool, const char *path, const struct stat *st)
{
	uint64_t hash = hash_path(tool_key(tool), path);
	if (!S_ISREG(st->st_mode))
		return hash;
	hash = map_hash(hash, &st->st_dev, sizeof(st->st_dev));
	return map_hash(hash, &st->st_ino, sizeof(st->st_ino));
}

/* The one that is known, or the number that it gets. */
static struct file *find(struct files *files, const struct tool *tool, const char *path,
	const struct stat *st, uint64_t *ino)
{
	uint64_t hash = hash_file(tool, path, st);
	struct file *file = NULL;
	/* Whoever writes tools can make names that meet: those of others must not vanish for it. */
	for (unsigned char tries = 0; tries < TRIES_MAX; tries++) {
		*ino = ino_file(hash);
		file = map_get(&files->by_ino, *ino);
		if (!file || is_this(file, tool_key(tool), path, st))
			return file;
		hash = map_hash(hash, &tries, sizeof(tries));
	}
	log_msg(LOG_LEVEL_ERROR, "%s/%s has the node number of %s/%s and is not shown: rename it",
		tool_key(tool), path, file->tool_key, file->path);
	*ino = 0;
	return NULL;
}

const struct file *files_note(
	struct files *files, const struct tool *tool, const char *path, const struct stat *st)
{
	uint64_t ino = 0;
	struct file *file = find(files, tool, path, st, &ino);
	if (!file && ino == 0)
		return NULL;
	if (!file) {
		file = xcalloc(1, sizeof(*file));
		file->ino = ino;
		file->tool_key = xstrdup(tool_key(tool));
		file->path = xstrdup(path);
		map_put(&files->by_ino, ino, file);
		file->seen = *st;
		append_journal(files, file);
	}
	file->seen = *st;
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

static bool is_shown(mode_t mode)
{
	return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

/*
 * Who may not enter the tool's directory may not read what is in it here either. The tool itself is shown
 * to all, so its directory's mode has to be taken from the files.
 */
static int close_off(const struct tool *tool, struct stat *st)
{
	struct stat dir;
	auto_close int fd = source_open_tool(tool);
	if (fd < 0)
		return fd;
	if (fstat(fd, &dir) < 0)
		return -errno;
	const bool has_group = st->st_gid == dir.st_gid;
	const mode_t others = st->st_mode & S_IRWXO;
	if (!(dir.st_mode & (has_group ? S_IXGRP : S_IXOTH)))
		st->st_mode &= ~(mode_t)S_IRWXG;
	if (dir.st_mode & S_IXOTH)
		return 0;
	st->st_mode &= ~(mode_t)S_IRWXO;
	/* The directory's owner reads on what was another's and open to all. */
	if (st->st_uid != dir.st_uid && S_ISREG(st->st_mode) && others) {
		st->st_uid = dir.st_uid;
		st->st_mode = (st->st_mode & ~(mode_t)S_IRWXU) | others << 6;
	}
	return 0;
}

int file_look(const struct tool *tool, const char *path, struct stat *st)
{
	auto_close int fd = source_open_file(tool, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return -errno;
	if (!is_shown(st->st_mode))
		return -ENOENT;
	return S_ISLNK(st->st_mode) ? 0 : close_off(tool, st);
}

void file_show(const struct file *file, struct stat *st)
{
	*st = file->seen;
	st->st_mode &= S_IFMT | (S_ISLNK(st->st_mode) ? 0777 : 0555);
	st->st_ino = ino_file(hash_path(file->tool_key, file->path));
}

int files_stat(struct files *files, const struct tool *tool, uint64_t ino, struct stat *st)
{
	struct file *file = map_get(&files->by_ino, ino);
	if (!file)
		return -ESTALE;
	struct stat now;
	int result = file_look(tool, file->path, &now);
	if (result == 0 && is_this(file, tool_key(tool), file->path, &now))
		file->seen = now;
	else if (!S_ISREG(file->seen.st_mode))
		return result < 0 ? result : -ESTALE;
	else
		return 1;
	file_show(file, st);
	return 0;
}

int file_reopen(const struct file *file, const struct tool *tool)
{
	auto_close int fd = file_open(tool, file->path, O_RDONLY);
	struct stat st;
	/* The kernel then looks the name up once more, and there may be another file of that name. */
	if (fd < 0)
		return fd == -ENOENT ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return is_same(&st, &file->seen) ? take_fd(&fd) : -ESTALE;
}

int file_open(const struct tool *tool, const char *path, int flags)
{
	auto_close int seen = source_open_file(tool, path, O_PATH | O_NOFOLLOW);
	struct stat st;
	if (seen < 0)
		return seen;
	if (fstat(seen, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return source_open_file(tool, path, flags | O_DIRECTORY);
	return S_ISREG(st.st_mode) ? io_reopen(seen) : -ENOENT;
}

int file_read_link(const struct tool *tool, const char *path, struct buf *out)
{
	auto_close int fd = source_open_file(tool, path, O_PATH | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	char target[4096];
	ssize_t len = readlinkat(fd, "", target, sizeof(target));
	if (len < 0)
		return -errno;
	return buf_append(out, target, (size_t)len);
}
