#include "fs/opened.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"

#define FILE_NAME "opened"
#define RING_AT 4096 /* behind the page that has struct ends */
#define ALIGN UINT64_C(64)

struct ends {
	uint64_t first, end;
};

/* Before the bytes of each; none wraps around: the rest of the ring is an entry with ino 0. */
struct note {
	uint64_t ino;
	uint64_t at; /* where it begins, in bytes since ever */
	uint64_t size;
	int64_t mtime_s, mtime_ns;
};

static uint64_t room_of(uint64_t size)
{
	return (sizeof(struct note) + size + ALIGN - 1) / ALIGN * ALIGN;
}

static off_t place_of(uint64_t at)
{
	return (off_t)(RING_AT + at % OPENED_SIZE);
}

static void give_up(struct opened *opened)
{
	log_errno(LOG_LEVEL_WARNING, "what is open may not survive the server");
	close(opened->fd);
	opened->fd = 0;
}

void opened_load(struct opened *opened, int dir_fd)
{
	int fd = openat(dir_fd, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct ends ends = { 0 };
	if (fd < 0) {
		log_errno(LOG_LEVEL_WARNING, "what is open may not survive the server");
		return;
	}
	opened->fd = fd;
	if (pread(fd, &ends, sizeof(ends), 0) < 0)
		give_up(opened);
	opened->first = ends.first;
	opened->end = ends.end;
}

void opened_release(struct opened *opened)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&opened->by_ino, &at)))
		free(slot->value);
	map_release(&opened->by_ino);
	if (opened->fd > 0)
		close(opened->fd);
	opened->fd = 0;
}

static bool read_note(const struct opened *opened, uint64_t at, struct note *note)
{
	return pread(opened->fd, note, sizeof(*note), place_of(at)) == (ssize_t)sizeof(*note) &&
	       note->at == at && note->size <= OPENED_SIZE;
}

static void index_note(struct opened *opened, const struct note *note)
{
	struct note *copy = xcalloc(1, sizeof(*copy));
	*copy = *note;
	free(map_put(&opened->by_ino, note->ino, copy));
}

/* At the first need: a server that has just taken over has better to do. */
static void make_index(struct opened *opened)
{
	struct note note;
	if (opened->has_index || opened->fd <= 0)
		return;
	opened->has_index = true;
	for (uint64_t at = opened->first; at < opened->end; at += room_of(note.size)) {
		if (!read_note(opened, at, &note)) {
			/* Not written by this program: begun anew. */
			opened->first = opened->end;
			return;
		}
		if (note.ino)
			index_note(opened, &note);
	}
}

static const struct note *find(struct opened *opened, uint64_t ino)
{
	make_index(opened);
	return opened->fd > 0 ? map_get(&opened->by_ino, ino) : NULL;
}

bool opened_has(struct opened *opened, uint64_t ino, const struct stat *st)
{
	const struct note *note = find(opened, ino);
	return note && note->size == (uint64_t)st->st_size && note->mtime_s == st->st_mtim.tv_sec &&
	       note->mtime_ns == st->st_mtim.tv_nsec;
}

static int write_ends(const struct opened *opened)
{
	const struct ends ends = { opened->first, opened->end };
	return pwrite(opened->fd, &ends, sizeof(ends), 0) == (ssize_t)sizeof(ends) ? 0 : -EIO;
}

/* The oldest go until there is room for that many bytes. */
static int make_room(struct opened *opened, uint64_t room)
{
	struct note note;
	while (opened->end + room - opened->first > OPENED_SIZE) {
		if (!read_note(opened, opened->first, &note))
			return -EIO;
		const struct note *known = map_get(&opened->by_ino, note.ino);
		if (known && known->at == note.at)
			free(map_remove(&opened->by_ino, note.ino));
		opened->first += room_of(note.size);
	}
	return write_ends(opened);
}

static int append(struct opened *opened, struct note *note, const void *bytes)
{
	note->at = opened->end;
	if (pwrite(opened->fd, note, sizeof(*note), place_of(note->at)) != (ssize_t)sizeof(*note))
		return -EIO;
	if (bytes && pwrite(opened->fd, bytes, note->size,
			     place_of(note->at) + (off_t)sizeof(*note)) != (ssize_t)note->size)
		return -EIO;
	opened->end += room_of(note->size);
	return write_ends(opened);
}

/* What is left of the ring before its end, where the next would not fit. */
static int skip_rest(struct opened *opened, uint64_t room)
{
	uint64_t rest = OPENED_SIZE - opened->end % OPENED_SIZE;
	struct note filler = { .size = rest - sizeof(filler) };
	if (room <= rest)
		return 0;
	int result = make_room(opened, rest);
	return result < 0 ? result : append(opened, &filler, NULL);
}

void opened_note(struct opened *opened, uint64_t ino, const void *bytes, const struct stat *st)
{
	struct note note = { .ino = ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = st->st_mtim.tv_nsec };
	if (note.size > OPENED_MAX)
		return;
	make_index(opened);
	if (opened->fd <= 0)
		return;
	uint64_t room = room_of(note.size);
	if (skip_rest(opened, room) < 0 || make_room(opened, room) < 0 ||
		append(opened, &note, bytes) < 0)
		give_up(opened);
	else
		index_note(opened, &note);
}

struct bytes *opened_get(struct opened *opened, uint64_t ino)
{
	const struct note *note = find(opened, ino);
	auto_buf struct buf out = BUF_INIT(OPENED_MAX);
	if (!note || buf_reserve(&out, note->size) < 0)
		return NULL;
	ssize_t got =
		pread(opened->fd, out.data, note->size, place_of(note->at) + (off_t)sizeof(*note));
	if (got != (ssize_t)note->size)
		return NULL;
	out.len = note->size;
	out.data[out.len] = '\0';
	return bytes_take(&out);
}

bool opened_stat(struct opened *opened, uint64_t ino, struct stat *st)
{
	const struct note *note = find(opened, ino);
	if (!note)
		return false;
	st->st_size = (off_t)note->size;
	st->st_blocks = (blkcnt_t)((note->size + 511) / 512);
	st->st_mtim.tv_sec = note->mtime_s;
	st->st_mtim.tv_nsec = note->mtime_ns;
	st->st_atim = st->st_ctim = st->st_mtim;
	return true;
}
