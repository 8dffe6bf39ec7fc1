#include "core/cmd/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/cmd/ownpath.h"
#include "core/tools/faults.h"
#include "core/tools/manifest.h"
#include "core/tools/prompt.h"
#include "core/tools/suggest.h"

bool tree_take_option(struct tree *tree, int option, const char *value)
{
	if (option == 'm')
		tree->asked_mount = value;
	else if (option == 't')
		tree->asked_tools = value;
	return option == 'm' || option == 't';
}

/* ---- finding it */

static const char *get_set(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? value : NULL;
}

/* 0, or a negative errno: ENOENT and ENOTDIR where there is none. */
static int look_for_mount(const char *path)
{
	auto_free char *version = xasprintf("%s/.pegfs/version", path);
	return access(version, R_OK) == 0 ? 0 : -errno;
}

static int use_directories(struct tree *tree, const char *tools)
{
	ownpath_warn(tools);
	tree->tools = tools;
	tree->registry = registry_new(tools);
	registry_scan(tree->registry);
	return COMMAND_OK;
}

static int fail_mount(const struct tree *tree, const char *path, const char *from, int code)
{
	struct fail why = FAIL_INIT;
	if (code == -ENOENT || code == -ENOTDIR)
		fail_set(&why, code,
			"no tree is mounted at '%s'%s; mount one with 'pegfs mount %s --tools "
			"DIR:DIR...', or look at directories with --tools",
			path, from, path);
	else if (code == -ENOTCONN)
		fail_set(&why, code,
			"the tree at '%s'%s is served by nobody any more; 'umount -l %s' clears it "
			"away",
			path, from, path);
	else
		fail_set(&why, code, "the tree at '%s'%s: %s", path, from, strerror(-code));
	return command_failed(tree->command, why.text);
}

bool tree_is_of_users(const struct tree *tree)
{
	auto_free char *users = xasprintf("%s/.pegfs/users", tree->mount ? tree->mount : "");
	return tree->mount && access(users, F_OK) == 0;
}

static int use_mount(struct tree *tree, const char *path, const char *from)
{
	int code = look_for_mount(path);
	if (code < 0)
		return fail_mount(tree, path, from, code);
	tree->mount = path;
	return COMMAND_OK;
}

int tree_open(struct tree *tree)
{
	if (tree->asked_mount && tree->asked_tools)
		return command_misuse(tree->command, "give --mount or --tools, not both");
	if (tree->asked_tools)
		return *tree->asked_tools ? use_directories(tree, tree->asked_tools)
					  : command_misuse(tree->command, "--tools is empty");
	if (tree->asked_mount)
		return use_mount(tree, tree->asked_mount, "");
	if (get_set("PEGFS_MOUNT"))
		return use_mount(tree, get_set("PEGFS_MOUNT"), " (PEGFS_MOUNT)");
	int code = look_for_mount(TREE_DEFAULT_MOUNT);
	if (code == 0)
		return use_mount(tree, TREE_DEFAULT_MOUNT, "");
	if (code != -ENOENT && code != -ENOTDIR)
		return fail_mount(tree, TREE_DEFAULT_MOUNT, "", code);
	if (get_set("PI_TOOLS_DIRS"))
		return use_directories(tree, get_set("PI_TOOLS_DIRS"));
	command_failed(tree->command,
		"there are no tools to look at: nothing is mounted at " TREE_DEFAULT_MOUNT
		"; name a mounted tree with --mount or PEGFS_MOUNT, or tool directories with "
		"--tools or PI_TOOLS_DIRS");
	return COMMAND_USAGE;
}

void tree_close(struct tree *tree)
{
	registry_free(tree->registry);
	tree->registry = NULL;
}

void tree_describe(const struct tree *tree, struct buf *out)
{
	if (tree->mount)
		buf_printf(out, "the tree at '%s'", tree->mount);
	else
		buf_printf(out, "the directories '%s'", tree->tools);
}

/* ---- a tool that is not there */

/* The names of all tools are offered; *names is released by the caller, best borrows from it. */
static void offer_all(const struct tree *tree, struct suggest *suggest, json_t **names)
{
	struct fail ignored = FAIL_INIT;
	auto_buf struct buf text = BUF_INIT(TREE_TEXT_MAX);
	if (tree_read(tree, TREE_TOOLS_JSON, NULL, &text, &ignored) < 0)
		return;
	*names = json_loadb(buf_str(&text), text.len, 0, NULL);
	size_t index;
	json_t *tool;
	json_array_foreach(*names, index, tool)
	{
		const char *name = json_string_value(json_object_get(tool, "name"));
		if (name)
			suggest_offer(suggest, name);
	}
}

