#include "core/tools/tool.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/tools/owner.h"
#include "core/tools/root.h"

struct tool *tool_new(void)
{
	struct tool *tool = xcalloc(1, sizeof(*tool));
	tool->refs = 1;
	return tool;
}

struct tool *tool_ref(struct tool *tool)
{
	tool->refs++;
	return tool;
}

struct tool *tool_new_of(struct tool *base, struct owner *owner)
{
	struct tool *tool = tool_new();
	*tool = *base;
	tool->refs = 1;
	tool->id = 0;
	tool->owner = owner_ref(owner);
	tool->base = tool_ref(base);
	tool->key = xasprintf("%s/%s", owner->name, base->name);
	return tool;
}

static char *copy_text(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

static void copy_input(struct input *to, const struct input *from)
{
	*to = *from;
	to->name = copy_text(from->name);
	to->description = copy_text(from->description);
	to->values = from->value_count ? xcalloc(from->value_count, sizeof(*to->values)) : NULL;
	for (size_t i = 0; i < from->value_count; i++)
		to->values[i] = xstrdup(from->values[i]);
	to->default_value = json_deep_copy(from->default_value);
}

struct tool *tool_copy(const struct tool *tool)
{
	if (tool->base)
		return tool_new_of(tool->base, tool->owner);
	struct tool *copy = tool_new();
	*copy = *tool;
	copy->refs = 1;
	copy->name = copy_text(tool->name);
	copy->label = copy_text(tool->label);
	copy->description = copy_text(tool->description);
	copy->inputs = xcalloc(tool->input_count, sizeof(*copy->inputs));
	for (size_t i = 0; i < tool->input_count; i++)
		copy_input(&copy->inputs[i], &tool->inputs[i]);
	copy->parameters = json_deep_copy(tool->parameters);
	copy->annotations = json_deep_copy(tool->annotations);
	copy->body = copy_text(tool->body);
	copy->root = tool->root ? root_ref(tool->root) : NULL;
	copy->source = copy_text(tool->source);
	copy->dir_name = copy_text(tool->dir_name);
	copy->dir = copy_text(tool->dir);
	copy->entry = copy_text(tool->entry);
	return copy;
}

static void release_input(struct input *input)
{
	free(input->name);
	free(input->description);
	for (size_t i = 0; i < input->value_count; i++)
		free(input->values[i]);
	free(input->values);
	json_decref(input->default_value);
}

void tool_unref(struct tool *tool)
{
	if (!tool || --tool->refs > 0)
		return;
	if (tool->base) {
		tool_unref(tool->base);
		owner_unref(tool->owner);
		free(tool->key);
		free(tool);
		return;
	}
	for (size_t i = 0; i < tool->input_count; i++)
		release_input(&tool->inputs[i]);
	free(tool->inputs);
	json_decref(tool->parameters);
	json_decref(tool->annotations);
	free(tool->name);
	free(tool->label);
	free(tool->description);
	free(tool->body);
	root_unref(tool->root);
	free(tool->source);
	free(tool->dir);
	free(tool->dir_name);
	free(tool->entry);
	free(tool);
}

const struct input *tool_find_input(const struct tool *tool, const char *name)
{
	for (size_t i = 0; i < tool->input_count; i++)
		if (strcmp(tool->inputs[i].name, name) == 0)
			return &tool->inputs[i];
	return NULL;
}

const char *language_name(enum language language)
{
	static const char *const names[] = { "typescript", "python", "bash" };
	return names[language];
}

const char *input_type_name(enum input_type type)
{
	static const char *const names[] = { "string", "number", "boolean", "enum" };
	return names[type];
}
