#include "fs/forest.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/running/environment.h"
#include "fs/options.h"
#include "fs/useroptions.h"

static uint64_t hash_of(const char *name)
{
	return map_hash(MAP_HASH_SEED, name, strlen(name));
}

static struct forest_tree *find(const struct forest *forest, const char *name)
{
	struct forest_tree *tree = map_get(&forest->by_name, hash_of(name));
	while (tree && strcmp(tree->owner->name, name) != 0)
		tree = tree->next;
	return tree;
}

struct forest_tree *forest_next(
	const struct forest *forest, size_t *at, const struct forest_tree *tree)
{
	if (tree && tree->next)
		return tree->next;
	const struct map_slot *slot = map_next(&forest->by_name, at);
	return slot ? slot->value : NULL;
}

/* ---- what a tree shows */

/* With each change over all tools: a few words of each, not the bytes of its names. */
static uint32_t digest_of(const struct snapshot *snapshot)
{
	uint64_t hash = MAP_HASH_SEED;
	for (size_t i = 0; i < snapshot->count; i++) {
		const struct tool *tool = snapshot->tools[i];
		hash = (hash ^ ((uint64_t)tool->id << 32 | tool->digest)) *
		       UINT64_C(0x9e3779b97f4a7c15);
		hash = (hash ^ hash >> 29 ^ tool->place) * UINT64_C(0xbf58476d1ce4e5b9);
	}
	for (size_t i = 0; i < snapshot->faults.count; i++)
		hash = map_hash(hash, snapshot->faults.items[i].text,
			strlen(snapshot->faults.items[i].text));
	return (uint32_t)(hash ^ hash >> 32);
}

/* What is above users' trees shows who they are. */
static uint32_t digest_of_users(const struct forest *forest, uint32_t digest)
{
	uint64_t hash = digest, names = 0;
	size_t at = 0;
	const struct forest_tree *tree = NULL;
	while ((tree = forest_next(forest, &at, tree)))
		names += hash_of(tree->owner->name); /* in whatever order */
	hash = map_hash(hash, &names, sizeof(names));
	for (size_t i = 0; i < forest->faults.count; i++)
		hash = map_hash(
			hash, forest->faults.items[i].file, strlen(forest->faults.items[i].file));
	return (uint32_t)(hash ^ hash >> 32);
}

static void show(struct forest *forest, struct forest_tree *tree, struct snapshot *snapshot)
{
	snapshot_ref(snapshot);
	snapshot_unref(tree->snapshot);
	tree->snapshot = snapshot;
	tree->digest = digest_of(snapshot);
	if (forest_is_above(forest, tree))
		tree->digest = digest_of_users(forest, tree->digest);
	clock_gettime(CLOCK_REALTIME, &tree->changed);
}

bool forest_adopt(struct forest *forest,
	void (*on_change)(void *arg, const struct forest_tree *tree), void *arg)
{
	struct snapshot *shared = registry_current(forest->registry);
	bool is_new = shared != forest->only.snapshot;
	if (is_new) {
		on_change(arg, &forest->only);
		show(forest, &forest->only, shared);
	}
	size_t at = 0;
	struct forest_tree *tree = NULL;
	while ((tree = forest_next(forest, &at, tree))) {
		if (!tree->snapshot || tree->snapshot == tree->set->current)
			continue;
		on_change(arg, tree);
		show(forest, tree, tree->set->current);
		is_new = true;
	}
	return is_new;
}

/* ---- settings */

