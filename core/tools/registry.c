#include "core/tools/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/source.h"

struct registry {
	char **sources;            /* owned, absolute, NULL-terminated */
	struct source_scan *scans; /* owned, one a source */
	size_t count;
	struct snapshot *current; /* owned reference */
};

/* ---- sources */

static char *absolute(const char *segment, size_t len)
{
	while (len > 1 && segment[len - 1] == '/')
		len--;
	auto_free char *path = xstrndup(segment, len);
	if (*path == '/')
		return take_ptr(&path);
	auto_free char *here = getcwd(NULL, 0);
	return xasprintf("%s/%s", here ? here : "", path);
}

static bool has_source(const struct registry *registry, const char *path)
{
	for (size_t i = 0; i < registry->count; i++)
		if (strcmp(registry->sources[i], path) == 0)
			return true;
	return false;
}

static void add_source(struct registry *registry, const char *segment, size_t len)
{
	auto_free char *path = absolute(segment, len);
	if (has_source(registry, path))
		return;
	registry->sources =
		xrealloc(registry->sources, registry->count + 2, sizeof(*registry->sources));
	registry->sources[registry->count++] = take_ptr(&path);
	registry->sources[registry->count] = NULL;
}

static struct snapshot *empty_snapshot(void)
{
	struct faults none = FAULTS_INIT;
	return snapshot_new(NULL, 0, &none, 0);
}

struct registry *registry_new(const char *dirs)
{
	struct registry *registry = xcalloc(1, sizeof(*registry));
	registry->sources = xcalloc(1, sizeof(*registry->sources));
	for (const char *at = dirs; at && *at;) {
		size_t len = strcspn(at, ":");
		if (len > 0)
			add_source(registry, at, len);
		at += len + (at[len] == ':');
	}
	registry->scans = xcalloc(registry->count, sizeof(*registry->scans));
	registry->current = empty_snapshot();
	return registry;
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	for (size_t i = 0; i < registry->count; i++) {
		source_scan_release(&registry->scans[i]);
		free(registry->sources[i]);
	}
	free(registry->scans);
	free(registry->sources);
	snapshot_unref(registry->current);
	free(registry);
}

struct snapshot *registry_current(const struct registry *registry)
{
	return registry->current;
}

const char *const *registry_sources(const struct registry *registry)
{
	return (const char *const *)registry->sources;
}

/* ---- overlay */

struct entry {
	struct tool *tool; /* borrowed from its scan */
	size_t order;      /* later ones win */
};

static int compare_entries(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	int order = strcmp(a->tool->name, b->tool->name);
	if (order != 0)
		return order;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* All tools of all sources by name, the winner of each name last. The array is the caller's. */
static struct entry *sorted_entries(const struct registry *registry, size_t *count)
{
	*count = 0;
	for (size_t s = 0; s < registry->count; s++)
		*count += registry->scans[s].count;
	struct entry *entries = xcalloc(*count, sizeof(*entries));
	size_t at = 0;
	for (size_t s = 0; s < registry->count; s++)
		for (size_t i = 0; i < registry->scans[s].count; i++, at++)
			entries[at] = (struct entry){ registry->scans[s].tools[i], at };
	qsort(entries, *count, sizeof(*entries), compare_entries);
	return entries;
}

/* References to the winners, in byte order of names. The array and they are the caller's. */
static struct tool **take_winners(const struct registry *registry, size_t *count)
{
	size_t entry_count;
	auto_free struct entry *entries = sorted_entries(registry, &entry_count);
	struct tool **winners = xcalloc(entry_count, sizeof(*winners));
	*count = 0;
	for (size_t i = 0; i < entry_count; i++) {
		bool is_last = i + 1 == entry_count ||
			       strcmp(entries[i].tool->name, entries[i + 1].tool->name) != 0;
		if (is_last)
			winners[(*count)++] = tool_ref(entries[i].tool);
	}
	return winners;
}

/* A tool that got another id is another object: the next scan shall find that one. */
static void replace_in_scans(struct registry *registry, const struct tool *old, struct tool *new)
{
	for (size_t s = 0; s < registry->count; s++)
		source_scan_replace(&registry->scans[s], old, new);
}

static struct snapshot *overlay(struct registry *registry)
{
	struct faults faults = FAULTS_INIT;
	for (size_t s = 0; s < registry->count; s++)
		faults_copy(&faults, &registry->scans[s].faults);
	size_t count;
	auto_free struct tool **winners = take_winners(registry, &count);
	auto_free struct tool **before = xcalloc(count, sizeof(struct tool *));
	for (size_t i = 0; i < count; i++)
		before[i] = winners[i];
	struct snapshot *snapshot =
		snapshot_new(winners, count, &faults, registry->current->generation + 1);
	for (size_t i = 0; i < count; i++) {
		if (winners[i] != before[i])
			replace_in_scans(registry, before[i], winners[i]);
		tool_unref(winners[i]);
	}
	return snapshot;
}

/* ---- scanning */

static void scan_one(struct registry *registry, size_t index)
{
	struct source_scan scan, *place = &registry->scans[index];
	source_scan(registry->sources[index], place, &scan);
	source_scan_release(place);
	*place = scan;
}

static bool renew(struct registry *registry)
{
	struct snapshot *next = overlay(registry), *old = registry->current;
	if (old->generation > 0 && snapshot_equal(old, next)) {
		snapshot_unref(next);
		return false;
	}
	registry->current = next;
	snapshot_unref(old);
	return true;
}

bool registry_scan(struct registry *registry)
{
	for (size_t i = 0; i < registry->count; i++)
		scan_one(registry, i);
	return renew(registry);
}

bool registry_scan_source(struct registry *registry, size_t index)
{
	scan_one(registry, index);
	return renew(registry);
}
