#include "core/tools/watchsource.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "core/base/xalloc.h"

#define STEP_MASK (IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO)
#define ROOT_MASK (STEP_MASK | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)

/* ---- directories in it */

static uint64_t hash_of(const char *name)
{
	return map_hash(MAP_HASH_SEED, name, strlen(name));
}

struct watchdir *watch_source_find(const struct watch_source *source, const char *name)
{
	struct watchdir *dir = map_get(&source->dirs, hash_of(name));
	while (dir && strcmp(dir->name, name) != 0)
		dir = dir->next_same;
	return dir;
}

struct watchdir *watch_source_get(struct watch_source *source, const char *name)
{
	struct watchdir *dir = watch_source_find(source, name);
	if (dir)
		return dir;
	dir = watchdir_new(source, name);
	dir->next_same = map_put(&source->dirs, hash_of(name), dir);
	source->dir_count++;
	return dir;
}

static void count_refused(struct watch_source *source, bool was, bool is)
{
	source->refused_count += is;
	source->refused_count -= was;
}

void watch_source_forget(struct watch_source *source, struct notify *notify, struct watchdir *dir)
{
	uint64_t hash = hash_of(dir->name);
	struct watchdir *first = map_remove(&source->dirs, hash);
	struct watchdir **link = &first;
	while (*link != dir)
		link = &(*link)->next_same;
	*link = dir->next_same;
	if (first)
		map_put(&source->dirs, hash, first);
	count_refused(source, dir->refused, false);
	source->dir_count--;
	watchdir_free(notify, dir);
}

bool watch_source_renew_dir(struct watch_source *source, struct notify *notify,
	const struct root *root, struct watchdir *dir)
{
	bool was = dir->refused;
	bool is_there = watchdir_renew(notify, root, dir);
	count_refused(source, was, dir->refused);
	return is_there;
}

struct watchdir *watch_source_next(
	const struct watch_source *source, size_t *at, struct watchdir *dir)
{
	if (dir && dir->next_same)
		return dir->next_same;
	const struct map_slot *slot = map_next(&source->dirs, at);
	return slot ? slot->value : NULL;
}

/* ---- the path and itself */

/* File systems that another machine, or another program, may change without a word here. */
static bool is_remote(int fd)
{
	static const uint32_t types[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB 2 */
		0x65735546, /* FUSE, virtiofs */
		0x01021997, /* 9P */
		0x5346414f, /* AFS */
		0x6b414653, /* AFS of the kernel */
		0x73757245, /* Coda */
		0x00c36400, /* Ceph */
		0x47504653, /* GPFS */
		0x0bd00bd0, /* Lustre */
		0x7461636f, /* OCFS2 */
		0x01161970, /* GFS2 */
		0x20030528, /* OrangeFS */
		0x786f4256, /* VirtualBox's shared folders */
		0xbacbacbc, /* VMware's */
	};
	struct statfs st;
	if (fstatfs(fd, &st) < 0)
		return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if ((uint32_t)st.f_type == types[i])
			return true;
	return false;
}

static void watch_place(struct watch_source *source, struct notify *notify, int fd, uint32_t mask,
	struct place *place)
{
	int result = notify ? notify_add(notify, fd, mask, &place->notify) : -ENOSPC;
	source->remote = source->remote || is_remote(fd);
	source->blind = source->blind || source->remote || result < 0;
	bool was = source->refused;
	source->refused = was || result == -ENOSPC;
	count_refused(source, was, source->refused);
}

struct follower {
	struct watch_source *source;
	struct notify *notify;
	struct place *steps; /* owned */
};

static void on_step(void *arg, int dir_fd, const char *name)
{
	struct follower *follower = arg;
	struct place *place = xcalloc(1, sizeof(*place));
	*place = (struct place){ .kind = PLACE_STEP,
		.source = follower->source,
		.next = follower->steps,
		.text = xstrdup(name) };
	follower->steps = place;
	watch_place(follower->source, follower->notify, dir_fd, STEP_MASK, place);
}

int watch_source_follow(
	struct watch_source *source, struct notify *notify, const struct covered *covered)
{
	struct follower follower = { .source = source, .notify = notify };
	count_refused(source, source->refused, false);
	source->refused = source->remote = false;
	/* Unless it is itself what could not be watched. */
	source->blind = source->root_place && !source->root_place->notify.inode;
	int fd = pathwalk_open(source->path, covered, on_step, &follower);
	source->blind = source->blind || (fd >= 0 && is_remote(fd));
	place_free_all(notify, &source->steps);
	source->steps = follower.steps;
	return fd;
}

void watch_source_enter(struct watch_source *source, struct notify *notify, const struct root *root)
{
	struct place *old = source->root_place;
	source->root_place = NULL;
	if (root) {
		source->root_place = xcalloc(1, sizeof(*source->root_place));
		*source->root_place = (struct place){ .kind = PLACE_ROOT, .source = source };
		watch_place(source, notify, root->fd, ROOT_MASK, source->root_place);
	}
	place_free_all(notify, &old);
}

void watch_source_clear(struct watch_source *source, struct notify *notify)
{
	size_t at = 0;
	struct watchdir *dir = watch_source_next(source, &at, NULL);
	while (dir) {
		struct watchdir *next = watch_source_next(source, &at, dir);
		count_refused(source, dir->refused, false);
		watchdir_free(notify, dir);
		dir = next;
	}
	map_release(&source->dirs);
	source->dir_count = 0;
}

void watch_source_release(struct watch_source *source, struct notify *notify)
{
	watch_source_clear(source, notify);
	place_free_all(notify, &source->steps);
	place_free_all(notify, &source->root_place);
}
