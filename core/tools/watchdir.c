#include "core/tools/watchdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

#define MASK                                                                                       \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE |        \
		IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

void place_free_all(struct notify *notify, struct place **places)
{
	while (*places) {
		struct place *place = *places;
		*places = place->next;
		if (notify)
			notify_remove(notify, &place->notify);
		free(place->text);
		free(place);
	}
}

struct watchdir *watchdir_new(struct watch_source *source, const char *name)
{
	struct watchdir *dir = xcalloc(1, sizeof(*dir));
	dir->name = xstrdup(name);
	dir->source = source;
	return dir;
}

void watchdir_free(struct notify *notify, struct watchdir *dir)
{
	place_free_all(notify, &dir->places);
	watchdir_forget_files(dir);
	free(dir->files);
	free(dir->name);
	free(dir);
}

/* ---- what changed */

void watchdir_forget_files(struct watchdir *dir)
{
	for (size_t i = 0; i < dir->file_count; i++)
		free(dir->files[i]);
	dir->file_count = 0;
}

static bool is_noted(const struct watchdir *dir, const char *path)
{
	for (size_t i = 0; i < dir->file_count; i++)
		if (!*dir->files[i] || strcmp(dir->files[i], path) == 0)
			return true;
	return false;
}

void watchdir_note(struct watchdir *dir, const char *parent, const char *name)
{
	bool is_below = parent && *parent;
	auto_free char *path =
		xasprintf("%s%s%s", is_below ? parent : "", is_below && *name ? "/" : "", name);
	if (is_noted(dir, path))
		return;
	if (dir->file_count == WATCHDIR_FILES_MAX)
		*path = '\0';
	if (!*path)
		watchdir_forget_files(dir);
	dir->files = xgrow(dir->files, dir->file_count, &dir->file_capacity, sizeof(*dir->files));
	dir->files[dir->file_count++] = take_ptr(&path);
}

/* ---- watching it */

/* A walk in order of depth: what is found is appended, and looked at in its turn. */
struct survey {
	struct notify *notify;
	struct watchdir *dir;
	int top_fd;                 /* borrowed */
	struct place *first, *last; /* owned */
	struct place *old;          /* owned */
	size_t count;
	int result; /* 0, or the negative errno that says why it is not complete */
};

static void append(struct survey *survey, const char *parent, const char *name)
{
	struct place *place = xcalloc(1, sizeof(*place));
	*place = (struct place){
		.kind = PLACE_DIR, .source = survey->dir->source, .dir = survey->dir
	};
	if (name)
		place->text = parent ? xasprintf("%s/%s", parent, name) : xstrdup(name);
	if (survey->last)
		survey->last->next = place;
	else
		survey->first = place;
	survey->last = place;
	survey->count++;
}

static bool is_directory(int fd, const struct dirent *entry)
{
	struct stat st;
	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* The descriptor is taken. */
static int append_children(struct survey *survey, int fd, const char *path)
{
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir) {
		int error = errno;
		close(fd);
		return -error;
	}
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry)
			return -errno;
		bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
		if (is_dots || !is_directory(fd, entry))
			continue;
		if (survey->count == WATCHDIR_DIRS_MAX)
			return -E2BIG;
		append(survey, path, entry->d_name);
	}
}

static bool was_there(const struct survey *survey, const char *path)
{
	for (const struct place *place = survey->old; place; place = place->next)
		if (place->text && strcmp(place->text, path) == 0)
			return true;
	return false;
}

/* Watched before it is read: what comes later is told, what came before is read. */
static int survey_place(struct survey *survey, struct place *place)
{
	auto_close int fd =
		place->text ? io_open_resolve(survey->top_fd, place->text, O_RDONLY | O_DIRECTORY,
				      RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV)
			    : fcntl(survey->top_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return place->text ? fd : -errno;
	int result = notify_add(survey->notify, fd, MASK, &place->notify);
	if (result < 0)
		return result;
	if (place->text && !was_there(survey, place->text))
		watchdir_note(survey->dir, place->text, "");
	return append_children(survey, take_fd(&fd), place->text);
}

static void survey_all(struct survey *survey)
{
	append(survey, NULL, NULL);
	for (struct place *place = survey->first; place; place = place->next) {
		int result = survey_place(survey, place);
		/* What has gone meanwhile is told by its parent. */
		if (result < 0 && result != -ENOENT)
			survey->result = result;
		if (result == -ENOSPC)
			break;
	}
}

bool watchdir_renew(struct notify *notify, const struct root *root, struct watchdir *dir)
{
	auto_close int fd = root_open_dir(root, dir->name, O_RDONLY);
	struct survey survey = {
		.notify = notify, .dir = dir, .top_fd = fd, .old = take_ptr(&dir->places)
	};
	if (fd >= 0 && notify)
		survey_all(&survey);
	dir->complete = fd >= 0 && notify && survey.result == 0;
	dir->refused = survey.result == -ENOSPC;
	dir->places = survey.first;
	place_free_all(notify, &survey.old);
	return fd >= 0 || fd == -EACCES;
}
