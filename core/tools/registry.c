#include "core/tools/registry.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/source.h"

struct registry {
	struct registered_list sources;
	struct toolset **sets; /* owned; the first is that of the shared sources alone */
	size_t set_count, set_capacity;
	struct covered covered; /* its path is owned */
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
	for (size_t i = 0; i < registry->sources.count; i++)
		if (strcmp(registry->sources.items[i]->path, path) == 0)
			return true;
	return false;
}

/* Returns the source's index. */
static size_t put_source(struct registry *registry, const char *path, size_t plain)
{
	struct registered_list *sources = &registry->sources;
	struct registered *source = xcalloc(1, sizeof(*source));
	*source = (struct registered){ .path = xstrdup(path), .plain = plain };
	for (size_t i = sources->shared; i < sources->count; i++)
		if (!sources->items[i]) {
			sources->items[i] = source;
			return i;
		}
	sources->items = xgrow(
		sources->items, sources->count, &sources->capacity, sizeof(struct registered *));
	sources->items[sources->count] = source;
	return sources->count++;
}

static void add_source(struct registry *registry, const char *segment, size_t len)
{
	auto_free char *path = absolute(segment, len);
	if (has_source(registry, path))
		return;
	put_source(registry, path, 0);
	registry->sources.shared = registry->sources.count;
}

static struct toolset *put_set(struct registry *registry, struct toolset *set)
{
	registry->sets = xgrow(registry->sets, registry->set_count, &registry->set_capacity,
		sizeof(struct toolset *));
	registry->sets[registry->set_count++] = set;
	return set;
}

struct registry *registry_new(const char *dirs)
{
	struct registry *registry = xcalloc(1, sizeof(*registry));
	for (const char *at = dirs; at && *at;) {
		size_t len = strcspn(at, ":");
		if (len > 0)
			add_source(registry, at, len);
		at += len + (at[len] == ':');
	}
	registry->covered.fd = -1;
	put_set(registry, toolset_new(NULL, TOOLSET_NONE_OWN))->is_used = true;
	return registry;
}

static void free_source(struct registered *source)
{
	if (!source)
		return;
	source_scan_release(&source->scan);
	faults_release(&source->told);
	free(source->path);
	free(source);
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	for (size_t i = 0; i < registry->set_count; i++)
		toolset_free(registry->sets[i]);
	for (size_t i = 0; i < registry->sources.count; i++)
		free_source(registry->sources.items[i]);
	free((void *)(uintptr_t)registry->covered.path);
	free(registry->sets);
	free(registry->sources.items);
	free(registry);
}

struct snapshot *registry_current(const struct registry *registry)
{
	return registry->sets[0]->current;
}

size_t registry_source_count(const struct registry *registry)
{
	return registry->sources.count;
}

size_t registry_shared_count(const struct registry *registry)
{
	return registry->sources.shared;
}

const char *registry_source_path(const struct registry *registry, size_t index)
{
	return registry->sources.items[index] ? registry->sources.items[index]->path : NULL;
}

void registry_set_covered(struct registry *registry, const char *path, int fd)
{
	free((void *)(uintptr_t)registry->covered.path);
	registry->covered = (struct covered){ .path = xstrdup(path), .fd = fd };
}

struct covered registry_covered_top(const struct registry *registry)
{
	return registry->covered;
}

struct covered registry_covered(const struct registry *registry, size_t index)
{
	struct covered covered = registry->covered;
	covered.plain = registry->sources.items[index]->plain;
	return covered;
}

struct root *registry_root(const struct registry *registry, size_t index)
{
	return registry->sources.items[index]->scan.root;
}

const char *registry_dir_in(const struct registry *registry, size_t index, size_t at)
{
	const struct source_scan *scan = &registry->sources.items[index]->scan;
	return at < scan->count ? scan->candidates[at]->dir_name : NULL;
}

struct tool *registry_tool_in(const struct registry *registry, size_t index, const char *dir_name)
{
	return source_tool_in(&registry->sources.items[index]->scan, dir_name);
}

/* ---- sets */

struct toolset *registry_add_set(
	struct registry *registry, struct owner *owner, const char *path, size_t plain)
{
	size_t index = put_source(registry, path, plain);
	return put_set(registry, toolset_new(owner, index));
}

