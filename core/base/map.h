/* A hash table from 64-bit numbers to pointers: open addressing, linear probing. */
#ifndef PEGFS_BASE_MAP_H
#define PEGFS_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

struct map {
	struct map_slot *slots; /* owned; what the values point to is not */
	size_t count, size;     /* size is 0 or a power of two */
};

#define MAP_INIT                                                                                   \
	{                                                                                          \
		.slots = NULL, .count = 0, .size = 0                                               \
	}

void map_release(struct map *map);

/* The value for key, or NULL. */
void *map_get(const struct map *map, uint64_t key);

/* Sets key's value (not NULL) and returns the former one, or NULL. */
void *map_put(struct map *map, uint64_t key, void *value);

/* Takes key out and returns its value, or NULL. */
void *map_remove(struct map *map, uint64_t key);

/* The first slot in use at or after *at, which moves behind it; NULL at the end. Start with 0. */
const struct map_slot *map_next(const struct map *map, size_t *at);

/* FNV-1a of bytes, continued from seed (MAP_HASH_SEED for the first part). */
#define MAP_HASH_SEED 0xcbf29ce484222325u
uint64_t map_hash(uint64_t seed, const void *bytes, size_t len);

#endif
