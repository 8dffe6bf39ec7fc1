#include "core/tools/mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/fail.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"

#define TABLE "/proc/self/mountinfo"

struct mounts {
	int fd;                /* owned */
	struct loop_fd *entry; /* owned */
	void (*on_change)(void *arg);
	void *arg;
};

static void on_event(void *arg, uint32_t events)
{
	struct mounts *mounts = arg;
	(void)events;
	mounts->on_change(mounts->arg);
}

struct mounts *mounts_new(struct loop *loop, void (*on_change)(void *arg), void *arg)
{
	struct fail ignored = FAIL_INIT;
	struct mounts *mounts = xcalloc(1, sizeof(*mounts));
	*mounts = (struct mounts){
		.fd = open(TABLE, O_RDONLY | O_CLOEXEC), .on_change = on_change, .arg = arg
	};
	/* A change makes the file ready for EPOLLPRI once (proc(5)). */
	if (mounts->fd >= 0)
		mounts->entry = loop_add_fd(loop, mounts->fd, EPOLLPRI, on_event, mounts, &ignored);
	if (mounts->entry)
		return mounts;
	mounts_free(mounts);
	return NULL;
}

void mounts_free(struct mounts *mounts)
{
	if (!mounts)
		return;
	loop_remove_fd(&mounts->entry);
	if (mounts->fd >= 0)
		close(mounts->fd);
	free(mounts);
}

/* Blanks, tabs, line ends and backslashes are written as \ooo. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 +
				       (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
}

/* The mount point in a line "ID PARENT MAJOR:MINOR ROOT POINT ...", cut out of it; or NULL. */
static char *point_of(char *line)
{
	char *at = line;
	for (int field = 0; field < 4 && at; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return NULL;
	at[strcspn(at, " \n")] = '\0';
	unescape(at);
	return at;
}

/* Calls on_point for each mount point below the directory, with its path from there. */
static void each_below(
	int dir_fd, void (*on_point)(void *arg, const char *path, uint64_t id), void *arg)
{
	char link[64], dir[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	ssize_t got = readlink(link, dir, sizeof(dir));
	FILE *table = got > 0 && (size_t)got < sizeof(dir) ? fopen(TABLE, "re") : NULL;
	if (!table)
		return;
	size_t len = got == 1 ? 0 : (size_t)got; /* "/" */
	auto_free char *line = NULL;
	size_t size = 0;
	while (getline(&line, &size, table) > 0) {
		uint64_t id = strtoull(line, NULL, 10);
		const char *point = point_of(line);
		if (point && strncmp(point, dir, len) == 0 && point[len] == '/' && point[len + 1])
			on_point(arg, point + len + 1, id);
	}
	fclose(table);
}

struct naming {
	void (*on_name)(void *arg, const char *name, uint64_t id);
	void *arg;
};

static void name_point(void *arg, const char *path, uint64_t id)
{
	const struct naming *naming = arg;
	if (!strchr(path, '/'))
		naming->on_name(naming->arg, path, id);
}

void mounts_in(int dir_fd, void (*on_name)(void *arg, const char *name, uint64_t id), void *arg)
{
	struct naming naming = { .on_name = on_name, .arg = arg };
	each_below(dir_fd, name_point, &naming);
}

static void digest_point(void *arg, const char *path, uint64_t id)
{
	uint64_t *digest = arg;
	uint64_t seed = *digest ? *digest : MAP_HASH_SEED;
	*digest = map_hash(map_hash(seed, &id, sizeof(id)), path, strlen(path) + 1);
}

uint64_t mounts_digest(int dir_fd)
{
	uint64_t digest = 0;
	each_below(dir_fd, digest_point, &digest);
	return digest;
}