int tree_no_tool(const struct tree *tree, const char *tool, struct fail *why)
{
	auto_buf struct buf where = BUF_INIT(FAIL_TEXT_MAX);
	tree_describe(tree, &where);
	auto_json json_t *names = NULL;
	struct suggest suggest;
	suggest_begin(&suggest, tool);
	offer_all(tree, &suggest, &names);
	const struct faults_excerpt excerpt = faults_excerpt(tool);
	if (suggest.best)
		return fail_set(why, -ENOENT, "there is no tool '%s' in %s; did you mean '%s'?",
			excerpt.text, buf_str(&where), suggest.best);
	return fail_set(why, -ENOENT,
		"there is no tool '%s' in %s; 'pegfs list' shows those there are, 'pegfs errors' "
		"what is wrong with others",
		excerpt.text, buf_str(&where));
}

/* ---- texts */

static const char *const names[] = { [TREE_TABLE] = ".pegfs/tools",
	[TREE_TOOLS_JSON] = "tools.json",
	[TREE_ERRORS] = ".pegfs/errors",
	[TREE_ALL_PROMPT] = "prompt.md",
	[TREE_TOOL_PROMPT] = "prompt.md",
	[TREE_TOOL_SCHEMA] = "schema.json" };

static int no_one_tree(const struct tree *tree, struct fail *why)
{
	return fail_set(why, -EISDIR,
		"'%s' shows a tree of each user: name one of them, as in '--mount %s/USER' "
		"('ls %s' shows who there is)",
		tree->mount, tree->mount, tree->mount);
}

int tree_read_file(const struct tree *tree, const char *path, struct buf *out, struct fail *why)
{
	auto_free char *whole = xasprintf("%s/%s", tree->mount, path);
	auto_close int fd = open(whole, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(why, "cannot open '%s'", whole);
	int result = io_read_all(fd, out);
	return result < 0 ? fail_set(why, result, "cannot read '%s': %s", whole, strerror(-result))
			  : 0;
}

static int read_mount(const struct tree *tree, enum tree_text text, const char *tool,
	struct buf *out, struct fail *why)
{
	if (tree_is_of_users(tree) && text != TREE_ERRORS)
		return no_one_tree(tree, why);
	if (!tool)
		return tree_read_file(tree, names[text], out, why);
	if (!manifest_name_is_safe(tool))
		return tree_no_tool(tree, tool, why);
	auto_free char *path = xasprintf("%s/%s", tool, names[text]);
	struct fail failed = FAIL_INIT;
	if (tree_read_file(tree, path, out, &failed) == 0)
		return 0;
	return failed.code == -ENOENT ? tree_no_tool(tree, tool, why)
				      : fail_set(why, failed.code, "%s", failed.text);
}

static int render(
	const struct tree *tree, enum tree_text text, const struct tool *tool, struct buf *out)
{
	const struct snapshot *all = registry_current(tree->registry);
	switch (text) {
	case TREE_TABLE:
		return prompt_table(all->tools, all->count, out);
	case TREE_TOOLS_JSON:
		return prompt_tools_json(all->tools, all->count, out);
	case TREE_ERRORS:
		faults_render(&all->faults, out);
		return out->failed;
	case TREE_ALL_PROMPT:
		return prompt_all(all->tools, all->count, TREE_DEFAULT_MOUNT, out);
	case TREE_TOOL_PROMPT:
		return prompt_tool(tool, TREE_DEFAULT_MOUNT, out);
	case TREE_TOOL_SCHEMA:
		break;
	}
	return prompt_schema(tool, out);
}

int tree_read(const struct tree *tree, enum tree_text text, const char *tool, struct buf *out,
	struct fail *why)
{
	if (tree->mount)
		return read_mount(tree, text, tool, out, why);
	const struct tool *found =
		tool ? snapshot_find(registry_current(tree->registry), tool) : NULL;
	if (tool && !found)
		return tree_no_tool(tree, tool, why);
	int result = render(tree, text, found, out);
	return result < 0
		       ? fail_set(why, result, "cannot make %s: %s", names[text], strerror(-result))
		       : 0;
}

int tree_print(struct tree *tree, const struct buf *out, const struct fail *why)
{
	int status = COMMAND_OK;
	if (why->code)
		status = command_failed(tree->command, why->text);
	else if (out->failed)
		status = command_failed(tree->command, strerror(-out->failed));
	else
		fwrite(buf_str(out), 1, out->len, stdout);
	if (fflush(stdout) != 0)
		status = command_failed(tree->command, "cannot write the output");
	return status;
}
