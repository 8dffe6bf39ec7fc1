#include "core/tools/overlay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

void overlay_release(struct overlay *overlay)
{
	free(overlay->entries);
	*overlay = (struct overlay)OVERLAY_INIT;
}

static int compare(const void *left, const void *right)
{
	const struct overlay_entry *a = left, *b = right;
	int order = strcmp(a->tool->name, b->tool->name);
	if (order != 0)
		return order;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	return strcmp(a->tool->dir_name, b->tool->dir_name);
}

/* Where the entry is, or where it would go. */
static size_t place_of(const struct overlay *overlay, const struct overlay_entry *entry)
{
	size_t low = 0, high = overlay->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare(&overlay->entries[middle], entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns whether it is doubled, or was. */
static bool judge(struct overlay *overlay, size_t at)
{
	if (at >= overlay->count)
		return false;
	struct overlay_entry *entry = &overlay->entries[at], *next = entry + 1;
	bool was = entry->doubled;
	entry->hidden = at + 1 < overlay->count && strcmp(entry->tool->name, next->tool->name) == 0;
	entry->doubled = entry->hidden && entry->source == next->source;
	return was || entry->doubled;
}

bool overlay_add(struct overlay *overlay, struct tool *tool, size_t source)
{
	struct overlay_entry entry = { .tool = tool, .source = source };
	size_t at = place_of(overlay, &entry);
	overlay_append(overlay, tool, source);
	struct overlay_entry *place = &overlay->entries[at];
	memmove(place + 1, place, (overlay->count - 1 - at) * sizeof(entry));
	*place = entry;
	bool before = at > 0 && judge(overlay, at - 1);
	return judge(overlay, at) || before;
}

bool overlay_remove(struct overlay *overlay, struct tool *tool, size_t source)
{
	const struct overlay_entry entry = { .tool = tool, .source = source };
	size_t at = place_of(overlay, &entry);
	assert(at < overlay->count && overlay->entries[at].tool == tool);
	struct overlay_entry *place = &overlay->entries[at];
	bool was = place->doubled;
	overlay->count--;
	memmove(place, place + 1, (overlay->count - at) * sizeof(entry));
	bool before = at > 0 && judge(overlay, at - 1);
	return was || before;
}

void overlay_clear(struct overlay *overlay)
{
	overlay->count = 0;
}

void overlay_append(struct overlay *overlay, struct tool *tool, size_t source)
{
	overlay->entries = xgrow(
		overlay->entries, overlay->count, &overlay->capacity, sizeof(*overlay->entries));
	overlay->entries[overlay->count++] =
		(struct overlay_entry){ .tool = tool, .source = source };
}

void overlay_sort(struct overlay *overlay)
{
	if (overlay->count > 0)
		qsort(overlay->entries, overlay->count, sizeof(*overlay->entries), compare);
	for (size_t i = 0; i < overlay->count; i++)
		judge(overlay, i);
}

void overlay_tell_doubled(const struct overlay *overlay, size_t source, struct faults *faults)
{
	for (size_t i = 0; i < overlay->count; i++) {
		const struct overlay_entry *entry = &overlay->entries[i];
		if (!entry->doubled || entry->source != source)
			continue;
		struct faults one = FAULTS_INIT;
		faults_add(&one, FAULT_ERROR, "duplicate-name", 0, 0,
			"the name '%s' is also that of the tool in '%s' beside it, and the last in "
			"byte order wins; rename one of them",
			entry->tool->name, entry[1].tool->dir_name);
		auto_free char *file = xasprintf("%s/%s", entry->tool->dir, TOOL_FILE);
		faults_move(faults, &one, file);
	}
}
