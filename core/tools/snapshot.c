#include "core/tools/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

/* ---- ids */

/* FNV-1a over salt and name, then mixed so that all bits depend on all of it (murmur3's finish). */
static uint32_t hash_name(const char *name, uint32_t salt)
{
	uint32_t hash = UINT32_C(2166136261) ^ salt;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * UINT32_C(16777619);
	hash = (hash ^ (hash >> 16)) * UINT32_C(0x85ebca6b);
	hash = (hash ^ (hash >> 13)) * UINT32_C(0xc2b2ae35);
	return hash ^ (hash >> 16);
}

/* Ids in use: open addressing, at most half full; 0 is an empty place. */
struct id_set {
	uint32_t *places; /* owned */
	size_t mask;
};

static bool claim(struct id_set *set, uint32_t id)
{
	if (id == 0)
		return false;
	size_t at = id & set->mask;
	while (set->places[at] != 0 && set->places[at] != id)
		at = (at + 1) & set->mask;
	if (set->places[at] == id)
		return false;
	set->places[at] = id;
	return true;
}

/* In byte order of the names, so the first of two that collide has the plain hash. */
static void give_ids(struct tool **tools, size_t count)
{
	size_t size = 16;
	while (size < count * 2)
		size *= 2;
	struct id_set set = { .places = xcalloc(size, sizeof(uint32_t)), .mask = size - 1 };
	for (size_t i = 0; i < count; i++) {
		uint32_t salt = 0, id;
		do
			id = hash_name(tools[i]->name, salt++);
		while (!claim(&set, id));
		if (tools[i]->id != 0 && tools[i]->id != id) {
			/* It is in an earlier snapshot, and those never change. */
			struct tool *copy = tool_copy(tools[i]);
			tool_unref(tools[i]);
			tools[i] = copy;
		}
		tools[i]->id = id;
	}
	free(set.places);
}

static int compare_ids(const void *left, const void *right)
{
	const struct tool *a = *(struct tool *const *)left, *b = *(struct tool *const *)right;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* ---- life */

struct snapshot *snapshot_new(
	struct tool **tools, size_t count, struct faults *faults, uint64_t generation)
{
	struct snapshot *snapshot = xcalloc(1, sizeof(*snapshot));
	*snapshot = (struct snapshot){ .refs = 1,
		.generation = generation,
		.tools = xcalloc(count, sizeof(struct tool *)),
		.count = count,
		.by_id = xcalloc(count, sizeof(struct tool *)),
		.faults = *faults };
	*faults = (struct faults)FAULTS_INIT;
	give_ids(tools, count);
	for (size_t i = 0; i < count; i++) {
		snapshot->tools[i] = tool_ref(tools[i]);
		snapshot->by_id[i] = tools[i];
	}
	qsort(snapshot->by_id, count, sizeof(*snapshot->by_id), compare_ids);
	return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	snapshot->refs++;
	return snapshot;
}

void snapshot_unref(struct snapshot *snapshot)
{
	if (!snapshot || --snapshot->refs > 0)
		return;
	for (size_t i = 0; i < snapshot->count; i++)
		tool_unref(snapshot->tools[i]);
	free(snapshot->tools);
	free(snapshot->by_id);
	faults_release(&snapshot->faults);
	free(snapshot);
}

/* ---- questions */

struct tool *snapshot_find(const struct snapshot *snapshot, const char *name)
{
	size_t low = 0, high = snapshot->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(snapshot->tools[middle]->name, name);
		if (order == 0)
			return snapshot->tools[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

struct tool *snapshot_find_id(const struct snapshot *snapshot, uint32_t id)
{
	size_t low = 0, high = snapshot->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct tool *tool = snapshot->by_id[middle];
		if (tool->id == id)
			return tool;
		if (tool->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

bool snapshot_equal(const struct snapshot *a, const struct snapshot *b)
{
	return a->count == b->count &&
	       (a->count == 0 || memcmp(a->tools, b->tools, a->count * sizeof(*a->tools)) == 0) &&
	       faults_equal(&a->faults, &b->faults);
}
