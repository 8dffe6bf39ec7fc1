#include "core/tools/notify.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/map.h"
#include "core/base/xalloc.h"

#define READ_SIZE (16 * 1024)

struct notify_inode {
	int wd;
	struct notify_place *places;
};

struct notify {
	int fd;                /* owned */
	struct loop_fd *entry; /* owned */
	struct map by_wd;      /* struct notify_inode, owned */
	size_t max;
	const struct notify_events *events; /* borrowed */
	void *arg;
};

static void on_readable(void *arg, uint32_t events)
{
	struct notify *notify = arg;
	(void)events;
	loop_set_events(notify->entry, 0);
	notify->events->on_wake(notify->arg);
}

struct notify *notify_new(struct loop *loop, size_t max, const struct notify_events *events,
	void *arg, struct fail *why)
{
	struct notify *notify = xcalloc(1, sizeof(*notify));
	*notify = (struct notify){ .fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC),
		.by_wd = MAP_INIT,
		.max = max,
		.events = events,
		.arg = arg };
	if (notify->fd < 0)
		fail_errno(why, "cannot watch directories: see fs.inotify.max_user_instances");
	else
		notify->entry = loop_add_fd(loop, notify->fd, EPOLLIN, on_readable, notify, why);
	if (notify->entry)
		return notify;
	notify_free(notify);
	return NULL;
}

/* Its places are not watched any more. */
static void free_inode(struct notify_inode *inode)
{
	while (inode->places) {
		struct notify_place *place = inode->places;
		inode->places = place->next;
		*place = (struct notify_place){ .mask = place->mask };
	}
	free(inode);
}

void notify_free(struct notify *notify)
{
	if (!notify)
		return;
	loop_remove_fd(&notify->entry);
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&notify->by_wd, &at)))
		free_inode(slot->value);
	map_release(&notify->by_wd);
	if (notify->fd >= 0)
		close(notify->fd);
	free(notify);
}

size_t notify_count(const struct notify *notify)
{
	return notify->by_wd.count;
}

void notify_resume(struct notify *notify)
{
	loop_set_events(notify->entry, EPOLLIN);
}

int notify_add(struct notify *notify, int dir_fd, uint32_t mask, struct notify_place *place)
{
	char path[64];
	if (notify->by_wd.count >= notify->max)
		return -ENOSPC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
	/* The kernel gives the same number for the same inode, and adds to what it reports. */
	int wd = inotify_add_watch(
		notify->fd, path, mask | IN_MASK_ADD | IN_ONLYDIR | IN_EXCL_UNLINK);
	if (wd < 0)
		return -errno;
	struct notify_inode *inode = map_get(&notify->by_wd, (uint64_t)wd);
	if (!inode) {
		inode = xcalloc(1, sizeof(*inode));
		inode->wd = wd;
		map_put(&notify->by_wd, (uint64_t)wd, inode);
	}
	*place = (struct notify_place){
		.inode = inode, .next = inode->places, .link = &inode->places, .mask = mask
	};
	if (place->next)
		place->next->link = &place->next;
	inode->places = place;
	return 0;
}

void notify_remove(struct notify *notify, struct notify_place *place)
{
	struct notify_inode *inode = place->inode;
	if (!inode)
		return;
	*place->link = place->next;
	if (place->next)
		place->next->link = place->link;
	*place = (struct notify_place){ .mask = place->mask };
	if (inode->places)
		return;
	/* What the kernel has queued for it is for nobody: numbers are not used again. */
	inotify_rm_watch(notify->fd, inode->wd);
	map_remove(&notify->by_wd, (uint64_t)inode->wd);
	free(inode);
}

static void deliver(struct notify *notify, const struct inotify_event *event)
{
	const char *name = event->len > 0 ? event->name : "";
	if (event->mask & IN_Q_OVERFLOW) {
		notify->events->on_event(notify->arg, NULL, event->mask, name);
		return;
	}
	struct notify_inode *inode = map_get(&notify->by_wd, (uint64_t)event->wd);
	for (struct notify_place *place = inode ? inode->places : NULL; place; place = place->next)
		if (event->mask & (place->mask | IN_IGNORED | IN_UNMOUNT))
			notify->events->on_event(notify->arg, place, event->mask, name);
	if (inode && event->mask & IN_IGNORED) {
		map_remove(&notify->by_wd, (uint64_t)event->wd);
		free_inode(inode);
	}
}

void notify_drain(struct notify *notify)
{
	_Alignas(struct inotify_event) char bytes[READ_SIZE];
	ssize_t got;
	while ((got = read(notify->fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct inotify_event *event = (const void *)(bytes + at);
			deliver(notify, event);
			at += (ssize_t)sizeof(*event) + (ssize_t)event->len;
		}
	if (got < 0 && errno != EAGAIN && errno != EINTR)
		log_errno(LOG_LEVEL_ERROR, "cannot read what happened to watched directories");
}
