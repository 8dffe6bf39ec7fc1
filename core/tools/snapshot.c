#include "core/tools/snapshot.h"

#include <assert.h>
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

/* A tool that is in an earlier snapshot stays as it is there: those never change. */
static void set_id(struct tool **slot, uint32_t id)
{
	if ((*slot)->id != 0 && (*slot)->id != id) {
		struct tool *copy = tool_copy(*slot);
		tool_unref(*slot);
		*slot = copy;
	}
	(*slot)->id = id;
}

/*
 * In byte order of the names, so the first of two that collide has the plain hash. Returns whether
 * any two did.
 */
static bool give_ids(struct tool **tools, size_t count)
{
	bool has_salted = false;
	size_t size = 16;
	while (size < count * 2)
		size *= 2;
	struct id_set set = { .places = xcalloc(size, sizeof(uint32_t)), .mask = size - 1 };
	for (size_t i = 0; i < count; i++) {
		uint32_t salt = 0, id;
		do
			id = hash_name(tools[i]->name, salt++);
		while (!claim(&set, id));
		has_salted = has_salted || salt > 1;
		set_id(&tools[i], id);
	}
	free(set.places);
	return has_salted;
}

static int compare_ids(const void *left, const void *right)
{
	const struct tool *a = *(struct tool *const *)left, *b = *(struct tool *const *)right;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* ---- what changed since the snapshot before */

#define CHANGES_MAX 64 /* beyond that, all is made anew */

struct changes {
	struct tool *gone[CHANGES_MAX]; /* borrowed */
	size_t gone_count;
	size_t come[CHANGES_MAX]; /* indices into the new tools */
	size_t come_count;
};

/* False where there are too many. Both are in order of names, and most pointers are the same. */
static bool compare_sets(
	const struct snapshot *before, struct tool **tools, size_t count, struct changes *changes)
{
	size_t old = 0, new = 0;
	*changes = (struct changes){ .gone_count = 0 };
	while (old < before->count || new < count) {
		struct tool *a = old < before->count ? before->tools[old] : NULL;
		struct tool *b = new < count ? tools[new] : NULL;
		int order = a == b ? 0 : !a ? 1 : !b ? -1 : strcmp(a->name, b->name);
		bool is_full =
			changes->gone_count == CHANGES_MAX || changes->come_count == CHANGES_MAX;
		if (a != b && is_full)
			return false;
		if (a != b && order <= 0)
			changes->gone[changes->gone_count++] = a;
		if (a != b && order >= 0)
			changes->come[changes->come_count++] = new;
		old += order <= 0;
		new += order >= 0;
	}
	return true;
}

static bool is_gone(const struct changes *changes, const struct tool *tool)
{
	for (size_t i = 0; i < changes->gone_count; i++)
		if (changes->gone[i] == tool)
			return true;
	return false;
}

/* The first place in by_id whose id is not smaller. */
static size_t place_of_id(struct tool *const *by_id, size_t count, uint32_t id)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (by_id[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Fills by_id from that of before. False where an id is taken: then all ids are given anew. */
static bool follow_ids(const struct snapshot *before, struct snapshot *snapshot,
	struct tool **tools, const struct changes *changes)
{
	size_t count = 0;
	for (size_t i = 0; i < before->count; i++)
		if (!is_gone(changes, before->by_id[i]))
			snapshot->by_id[count++] = before->by_id[i];
	for (size_t i = 0; i < changes->come_count; i++) {
		struct tool **slot = &tools[changes->come[i]];
		uint32_t id = hash_name((*slot)->name, 0);
		size_t at = place_of_id(snapshot->by_id, count, id);
		if (id == 0 || (at < count && snapshot->by_id[at]->id == id))
			return false;
		set_id(slot, id);
		memmove(&snapshot->by_id[at + 1], &snapshot->by_id[at],
			(count++ - at) * sizeof(struct tool *));
		snapshot->by_id[at] = *slot;
	}
	return true;
}

/* ---- faults, shared by those that have the same */

struct fault_shelf {
	size_t refs;
	struct faults faults; /* owned */
};

static struct fault_shelf *shelve(struct faults *faults)
{
	struct fault_shelf *shelf = xcalloc(1, sizeof(*shelf));
	*shelf = (struct fault_shelf){ .refs = 1, .faults = *faults };
	*faults = (struct faults)FAULTS_INIT;
	return shelf;
}

static void unref_shelf(struct fault_shelf *shelf)
{
	if (--shelf->refs > 0)
		return;
	faults_release(&shelf->faults);
	free(shelf);
}

/* ---- life */

static void order_by_id(struct snapshot *snapshot, struct tool **tools)
{
	snapshot->has_salted = give_ids(tools, snapshot->count);
	for (size_t i = 0; i < snapshot->count; i++)
		snapshot->by_id[i] = tools[i];
	qsort(snapshot->by_id, snapshot->count, sizeof(*snapshot->by_id), compare_ids);
}

struct snapshot *snapshot_next(const struct snapshot *before, struct tool **tools, size_t count,
	struct faults *faults, uint64_t generation)
{
	assert(before || faults); /* none is new: they are those of before */
	struct snapshot *snapshot = xcalloc(1, sizeof(*snapshot));
	*snapshot = (struct snapshot){ .refs = 1,
		.generation = generation,
		.tools = xcalloc(count, sizeof(struct tool *)),
		.count = count,
		.by_id = xcalloc(count, sizeof(struct tool *)),
		.shelf = faults ? shelve(faults) : before->shelf };
	snapshot->shelf->refs += !faults;
	snapshot->faults = snapshot->shelf->faults;
	struct changes changes;
	bool follows = before && !before->has_salted &&
		       compare_sets(before, tools, count, &changes) &&
		       follow_ids(before, snapshot, tools, &changes);
	if (!follows)
		order_by_id(snapshot, tools);
	for (size_t i = 0; i < count; i++)
		snapshot->tools[i] = tool_ref(tools[i]);
	return snapshot;
}

struct snapshot *snapshot_new(
	struct tool **tools, size_t count, struct faults *faults, uint64_t generation)
{
	return snapshot_next(NULL, tools, count, faults, generation);
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
	unref_shelf(snapshot->shelf);
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

void snapshot_each_new(const struct snapshot *before, const struct snapshot *now,
	void (*on_tool)(void *arg, struct tool *tool), void *arg)
{
	size_t old = 0, count = before ? before->count : 0;
	for (size_t i = 0; i < now->count; i++) {
		struct tool *tool = now->tools[i];
		while (old < count && before->tools[old] != tool &&
			strcmp(before->tools[old]->name, tool->name) < 0)
			old++;
		if (old < count && before->tools[old] == tool)
			old++;
		else
			on_tool(arg, tool);
	}
}

bool snapshot_equal(const struct snapshot *a, const struct snapshot *b)
{
	return a->count == b->count &&
	       (a->count == 0 || memcmp(a->tools, b->tools, a->count * sizeof(*a->tools)) == 0) &&
	       (a->shelf == b->shelf || faults_equal(&a->faults, &b->faults));
}
