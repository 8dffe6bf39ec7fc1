#include "core/tools/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/tools/tool.h"

#define READ_SIZE 4096

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
		if (name[0] == texts[i][0] && strcmp(name, texts[i]) == 0) {
			listing->types[i] = type;
			return;
		}
	if (strcasecmp(name, TOOL_FILE) == 0)
		memcpy(listing->like_manifest, name, sizeof(TOOL_FILE));
}

static void ask(int dir_fd, struct listing *listing, size_t i)
{
	struct stat st;
	if (fstatat(dir_fd, texts[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
		listing->types[i] = (unsigned char)IFTODT(st.st_mode);
}

/* The rest of a huge directory, and file systems that give no types. */
static void ask_for_the_rest(int dir_fd, struct listing *listing, bool is_complete)
{
	for (size_t i = 0; i < LISTING_COUNT; i++)
		if (listing->types[i] == DT_UNKNOWN ||
			(listing->types[i] == LISTING_ABSENT && !is_complete))
			ask(dir_fd, listing, i);
}

int listing_read(int dir_fd, struct listing *listing)
{
	/* getdents64(2) itself: a DIR costs an allocation of 32 KiB for each directory. */
	_Alignas(struct dirent64) char bytes[READ_SIZE];
	memset(listing->types, LISTING_ABSENT, sizeof(listing->types));
	listing->like_manifest[0] = '\0';
	ssize_t got = 1;
	for (int reads = 0; got > 0 && reads < LISTING_READS_MAX; reads++) {
		got = getdents64(dir_fd, bytes, sizeof(bytes));
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *entry = (const void *)(bytes + at);
			note(listing, entry->d_name, entry->d_type);
			at += entry->d_reclen;
		}
	}
	if (got < 0)
		return -errno;
	ask_for_the_rest(dir_fd, listing, got == 0);
	return 0;
}
