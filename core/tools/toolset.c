#include "core/tools/toolset.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

static struct snapshot *empty_snapshot(void)
{
	struct faults none = FAULTS_INIT;
	return snapshot_new(NULL, 0, &none, 0);
}

struct toolset *toolset_new(struct owner *owner, size_t own)
{
	struct toolset *set = xcalloc(1, sizeof(*set));
	*set = (struct toolset){ .owner = owner ? owner_ref(owner) : NULL,
		.own = own,
		.current = empty_snapshot(),
		.is_stale = true };
	return set;
}

void toolset_free(struct toolset *set)
{
	overlay_release(&set->overlay);
	snapshot_unref(set->current);
	owner_unref(set->owner);
	free(set);
}

bool toolset_has(const struct toolset *set, const struct registered_list *sources, size_t index)
{
	return index < sources->shared || index == set->own;
}

/* ---- changes */

void toolset_drop_source(struct toolset *set)
{
	set->is_stale = set->has_new_tools = set->has_new_faults = true;
	overlay_release(&set->overlay);
}

/* Keeps the overlay in step with a change of one tool, unless it will be sorted anew anyway. */
static void change_overlay(struct toolset *set, size_t index, const struct source_change *change)
{
	if (set->is_stale)
		return;
	bool is_doubled = change->old && overlay_remove(&set->overlay, change->old, index);
	is_doubled = (change->new &&overlay_add(&set->overlay, change->new, index)) || is_doubled;
	set->has_new_faults = set->has_new_faults || is_doubled;
}

void toolset_change(struct toolset *set, size_t index, const struct source_change *change)
{
	set->has_new_faults = set->has_new_faults || change->faults;
	if (change->old == change->new)
		return;
	set->has_new_tools = true;
	change_overlay(set, index, change);
}

/* ---- the next snapshot */

static void sort_overlay(struct toolset *set, const struct registered_list *sources)
{
	overlay_clear(&set->overlay);
	for (size_t s = 0; s < sources->count; s++)
		if (sources->items[s] && toolset_has(set, sources, s))
			source_append_tools(&sources->items[s]->scan, &set->overlay, s);
	overlay_sort(&set->overlay);
	set->is_stale = false;
}

/* A reference to the tool as the set shows it: in an owner's tree, the same as before if it can be. */
static struct tool *show(const struct toolset *set, struct tool *found)
{
	if (!set->owner)
		return tool_ref(found);
	struct tool *before = snapshot_find(set->current, found->name);
	return before && before->base == found ? tool_ref(before) : tool_new_of(found, set->owner);
}

/* References to the winners, in byte order of names. The array and they are the caller's. */
static struct tool **take_winners(const struct toolset *set, size_t *count)
{
	const struct overlay *overlay = &set->overlay;
	struct tool **winners = xcalloc(overlay->count, sizeof(*winners));
	*count = 0;
	for (size_t i = 0; i < overlay->count; i++)
		if (!overlay->entries[i].hidden)
			winners[(*count)++] = show(set, overlay->entries[i].tool);
	return winners;
}

static void tell_faults(
	const struct toolset *set, const struct registered_list *sources, struct faults *faults)
{
	for (size_t s = 0; s < sources->count; s++) {
		if (!sources->items[s] || !toolset_has(set, sources, s))
			continue;
		source_tell_faults(&sources->items[s]->scan, faults);
		overlay_tell_doubled(&set->overlay, s, faults);
		faults_copy(faults, &sources->items[s]->told);
	}
}

static void replace_in_overlay(struct overlay *overlay, const struct tool *old, struct tool *now)
{
	for (size_t i = 0; i < overlay->count; i++)
		if (overlay->entries[i].tool == old)
			overlay->entries[i].tool = now;
}

static struct snapshot *make_snapshot(struct toolset *set, const struct registered_list *sources,
	void (*on_copied)(void *arg, const struct tool *old, struct tool *now), void *arg)
{
	size_t count;
	struct faults faults = FAULTS_INIT;
	if (set->has_new_faults)
		tell_faults(set, sources, &faults);
	auto_free struct tool **winners = take_winners(set, &count);
	auto_free struct tool **before = xcalloc(count, sizeof(struct tool *));
	for (size_t i = 0; i < count; i++)
		before[i] = winners[i];
	struct snapshot *snapshot = snapshot_next(set->current, winners, count,
		set->has_new_faults ? &faults : NULL, set->current->generation + 1);
	for (size_t i = 0; i < count; i++) {
		/* In an owner's tree it is the tree's own object, which no source knows. */
		if (winners[i] != before[i] && !set->owner) {
			replace_in_overlay(&set->overlay, before[i], winners[i]);
			on_copied(arg, before[i], winners[i]);
		}
		tool_unref(winners[i]);
	}
	return snapshot;
}

bool toolset_renew(struct toolset *set, const struct registered_list *sources,
	void (*on_copied)(void *arg, const struct tool *old, struct tool *now), void *arg)
{
	struct snapshot *old = set->current;
	if (old->generation > 0 && !set->has_new_tools && !set->has_new_faults)
		return false;
	if (set->is_stale)
		sort_overlay(set, sources);
	if (old->generation == 0)
		set->has_new_faults = true;
	struct snapshot *next = make_snapshot(set, sources, on_copied, arg);
	set->has_new_tools = set->has_new_faults = false;
	if (old->generation > 0 && snapshot_equal(old, next)) {
		snapshot_unref(next);
		return false;
	}
	set->current = next;
	snapshot_unref(old);
	return true;
}
