#include "core/tools/tool.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

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
	for (size_t i = 0; i < tool->input_count; i++)
		release_input(&tool->inputs[i]);
	free(tool->inputs);
	free(tool->name);
	free(tool->label);
	free(tool->description);
	free(tool->body);
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
