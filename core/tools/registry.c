#include "core/tools/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/overlay.h"
#include "core/tools/source.h"

struct registry {
	char **sources;            /* owned, absolute, NULL-terminated */
	struct source_scan *scans; /* owned, one a source */
	struct faults *told;       /* owned, one list a source: what others say of it */
	size_t count;
	struct covered covered; /* its path is owned */
	struct overlay overlay; /* of all scans, sorted where it is not stale */
	bool is_stale;          /* a whole source was scanned since */
	bool has_new_tools;     /* since the last snapshot */
	bool has_new_faults;
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
	registry->told = xcalloc(registry->count, sizeof(*registry->told));
	registry->covered.fd = -1;
	registry->current = empty_snapshot();
	return registry;
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	for (size_t i = 0; i < registry->count; i++) {
		source_scan_release(&registry->scans[i]);
		faults_release(&registry->told[i]);
		free(registry->sources[i]);
	}
	overlay_release(&registry->overlay);
	free((void *)(uintptr_t)registry->covered.path);
	free(registry->told);
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

void registry_set_covered(struct registry *registry, const char *path, int fd)
{
	free((void *)(uintptr_t)registry->covered.path);
	registry->covered = (struct covered){ .path = xstrdup(path), .fd = fd };
}

const struct covered *registry_covered(const struct registry *registry)
{
	return &registry->covered;
}

struct root *registry_root(const struct registry *registry, size_t index)
{
	return registry->scans[index].root;
}

const char *registry_dir_in(const struct registry *registry, size_t index, size_t at)
{
	const struct source_scan *scan = &registry->scans[index];
	return at < scan->count ? scan->candidates[at]->dir_name : NULL;
}

struct tool *registry_tool_in(const struct registry *registry, size_t index, const char *dir_name)
{
	return source_tool_in(&registry->scans[index], dir_name);
}

/* ---- the next snapshot */

static void sort_overlay(struct registry *registry)
{
	overlay_clear(&registry->overlay);
	for (size_t s = 0; s < registry->count; s++)
		source_append_tools(&registry->scans[s], &registry->overlay, s);
	overlay_sort(&registry->overlay);
	registry->is_stale = false;
}

/* References to the winners, in byte order of names. The array and they are the caller's. */
static struct tool **take_winners(const struct registry *registry, size_t *count)
{
	const struct overlay *overlay = &registry->overlay;
	struct tool **winners = xcalloc(overlay->count, sizeof(*winners));
	*count = 0;
	for (size_t i = 0; i < overlay->count; i++)
		if (!overlay->entries[i].hidden)
			winners[(*count)++] = tool_ref(overlay->entries[i].tool);
	return winners;
}

static void tell_faults(const struct registry *registry, struct faults *faults)
{
	for (size_t s = 0; s < registry->count; s++) {
		source_tell_faults(&registry->scans[s], faults);
		overlay_tell_doubled(&registry->overlay, s, faults);
		faults_copy(faults, &registry->told[s]);
	}
}

/* A tool that got another id is another object: the next scan shall find that one. */
static void replace_tool(struct registry *registry, const struct tool *old, struct tool *new)
{
	for (size_t s = 0; s < registry->count; s++)
		source_scan_replace(&registry->scans[s], old, new);
	for (size_t i = 0; i < registry->overlay.count; i++)
		if (registry->overlay.entries[i].tool == old)
			registry->overlay.entries[i].tool = new;
}

static struct snapshot *make_snapshot(struct registry *registry)
{
	size_t count;
	struct faults faults = FAULTS_INIT;
	if (registry->has_new_faults)
		tell_faults(registry, &faults);
	auto_free struct tool **winners = take_winners(registry, &count);
	auto_free struct tool **before = xcalloc(count, sizeof(struct tool *));
	for (size_t i = 0; i < count; i++)
		before[i] = winners[i];
	struct snapshot *snapshot = snapshot_next(registry->current, winners, count,
		registry->has_new_faults ? &faults : NULL, registry->current->generation + 1);
	for (size_t i = 0; i < count; i++) {
		if (winners[i] != before[i])
			replace_tool(registry, before[i], winners[i]);
		tool_unref(winners[i]);
	}
	return snapshot;
}

bool registry_renew(struct registry *registry)
{
	struct snapshot *old = registry->current;
	if (old->generation > 0 && !registry->has_new_tools && !registry->has_new_faults)
		return false;
	if (registry->is_stale)
		sort_overlay(registry);
	struct snapshot *next = make_snapshot(registry);
	registry->has_new_tools = registry->has_new_faults = false;
	if (old->generation > 0 && snapshot_equal(old, next)) {
		snapshot_unref(next);
		return false;
	}
	registry->current = next;
	snapshot_unref(old);
	return true;
}

/* ---- scanning */

static void replace_scan(struct registry *registry, size_t index, struct source_scan scan)
{
	struct source_scan *place = &registry->scans[index];
	/* Before the tools of the old scan go: the overlay borrows them. */
	registry->is_stale = registry->has_new_tools = registry->has_new_faults = true;
	overlay_clear(&registry->overlay);
	source_scan_release(place);
	*place = scan;
}

void registry_load_source(struct registry *registry, size_t index)
{
	struct source_scan scan;
	source_scan(registry->sources[index], &registry->covered, &registry->scans[index], &scan);
	replace_scan(registry, index, scan);
}

bool registry_enter_source(struct registry *registry, size_t index)
{
	struct source_scan scan, *place = &registry->scans[index];
	source_enter(registry->sources[index], &registry->covered, place->root, &scan);
	if (scan.root != place->root) {
		replace_scan(registry, index, scan);
		return true;
	}
	/* The same place; whether it can be read may be another matter now. */
	if (!faults_equal(&scan.faults, &place->faults))
		registry->has_new_faults = true;
	struct faults faults = scan.faults;
	scan.faults = place->faults;
	place->faults = faults;
	source_scan_release(&scan);
	return false;
}

/* Keeps the overlay in step with a change of one tool, unless it will be sorted anew anyway. */
static void change_overlay(
	struct registry *registry, size_t index, const struct source_change *change)
{
	struct overlay *overlay = &registry->overlay;
	if (registry->is_stale)
		return;
	bool is_doubled = change->old && overlay_remove(overlay, change->old, index);
	is_doubled = (change->new &&overlay_add(overlay, change->new, index)) || is_doubled;
	registry->has_new_faults = registry->has_new_faults || is_doubled;
}

void registry_load_dir(struct registry *registry, size_t index, const char *dir_name)
{
	struct source_change change;
	source_scan_dir(&registry->scans[index], dir_name, &change);
	registry->has_new_faults = registry->has_new_faults || change.faults;
	if (change.old != change.new) {
		registry->has_new_tools = true;
		change_overlay(registry, index, &change);
	}
	tool_unref(change.old);
	tool_unref(change.new);
}

bool registry_scan(struct registry *registry)
{
	for (size_t i = 0; i < registry->count; i++)
		registry_load_source(registry, i);
	return registry_renew(registry);
}

bool registry_scan_source(struct registry *registry, size_t index)
{
	registry_load_source(registry, index);
	return registry_renew(registry);
}

bool registry_scan_dir(struct registry *registry, size_t index, const char *dir_name)
{
	registry_load_dir(registry, index, dir_name);
	return registry_renew(registry);
}

void registry_tell(struct registry *registry, size_t index, struct faults *faults)
{
	if (!faults_equal(&registry->told[index], faults))
		registry->has_new_faults = true;
	faults_release(&registry->told[index]);
	registry->told[index] = *faults;
	*faults = (struct faults)FAULTS_INIT;
}
