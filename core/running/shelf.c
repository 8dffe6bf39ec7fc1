#include "core/running/shelf.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

static uint64_t key_of(const char *tool_key, uid_t uid)
{
	uint64_t hash = map_hash(MAP_HASH_SEED, tool_key, strlen(tool_key));
	return map_hash(hash, &uid, sizeof(uid));
}

static void free_shelf(struct shelf *shelf)
{
	free(shelf->tool_key);
	free(shelf);
}

void shelves_release(struct shelves *shelves)
{
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&shelves->by_key, &at)))
		for (struct shelf *shelf = slot->value, *next; shelf; shelf = next) {
			next = shelf->next;
			free_shelf(shelf);
		}
	map_release(&shelves->by_key);
}

struct shelf *shelves_find(const struct shelves *shelves, const char *tool_key, uid_t uid)
{
	struct shelf *shelf = map_get(&shelves->by_key, key_of(tool_key, uid));
	while (shelf && (shelf->uid != uid || strcmp(shelf->tool_key, tool_key) != 0))
		shelf = shelf->next;
	return shelf;
}

struct shelf *shelves_make(struct shelves *shelves, const char *tool_key, uid_t uid)
{
	struct shelf *shelf = shelves_find(shelves, tool_key, uid);
	if (shelf)
		return shelf;
	shelf = xcalloc(1, sizeof(*shelf));
	shelf->tool_key = xstrdup(tool_key);
	shelf->uid = uid;
	shelf->next = map_put(&shelves->by_key, key_of(tool_key, uid), shelf);
	return shelf;
}

void shelves_drop_empty(struct shelves *shelves, struct shelf *shelf)
{
	if (shelf->first)
		return;
	uint64_t key = key_of(shelf->tool_key, shelf->uid);
	struct shelf *head = map_remove(&shelves->by_key, key);
	for (struct shelf **link = &head; *link; link = &(*link)->next)
		if (*link == shelf) {
			*link = shelf->next;
			break;
		}
	if (head)
		map_put(&shelves->by_key, key, head);
	free_shelf(shelf);
}

void shelf_insert(struct shelf *shelf, struct entry *entry)
{
	struct entry *before = shelf->last;
	while (before && before->call.seq > entry->call.seq)
		before = before->prev;
	entry->shelf = shelf;
	entry->prev = before;
	entry->next = before ? before->next : shelf->first;
	*(before ? &before->next : &shelf->first) = entry;
	*(entry->next ? &entry->next->prev : &shelf->last) = entry;
}

void shelf_remove(struct entry *entry)
{
	struct shelf *shelf = entry->shelf;
	*(entry->prev ? &entry->prev->next : &shelf->first) = entry->next;
	*(entry->next ? &entry->next->prev : &shelf->last) = entry->prev;
	entry->next = entry->prev = NULL;
	entry->shelf = NULL;
}

static bool same_process(const struct call *a, const struct call *b)
{
	return a->chain.count > 0 && b->chain.count > 0 &&
	       process_equal(&a->chain.links[0], &b->chain.links[0]);
}

void shelf_supersede(struct entry *entry)
{
	for (struct entry *other = entry->prev; other; other = other->prev) {
		if (!call_state_is_final(other->call.state) || other->named ||
			!same_process(&other->call, &entry->call))
			continue;
		/* Those before it have been marked when it finished, but for what took longer. */
		if (other->superseded)
			return;
		other->superseded = true;
	}
}

struct entry *shelf_first_ended(const struct shelf *shelf)
{
	struct entry *first = NULL;
	for (struct entry *entry = shelf->first; entry; entry = entry->next)
		if (call_state_is_final(entry->call.state) &&
			(!first || entry->call.changed_ms < first->call.changed_ms))
			first = entry;
	return first;
}

static struct entry *first_superseded(const struct shelf *shelf)
{
	struct entry *entry = shelf->first;
	while (entry && !entry->superseded)
		entry = entry->next;
	return entry;
}

struct entry *shelf_surplus(const struct shelf *shelf, size_t keep, int64_t now_ms)
{
	if (shelf->finished_count <= keep)
		return NULL;
	struct entry *superseded = first_superseded(shelf);
	if (superseded)
		return superseded;
	struct entry *oldest = shelf_first_ended(shelf);
	bool may_go = oldest && (oldest->call.changed_ms < now_ms - SHELF_GRACE_MS ||
					shelf->finished_count > keep * SHELF_HARD_FACTOR);
	return may_go ? oldest : NULL;
}

size_t entry_bytes(const struct entry *entry)
{
	size_t bytes = 0;
	for (int part = 0; part < CALL_PARTS; part++)
		bytes += entry->call.part_len[part];
	return bytes;
}

struct shelf *shelves_heaviest(const struct shelves *shelves)
{
	struct shelf *heaviest = NULL;
	size_t at = 0;
	const struct map_slot *slot;
	while ((slot = map_next(&shelves->by_key, &at)))
		for (struct shelf *shelf = slot->value; shelf; shelf = shelf->next)
			if (shelf->finished_count > 1 &&
				(!heaviest || shelf->bytes > heaviest->bytes))
				heaviest = shelf;
	return heaviest;
}
