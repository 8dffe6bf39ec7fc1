/*
 * Somebody did not find a file of a tool. Mostly there is none; but where an override has just gone,
 * or the source's path leads elsewhere since a moment, the tree is a few milliseconds behind, and
 * what he looks for is in the tool that comes to light. Then that is looked at now.
 */
#include <sys/stat.h>

#include "core/tools/watchcore.h"

#define HURRY_DIRS_MAX 512 /* a source with more is looked at in pieces, as always */

static struct watch_source *source_of(const struct watch *watch, const struct tool *tool)
{
	return map_get(&watch->by_root, (uint64_t)(uintptr_t)tool->root);
}

static bool leads_elsewhere(const struct watch *watch, const struct watch_source *source)
{
	int code = 0;
	const struct covered covered = registry_covered(watch->registry, source->index);
	struct root *now = root_open(source->path, &covered, &code);
	bool is_other = now && !root_equal(now, registry_root(watch->registry, source->index));
	root_unref(now);
	return is_other;
}

/*
 * Among the sources that all sets share; in its own there is none below the one that is shown.
 * Without another one the tool stays for the moment: perhaps it is being replaced.
 */
static bool is_in_another(const struct watch *watch, const struct tool *tool, size_t but)
{
	for (size_t i = 0; i < registry_shared_count(watch->registry); i++)
		if (i != but && registry_tool_in(watch->registry, i, tool->dir_name))
			return true;
	return false;
}

static bool has_gone(const struct tool *tool)
{
	struct stat st;
	return fstatat(tool->root->fd, tool->dir_name, &st, 0) < 0;
}

/* All of a small source at once. */
static void enter(struct watch *watch, struct watch_source *source)
{
	watch_check_source(watch, source);
	for (size_t left = watch->due.count; left > 0; left--) {
		struct watchdir *dir = watchqueue_pop(&watch->due);
		if (dir->source == source)
			watch_look_at(watch, dir);
		else
			watchqueue_push(&watch->due, dir);
	}
}

void watch_catch_up(struct watch *watch)
{
	bool is_behind = false;
	for (size_t i = 0; i < watch->count; i++) {
		if (!watch->sources[i] || !leads_elsewhere(watch, watch->sources[i]))
			continue;
		enter(watch, watch->sources[i]);
		is_behind = true;
	}
	if (is_behind)
		watch_settle(watch);
}

bool watch_hurry(struct watch *watch, const struct tool *tool)
{
	struct watch_source *source = source_of(watch, tool);
	if (!source)
		return false;
	if (source->dir_count <= HURRY_DIRS_MAX && leads_elsewhere(watch, source)) {
		enter(watch, source);
	} else if (has_gone(tool) && is_in_another(watch, tool, source->index)) {
		registry_load_dir(watch->registry, source->index, tool->dir_name);
	} else {
		return false;
	}
	return watch_settle(watch);
}
