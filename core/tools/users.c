#include "core/tools/users.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/utf8.h"
#include "core/base/xalloc.h"

#define FAULTS_TOLD_MAX 100

/* Characters that show nothing, or change how others are shown: two names would look the same. */
static bool has_hidden(const char *name)
{
	static const struct {
		const char *first, *last; /* UTF-8 of one length, so they compare as bytes */
	} ranges[] = {
		{ "\xc2\x80", "\xc2\xa0" },         /* C1 controls, no-break space */
		{ "\xc2\xad", "\xc2\xad" },         /* soft hyphen */
		{ "\xe2\x80\x80", "\xe2\x80\x8f" }, /* spaces, zero width, directions */
		{ "\xe2\x80\xa8", "\xe2\x80\xaf" }, /* separators, embeddings */
		{ "\xe2\x81\x9f", "\xe2\x81\xaf" }, /* joiners, isolates */
		{ "\xe3\x80\x80", "\xe3\x80\x80" }, /* ideographic space */
		{ "\xef\xbb\xbf", "\xef\xbb\xbf" }, /* byte order mark */
	};
	for (const char *c = name; *c; c++)
		for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
			size_t len = strlen(ranges[i].first);
			if (strncmp(c, ranges[i].first, len) >= 0 &&
				strncmp(c, ranges[i].last, len) <= 0)
				return true;
		}
	return false;
}

static bool is_plain(const char *name)
{
	static const char refused[] = "\\\"'`$()<>[],;:|&*? /";
	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f || strchr(refused, *c))
			return false;
	return utf8_valid_len(name, strlen(name)) == strlen(name) && !has_hidden(name);
}

bool user_name_is_valid(const char *name)
{
	const char *at = strchr(name, '@');
	return at && at > name && at[1] && !strchr(at + 1, '@') && *name != '.' &&
	       strlen(name) <= USER_NAME_MAX && is_plain(name);
}

void users_release(struct users *users)
{
	for (size_t i = 0; i < users->count; i++)
		free(users->items[i]);
	free(users->items);
	faults_release(&users->faults);
	*users = (struct users){ .items = NULL };
}

static void report(struct users *users, const struct root *root, const char *name, const char *text)
{
	if (users->faults.count >= FAULTS_TOLD_MAX)
		return;
	struct faults one = FAULTS_INIT;
	faults_add(&one, FAULT_WARNING, "not-a-user", 0, 0, "%s", text);
	auto_free char *path = xasprintf("%s/%s", root->path, faults_excerpt(name).text);
	faults_move(&users->faults, &one, path);
}

static mode_t type_of(int dir_fd, const struct dirent *entry)
{
	struct stat st;
	if (entry->d_type != DT_UNKNOWN)
		return (mode_t)DTTOIF(entry->d_type);
	return fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0
									    : st.st_mode & S_IFMT;
}

static void take(struct users *users, const struct root *root, mode_t type, const char *name)
{
	bool is_dir = type == S_IFDIR;
	if (*name == '.' || strcmp(name, USERS_TOOLS) == 0 || (!is_dir && type != S_IFLNK))
		return;
	if (!user_name_is_valid(name)) {
		if (is_dir)
			report(users, root, name,
				"no user is shown for this directory: its name is no e-mail address");
		return;
	}
	if (!is_dir) {
		report(users, root, name,
			"no user is shown for a symbolic link, which could lead to what another user "
			"has; make it a directory, or bind-mount one");
		return;
	}
	users->items = xgrow(users->items, users->count, &users->capacity, sizeof(*users->items));
	users->items[users->count++] = xstrdup(name);
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

int users_load(const struct root *root, struct users *users)
{
	*users = (struct users){ .items = NULL };
	auto_close int fd = openat(root->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	take_fd(&fd);
	const struct dirent *entry;
	errno = 0;
	while (users->count < USERS_MAX && (entry = readdir(dir))) {
		take(users, root, type_of(dirfd(dir), entry), entry->d_name);
		errno = 0;
	}
	if (errno)
		return -errno;
	if (users->count == USERS_MAX)
		report(users, root, "", "more than 65535 users; some are left out");
	if (users->count > 0)
		qsort(users->items, users->count, sizeof(*users->items), compare_names);
	return 0;
}
