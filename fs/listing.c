#include "fs/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"
#include "fs/server.h"

/* Where the offsets of each sort of entry begin; all below 2^63, for off_t has a sign. */
#define OFFSET_SELF 1
#define OFFSET_PARENT 2
#define OFFSET_KINDS LISTING_FIRST
#define OFFSET_TOOLS (UINT64_C(1) << 32)
#define OFFSET_CALLS (UINT64_C(1) << INO_SEQ_BITS)
#define OFFSET_FILES (UINT64_C(1) << 62)

static void add(
	struct listing *listing, const char *name, uint64_t offset, uint64_t ino, mode_t type)
{
	listing->items =
		xgrow(listing->items, listing->count, &listing->capacity, sizeof(*listing->items));
	listing->items[listing->count++] = (struct listing_entry){
		.name = xstrdup(name), .offset = offset, .ino = ino, .type = type & S_IFMT
	};
}

void listing_free(struct listing *listing)
{
	if (!listing)
		return;
	for (size_t i = 0; i < listing->count; i++)
		free(listing->items[i].name);
	free(listing->items);
	free(listing);
}

static void add_kinds(struct listing *listing, const struct server *server, const struct node *dir)
{
	for (int kind = 0; kind < NODE_KINDS; kind++) {
		const struct node_type *type = &node_types[kind];
		if (kind == NODE_ROOT || type->parent != dir->kind || !type->name)
			continue;
		if (!dir->tool && !node_is_shown(server, (enum node_kind)kind, dir->tree))
			continue;
		struct node node;
		if (dir->call)
			node_set_of_call(server, &node, (enum node_kind)kind, dir->call);
		else
			node_set_in(server, &node, (enum node_kind)kind, dir->tree, dir->tool);
		add(listing, type->name, OFFSET_KINDS + (unsigned)kind, node.ino, type->mode);
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct listing_entry *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void sort(struct listing *listing, size_t from)
{
	qsort(listing->items + from, listing->count - from, sizeof(*listing->items), by_offset);
}

/* Tools and users' trees have numbers of their own, which tell their places. */
static void add_numbered(struct listing *listing, const char *name, uint64_t ino)
{
	add(listing, name, OFFSET_TOOLS + ino_tool_id(ino), ino, S_IFDIR);
}

static void add_tools(struct listing *listing, const struct server *server, const struct node *dir)
{
	const struct snapshot *snapshot = dir->tree->snapshot;
	size_t from = listing->count;
	for (size_t i = 0; i < snapshot->count; i++) {
		struct node node;
		node_set_in(server, &node, NODE_TOOL, dir->tree, snapshot->by_id[i]);
		add_numbered(listing, snapshot->by_id[i]->name, node.ino);
	}
	sort(listing, from);
}

static void add_users(struct listing *listing, const struct server *server)
{
	size_t from = listing->count, at = 0;
	struct forest_tree *tree = NULL;
	while ((tree = forest_next(server->forest, &at, tree))) {
		struct node node;
		node_set_in(server, &node, NODE_ROOT, tree, NULL);
		add_numbered(listing, tree->owner->name, node.ino);
	}
	sort(listing, from);
}

struct adding {
	struct listing *listing;
	const struct server *server;
};

static void add_call(void *arg, const struct call *call)
{
	struct adding *adding = arg;
	struct node node;
	node_set_of_call(adding->server, &node, NODE_CALL_DIR, call);
	add(adding->listing, call->id, OFFSET_CALLS | call->seq, node.ino, S_IFDIR);
}

static void add_calls(struct listing *listing, const struct server *server, const struct node *dir,
	const struct fuse_ctx *ctx)
{
	struct caller caller;
	if (!calls_may_be_seen(server->calls, dir->tool, ctx->uid))
		return;
	caller_load_reader(&caller, ctx->uid, ctx->gid, ctx->pid);
	struct adding adding = { .listing = listing, .server = server };
	size_t from = listing->count;
	calls_each(server->calls, dir->tool, &caller, add_call, &adding);
	sort(listing, from);
}

static mode_t type_of(const struct dirent *entry, int dir_fd)
{
	struct stat st;
	switch (entry->d_type) {
	case DT_REG:
		return S_IFREG;
	case DT_DIR:
		return S_IFDIR;
	case DT_LNK:
		return S_IFLNK;
	case DT_UNKNOWN:
		if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISLNK(st.st_mode)
			       ? st.st_mode & S_IFMT
			       : 0;
	default:
		return 0;
	}
}

static bool is_own_entry(const struct node *dir, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	/* A tool's own file of a name that the tree makes is hidden. */
	return dir->kind != NODE_TOOL || node_kind_of(NODE_TOOL, name) == NODE_KINDS;
}

/* A mount of ours in a tool's directory is not there (source_open_file()), so it is not listed. */
static bool is_own_mount(
	const struct node *dir, const char *path, const struct dirent *entry, int dir_fd)
{
	struct stat st;
	auto_close int fd = io_open_resolve(
		dir_fd, entry->d_name, O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	return fd == -EXDEV && file_look(dir->tool, path, &st) == -ENOENT;
}

static void add_file(
	struct listing *listing, const struct node *dir, const struct dirent *entry, int dir_fd)
{
	mode_t type = type_of(entry, dir_fd);
	if (type == 0 || !is_own_entry(dir, entry->d_name))
		return;
	auto_free char *path = dir->file ? xasprintf("%s/%s", dir->file->path, entry->d_name)
					 : xstrdup(entry->d_name);
	if (type == S_IFDIR && is_own_mount(dir, path, entry, dir_fd))
		return;
	uint64_t hash = map_hash(MAP_HASH_SEED, entry->d_name, strlen(entry->d_name));
	add(listing, entry->d_name, OFFSET_FILES | hash >> 2, file_ino(dir->tool, path), type);
}

/* Two names of one offset would make a reader skip one: each has its own. */
static void part_equal_offsets(struct listing *listing, size_t from)
{
	for (size_t i = from + 1; i < listing->count; i++)
		if (listing->items[i].offset <= listing->items[i - 1].offset)
			listing->items[i].offset = listing->items[i - 1].offset + 1;
}

static int add_files(struct listing *listing, const struct node *dir, struct fail *why)
{
	const char *path = dir->file ? dir->file->path : ".";
	int fd = file_open(dir->tool, path, O_RDONLY);
	if (fd < 0)
		return fail_set(why, fd, "cannot open directory %s of %s: %s", path,
			dir->tool->name, strerror(-fd));
	auto_closedir DIR *stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return fail_set(why, -ENOMEM, "no memory to read a directory");
	}
	size_t from = listing->count;
	const struct dirent *entry;
	while ((entry = readdir(stream)) && listing->count - from < LISTING_FILES_MAX)
		add_file(listing, dir, entry, dirfd(stream));
	if (entry)
		log_msg(LOG_LEVEL_WARNING, "%s/%s has more than %d entries: only so many are shown",
			dir->tool->name, path, LISTING_FILES_MAX);
	sort(listing, from);
	part_equal_offsets(listing, from);
	return 0;
}

static uint64_t parent_ino(const struct server *server, const struct node *dir)
{
	if (dir->kind == NODE_FILE) {
		const char *slash = strrchr(dir->file->path, '/');
		if (slash) {
			auto_free char *parent =
				xstrndup(dir->file->path, (size_t)(slash - dir->file->path));
			return file_ino(dir->tool, parent);
		}
	}
	struct node parent;
	bool is_in_tree = dir->type->parent == NODE_ROOT || dir->type->parent == NODE_META;
	if (dir->kind == NODE_ROOT) /* a user's tree lies at the mount point */
		return 1;
	node_set_in(server, &parent, dir->type->parent, dir->tree, is_in_tree ? NULL : dir->tool);
	return parent.ino;
}

struct listing *listing_new(
	struct server *server, const struct node *dir, const struct fuse_ctx *ctx, struct fail *why)
{
	struct listing *listing = xcalloc(1, sizeof(*listing));
	add(listing, ".", OFFSET_SELF, dir->ino, S_IFDIR);
	add(listing, "..", OFFSET_PARENT, parent_ino(server, dir), S_IFDIR);
	add_kinds(listing, server, dir);
	if (forest_is_above(server->forest, dir->tree) && dir->kind == NODE_ROOT)
		add_users(listing, server);
	else if (dir->kind == NODE_ROOT)
		add_tools(listing, server, dir);
	if (dir->kind == NODE_CALLS)
		add_calls(listing, server, dir, ctx);
	if ((dir->kind == NODE_TOOL || dir->kind == NODE_FILE) &&
		add_files(listing, dir, why) < 0) {
		listing_free(listing);
		return NULL;
	}
	return listing;
}

size_t listing_after(const struct listing *listing, uint64_t offset)
{
	size_t low = 0, high = listing->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (listing->items[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
