#include "core/tools/watchqueue.h"

void watchqueue_init(struct watchqueue *queue, enum watchqueue_kind kind)
{
	*queue = (struct watchqueue){ .kind = kind, .last = &queue->first };
}

bool watchqueue_has(const struct watchqueue *queue, const struct watchdir *dir)
{
	return dir->links[queue->kind].queued;
}

void watchqueue_push(struct watchqueue *queue, struct watchdir *dir)
{
	struct watchdir_link *link = &dir->links[queue->kind];
	if (link->queued)
		return;
	*link = (struct watchdir_link){ .queued = true };
	*queue->last = dir;
	queue->last = &link->next;
	queue->count++;
}

/* Takes out what *link points to, which lies in the queue. */
static struct watchdir *unlink_one(struct watchqueue *queue, struct watchdir **slot)
{
	struct watchdir *dir = *slot;
	struct watchdir_link *link = &dir->links[queue->kind];
	*slot = link->next;
	if (queue->last == &link->next)
		queue->last = slot;
	*link = (struct watchdir_link){ .queued = false };
	queue->count--;
	return dir;
}

struct watchdir *watchqueue_pop(struct watchqueue *queue)
{
	return queue->first ? unlink_one(queue, &queue->first) : NULL;
}

void watchqueue_drop(
	struct watchqueue *queue, const struct watch_source *source, const struct watchdir *dir)
{
	struct watchdir **slot = &queue->first;
	while (*slot)
		if ((*slot)->source == source && (!dir || *slot == dir))
			unlink_one(queue, slot);
		else
			slot = &(*slot)->links[queue->kind].next;
}