static void load_settings(struct forest_tree *tree, const struct mount_options *options)
{
	auto_environment struct environment here = ENVIRONMENT_INIT, there = ENVIRONMENT_INIT;
	struct fail why = FAIL_INIT;
	if (useroptions_load(options, tree->owner->name, &here, &there, &why) < 0) {
		log_msg(LOG_LEVEL_WARNING, "%s: %s; %s", tree->owner->name, why.text,
			tree->owner->env ? "the settings that were read before still count"
					 : "the tools run without these settings");
		if (tree->owner->env)
			return;
	}
	owner_set_env(
		tree->owner, (const char *const *)here.items, (const char *const *)there.items);
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether the user's file of integrations is another one than was read, or has come or gone. */
static bool note_integrations(struct forest_tree *tree, const struct mount_options *options)
{
	struct stat st = { .st_ino = 0 };
	auto_free char *path = useroptions_integrations(options, tree->owner->name);
	if (!path)
		return false;
	if (stat(path, &st) < 0)
		st = (struct stat){ .st_ino = 0 };
	if (is_same_file(&st, &tree->integrations))
		return false;
	tree->integrations = st;
	return true;
}

void forest_refresh_settings(
	struct forest *forest, const struct tool *tool, const struct forest_events *events)
{
	struct forest_tree *tree = tool->owner ? find(forest, tool->owner->name) : NULL;
	if (!tree || tree->owner != tool->owner || !note_integrations(tree, forest->options))
		return;
	load_settings(tree, forest->options);
	events->on_settings(events->arg, tree->owner);
}

/* ---- users */

/* The first look into a tree makes it. */
static void enter(struct forest *forest, struct forest_tree *tree)
{
	if (tree->snapshot)
		return;
	note_integrations(tree, forest->options);
	load_settings(tree, forest->options);
	show(forest, tree, registry_use(forest->registry, tree->set));
}

static void add_user(struct forest *forest, struct watch *watch, const char *name,
	const struct forest_events *events)
{
	struct forest_tree *tree = xcalloc(1, sizeof(*tree));
	auto_free char *path = xasprintf("%s/%s/" USERS_TOOLS, forest->options->data, name);
	tree->owner = owner_new(name);
	/* Neither his directory nor tools/ in it may be links: they could lead to another's. */
	tree->set = registry_add_set(
		forest->registry, tree->owner, path, strlen(name) + strlen("//" USERS_TOOLS));
	tree->next = map_put(&forest->by_name, hash_of(name), tree);
	forest->count++;
	registry_load_source(forest->registry, tree->set->own);
	if (watch)
		watch_add_source(watch, tree->set->own);
	if (events)
		events->on_come(events->arg, tree->owner);
}

static void free_tree(struct forest_tree *tree)
{
	snapshot_unref(tree->snapshot);
	snapshot_unref(tree->prepared);
	owner_unref(tree->owner);
}

static void remove_user(struct forest *forest, struct watch *watch, struct forest_tree *tree,
	const struct forest_events *events)
{
	uint64_t hash = hash_of(tree->owner->name);
	struct forest_tree *first = map_remove(&forest->by_name, hash);
	struct forest_tree **link = &first;
	while (*link != tree)
		link = &(*link)->next;
	*link = tree->next;
	if (first)
		map_put(&forest->by_name, hash, first);
	forest->count--;
	if (events)
		events->on_gone(events->arg, tree->owner);
	if (watch)
		watch_remove_source(watch, tree->set->own);
	registry_remove_set(forest->registry, tree->set);
	free_tree(tree);
	free(tree);
}

static bool is_user(const struct users *users, const char *name)
{
	size_t low = 0, high = users->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(users->items[middle], name);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool remove_others(struct forest *forest, struct watch *watch, const struct users *users,
	const struct forest_events *events)
{
	auto_free struct forest_tree **gone = xcalloc(forest->count, sizeof(*gone));
	size_t count = 0, at = 0;
	struct forest_tree *tree = NULL;
	while ((tree = forest_next(forest, &at, tree)))
		if (!is_user(users, tree->owner->name))
			gone[count++] = tree;
	for (size_t i = 0; i < count; i++)
		remove_user(forest, watch, gone[i], events);
	return count > 0;
}

bool forest_set_users(struct forest *forest, struct watch *watch, const struct users *users,
	const struct forest_events *events)
{
	bool is_new = remove_others(forest, watch, users, events);
	for (size_t i = 0; i < users->count; i++)
		if (!find(forest, users->items[i])) {
			add_user(forest, watch, users->items[i], events);
			is_new = true;
		}
	if (!faults_equal(&forest->faults, &users->faults)) {
		faults_release(&forest->faults);
		faults_copy(&forest->faults, &users->faults);
		is_new = true;
	}
	if (is_new && forest->only.snapshot)
		show(forest, &forest->only, forest->only.snapshot);
	return is_new;
}

struct forest_tree *forest_find(struct forest *forest, const char *name)
{
	struct forest_tree *tree = find(forest, name);
	if (tree)
		enter(forest, tree);
	return tree;
}

/* ---- tools and numbers */

struct forest_tree *forest_tree_of(struct forest *forest, const struct tool *tool)
{
	if (!tool->owner)
		return forest->has_users ? NULL : &forest->only;
	struct forest_tree *tree = forest_find(forest, tool->owner->name);
	return tree && tree->owner == tool->owner ? tree : NULL;
}

/* The tree of a key, and the name behind its slash. */
static struct forest_tree *split(struct forest *forest, const char *key, const char **name)
{
	const char *slash = strchr(key, '/');
	if (!forest->has_users || !slash) {
		*name = key;
		return forest->has_users ? NULL : &forest->only;
	}
	*name = slash + 1;
	auto_free char *user = xstrndup(key, (size_t)(slash - key));
	return forest_find(forest, user);
}

struct tool *forest_find_tool(struct forest *forest, const char *key)
{
	const char *name;
	const struct forest_tree *tree = split(forest, key, &name);
	return tree ? snapshot_find(tree->snapshot, name) : NULL;
}

uint32_t forest_number(
	struct forest *forest, const struct forest_tree *tree, const struct tool *tool)
{
	if (!forest->has_users)
		return tool ? tool->id : 0;
	if (!tree->owner)
		return 0;
	if (tool)
		return places_number(&forest->places, tool_key(tool));
	auto_free char *key = xasprintf("%s/", tree->owner->name);
	return places_number(&forest->places, key);
}

bool forest_get(
	struct forest *forest, uint32_t number, struct forest_tree **tree, struct tool **tool)
{
	*tree = &forest->only;
	*tool = NULL;
	if (number == 0)
		return true;
	if (!forest->has_users) {
		*tool = snapshot_find_id(forest->only.snapshot, number);
		return *tool != NULL;
	}
	const char *name, *key = places_key(&forest->places, number);
	*tree = key ? split(forest, key, &name) : NULL;
	if (!*tree)
		return false;
	*tool = *name ? snapshot_find((*tree)->snapshot, name) : NULL;
	return *tool || !*name;
}

/* ---- life */

static bool is_there(void *arg, const char *key)
{
	struct forest *forest = arg;
	const char *name;
	const struct forest_tree *tree = split(forest, key, &name);
	return tree && (!*name || snapshot_find(tree->snapshot, name));
}

static void load_users(struct forest *forest)
{
	const struct covered covered = registry_covered_top(forest->registry);
	int code;
	struct users users = { .items = NULL };
	struct root *root = root_open(forest->options->data, &covered, &code);
	if (root && users_load(root, &users) == 0)
		forest_set_users(forest, NULL, &users, NULL);
	users_release(&users);
	root_unref(root);
}

struct forest *forest_new(const struct mount_options *options, int covered_fd)
{
	struct forest *forest = xcalloc(1, sizeof(*forest));
	forest->options = options;
	forest->has_users = options->data != NULL;
	forest->registry = registry_new(options->tools);
	registry_set_covered(forest->registry, options->mountpoint, covered_fd);
	registry_scan(forest->registry);
	if (forest->has_users)
		load_users(forest);
	show(forest, &forest->only, registry_current(forest->registry));
	return forest;
}

void forest_take_over(struct forest *forest, int state_fd)
{
	forest->places.is_there = is_there;
	forest->places.arg = forest;
	if (forest->has_users)
		places_load(&forest->places, state_fd);
}

void forest_free(struct forest *forest)
{
	if (!forest)
		return;
	size_t at = 0;
	struct forest_tree *tree = forest_next(forest, &at, NULL);
	while (tree) {
		struct forest_tree *next = forest_next(forest, &at, tree);
		free_tree(tree);
		free(tree);
		tree = next;
	}
	map_release(&forest->by_name);
	free_tree(&forest->only);
	places_release(&forest->places);
	faults_release(&forest->faults);
	registry_free(forest->registry);
	free(forest);
}
