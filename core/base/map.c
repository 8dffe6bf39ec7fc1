#include "core/base/map.h"

#include <stdlib.h>

#include "core/base/xalloc.h"

#define MAP_FIRST_SIZE 16

void map_release(struct map *map)
{
	free(map->slots);
	*map = (struct map)MAP_INIT;
}

/* Keys may be counters or have their entropy anywhere: mixed, they spread (splitmix64's finish). */
static size_t home(const struct map *map, uint64_t key)
{
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9u;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebu;
	key ^= key >> 31;
	return (size_t)key & (map->size - 1);
}

/* The slot that holds key, or the free one where it would go. */
static struct map_slot *find(const struct map *map, uint64_t key)
{
	size_t at = home(map, key);
	while (map->slots[at].value && map->slots[at].key != key)
		at = (at + 1) & (map->size - 1);
	return &map->slots[at];
}

void *map_get(const struct map *map, uint64_t key)
{
	return map->size ? find(map, key)->value : NULL;
}

static void grow(struct map *map)
{
	struct map old = *map;
	map->size = old.size ? old.size * 2 : MAP_FIRST_SIZE;
	map->slots = xcalloc(map->size, sizeof(*map->slots));
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i].value)
			*find(map, old.slots[i].key) = old.slots[i];
	free(old.slots);
}

void *map_put(struct map *map, uint64_t key, void *value)
{
	if (map->count * 4 >= map->size * 3)
		grow(map);
	struct map_slot *slot = find(map, key);
	void *former = slot->value;
	if (!former)
		map->count++;
	*slot = (struct map_slot){ .key = key, .value = value };
	return former;
}

/* Moves back what had been pushed on by the slot that is free now, so that no search ends early. */
static void close_gap(struct map *map, size_t gap)
{
	size_t mask = map->size - 1;
	for (size_t at = (gap + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
		size_t wanted = home(map, map->slots[at].key);
		if (((at - wanted) & mask) < ((at - gap) & mask))
			continue;
		map->slots[gap] = map->slots[at];
		map->slots[at].value = NULL;
		gap = at;
	}
}

void *map_remove(struct map *map, uint64_t key)
{
	if (!map->size)
		return NULL;
	struct map_slot *slot = find(map, key);
	void *value = slot->value;
	if (!value)
		return NULL;
	slot->value = NULL;
	map->count--;
	close_gap(map, (size_t)(slot - map->slots));
	return value;
}

const struct map_slot *map_next(const struct map *map, size_t *at)
{
	while (*at < map->size) {
		const struct map_slot *slot = &map->slots[(*at)++];
		if (slot->value)
			return slot;
	}
	return NULL;
}

uint64_t map_hash(uint64_t seed, const void *bytes, size_t len)
{
	const unsigned char *byte = bytes;
	for (size_t i = 0; i < len; i++)
		seed = (seed ^ byte[i]) * 0x100000001b3u;
	return seed;
}
