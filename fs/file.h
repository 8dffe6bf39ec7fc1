/*
 * Tools' own files, passed through read-only. Each is opened beneath its tool's directory, through
 * the source, without following links: nothing outside can be reached (design.md, Trust). Links are
 * shown as links; what is neither a file, a directory nor a link is not shown.
 */
#ifndef PEGFS_FS_FILE_H
#define PEGFS_FS_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/tools/tool.h"

/*
 * What a node number of a file stands for. The number is a hash of the path and, of a regular file,
 * of which one it is there (device and inode): a file that takes the place of another by rename(2)
 * has another number. Who has the old one open reads on in that, and the kernel keeps the pages of
 * the two apart; with one number each reader would get pages of both.
 */
struct file {
	uint64_t ino;
	char *tool_key;   /* owned; of tool.h */
	char *path;       /* owned; below the tool's directory, without a slash at either end */
	struct stat seen; /* its own attributes, as they were last; they stay when it is replaced */
	uint64_t lookups; /* the kernel's references, as far as this server saw them made */
};

struct files {
	struct map by_ino;  /* owned struct file */
	int dir_fd;         /* borrowed: where the journal is */
	int journal_fd;     /* owned; what the next server must know; 0: none */
	size_t journal_len; /* bytes in it */
};

/*
 * Reads what an earlier server noted in the private directory dir_fd (borrowed), and notes there from now on.
 * Without a journal files are still served, but those that are open do not survive the server.
 */
void files_load(struct files *files, int dir_fd);

void files_release(struct files *files);

/* The file of a number that has been seen, or NULL. */
const struct file *files_get(const struct files *files, uint64_t ino);

/* The next one at or after *at, which moves behind it; NULL at the end. Start with 0. */
const struct file *files_next(const struct files *files, size_t *at);

/*
 * Notes that the kernel holds the file, whose own attributes are st, once more; the file, or NULL
 * where hashes of 60 bits have met again and again: then it is not shown.
 */
const struct file *files_note(
	struct files *files, const struct tool *tool, const char *path, const struct stat *st);

/*
 * Attributes of a file as the tree shows them: its own, without write, set-id and sticky bits, under
 * a number that its path has for good. Returns 0, 1 where it was replaced or removed (and *st is as it
 * was), or a negative errno.
 */
int files_stat(struct files *files, const struct tool *tool, uint64_t ino, struct stat *st);

/* The kernel gave up that many references. */
void files_forget(struct files *files, uint64_t ino, uint64_t count);

/* The number that stat(2) and a listing show for a path of a tool. */
uint64_t file_ino(const struct tool *tool, const char *path);

/* A file's own attributes. Returns 0 or a negative errno; -ENOENT for what is not shown. */
int file_look(const struct tool *tool, const char *path, struct stat *st);

/* The same as the tree shows them, from what was seen last. */
void file_show(const struct file *file, struct stat *st);

/* An open descriptor for reading, the caller's, of a regular file or a directory. */
int file_open(const struct tool *tool, const char *path, int flags);

/* The same of a file that was looked up: -ESTALE where another has taken its place. */
int file_reopen(const struct file *file, const struct tool *tool);

/* Appends where a link points. Returns 0 or a negative errno. */
int file_read_link(const struct tool *tool, const char *path, struct buf *out);

#endif