void registry_remove_set(struct registry *registry, struct toolset *set)
{
	size_t at = 0, own = set->own;
	while (registry->sets[at] != set)
		at++;
	registry->sets[at] = registry->sets[--registry->set_count];
	toolset_free(set);
	free_source(registry->sources.items[own]);
	registry->sources.items[own] = NULL;
}

/* A tool that got another id is another object: scans shall find that one, other sets show it. */
static void on_copied(void *arg, const struct tool *old, struct tool *now)
{
	const struct registry *registry = arg;
	for (size_t i = 1; i < registry->set_count; i++)
		toolset_drop_source(registry->sets[i]);
	for (size_t i = 0; i < registry->sources.count; i++)
		if (registry->sources.items[i])
			source_scan_replace(&registry->sources.items[i]->scan, old, now);
}

struct snapshot *registry_use(struct registry *registry, struct toolset *set)
{
	if (!set->is_used) {
		set->is_used = true;
		toolset_renew(set, &registry->sources, on_copied, registry);
	}
	return set->current;
}

bool registry_renew(struct registry *registry)
{
	bool is_any_new = false;
	for (size_t i = 0; i < registry->set_count; i++) {
		struct toolset *set = registry->sets[i];
		if (set->is_used && toolset_renew(set, &registry->sources, on_copied, registry))
			is_any_new = true;
	}
	return is_any_new;
}

/* ---- scanning */

static void replace_scan(struct registry *registry, size_t index, struct source_scan scan)
{
	struct registered *source = registry->sources.items[index];
	/* Before the tools of the old scan go: overlays borrow them. */
	for (size_t i = 0; i < registry->set_count; i++)
		if (toolset_has(registry->sets[i], &registry->sources, index))
			toolset_drop_source(registry->sets[i]);
	source_scan_release(&source->scan);
	source->scan = scan;
}

static void note_new_faults(struct registry *registry, size_t index)
{
	for (size_t i = 0; i < registry->set_count; i++)
		if (toolset_has(registry->sets[i], &registry->sources, index))
			registry->sets[i]->has_new_faults = true;
}

/* Who has no tools of his own has no directory for them: that is no fault. */
static void forgive_missing(
	const struct registered_list *sources, size_t index, struct source_scan *scan)
{
	if (index >= sources->shared && !scan->root && scan->is_missing)
		faults_release(&scan->faults);
}

void registry_load_source(struct registry *registry, size_t index)
{
	struct source_scan scan;
	struct registered *source = registry->sources.items[index];
	const struct covered covered = registry_covered(registry, index);
	source_scan(source->path, &covered, &source->scan, &scan);
	forgive_missing(&registry->sources, index, &scan);
	replace_scan(registry, index, scan);
}

bool registry_enter_source(struct registry *registry, size_t index)
{
	struct source_scan scan;
	struct registered *source = registry->sources.items[index];
	const struct covered covered = registry_covered(registry, index);
	source_enter(source->path, &covered, source->scan.root, &scan);
	forgive_missing(&registry->sources, index, &scan);
	if (scan.root != source->scan.root) {
		replace_scan(registry, index, scan);
		return true;
	}
	/* The same place; whether it can be read may be another matter now. */
	if (!faults_equal(&scan.faults, &source->scan.faults))
		note_new_faults(registry, index);
	struct faults faults = scan.faults;
	scan.faults = source->scan.faults;
	source->scan.faults = faults;
	source_scan_release(&scan);
	return false;
}

void registry_load_dir(struct registry *registry, size_t index, const char *dir_name)
{
	struct source_change change;
	source_scan_dir(&registry->sources.items[index]->scan, dir_name, &change);
	for (size_t i = 0; i < registry->set_count; i++)
		if (toolset_has(registry->sets[i], &registry->sources, index))
			toolset_change(registry->sets[i], index, &change);
	tool_unref(change.old);
	tool_unref(change.new);
}

bool registry_scan(struct registry *registry)
{
	for (size_t i = 0; i < registry->sources.count; i++)
		if (registry->sources.items[i])
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
	struct faults *told = &registry->sources.items[index]->told;
	if (!faults_equal(told, faults))
		note_new_faults(registry, index);
	faults_release(told);
	*told = *faults;
	*faults = (struct faults)FAULTS_INIT;
}
