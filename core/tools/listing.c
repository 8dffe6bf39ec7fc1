#include "core/tools/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/base/auto.h"
#include "core/tools/tool.h"

static const char *const texts[] = {
	[LISTING_MANIFEST] = TOOL_FILE,
	[LISTING_INDEX_TS] = "index.ts",
	[LISTING_INDEX_JS] = "index.js",
	[LISTING_INDEX_PY] = "index.py",
	[LISTING_INDEX_SH] = "index.sh",
	[LISTING_HIDDEN_FIRST] = "schema.json",
	"prompt.md",
	"call",
	"result.json",
	"result.txt",
	"log",
	"run",
	"calls",
};
_Static_assert(sizeof(texts) / sizeof(*texts) == LISTING_COUNT, "one text for each name");

const char *listing_text(enum listing_name name)
{
	return texts[name];
}

static void note(struct listing *listing, const char *name, unsigned char type)
{
	for (size_t i = 0; i < LISTING_COUNT; i++)
		if (strcmp(name, texts[i]) == 0) {
			listing->types[i] = type;
			return;
		}
	if (strcasecmp(name, TOOL_FILE) == 0)
		snprintf(listing->like_manifest, sizeof(listing->like_manifest), "%s", name);
}

static void ask(int dir_fd, struct listing *listing, size_t i)
{
	struct stat st;
	if (fstatat(dir_fd, texts[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
		listing->types[i] = IFTODT(st.st_mode);
}

int listing_read(int dir_fd, struct listing *listing)
{
	memset(listing->types, LISTING_ABSENT, sizeof(listing->types));
	listing->like_manifest[0] = '\0';
	auto_close int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	auto_closedir DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	take_fd(&fd);
	const struct dirent *entry;
	size_t count = 0;
	errno = 0;
	while (count <= LISTING_READ_MAX && (entry = readdir(dir))) {
		note(listing, entry->d_name, entry->d_type);
		count++;
	}
	if (count <= LISTING_READ_MAX && errno)
		return -errno;
	/* The rest of a huge directory, and file systems that give no types. */
	for (size_t i = 0; i < LISTING_COUNT; i++)
		if (listing->types[i] == DT_UNKNOWN ||
			(listing->types[i] == LISTING_ABSENT && count > LISTING_READ_MAX))
			ask(dir_fd, listing, i);
	return 0;
}
