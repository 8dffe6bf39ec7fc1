/*
 * A tool from JSON, for tests that need one without a TOOL.md:
 *
 *   {"name","label","description","version","body",
 *    "inputs":[{"name","type","description","optional","sensitive","values":[],"default"}]}
 *
 * Everything may be left out but an input's name. What is not as above ends the program.
 */
#ifndef PEGFS_TESTS_ORACLE_TOOLJSON_H
#define PEGFS_TESTS_ORACLE_TOOLJSON_H

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/tools/tool.h"

static inline void tooljson_die(const char *what)
{
	fprintf(stderr, "a tool as JSON: %s\n", what);
	exit(2);
}

static inline const char *tooljson_text(
	const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : otherwise;
}

static inline enum input_type tooljson_type(const char *name)
{
	for (enum input_type type = INPUT_STRING; type <= INPUT_ENUM; type++)
		if (strcmp(name, input_type_name(type)) == 0)
			return type;
	tooljson_die("an input's type is string, number, boolean or enum");
	return INPUT_STRING;
}

static inline void tooljson_read_input(struct input *input, const json_t *given)
{
	const json_t *values = json_object_get(given, "values");
	const char *name = tooljson_text(given, "name", NULL);
	if (!name)
		tooljson_die("an input has no name");
	input->name = xstrdup(name);
	input->description = xstrdup(tooljson_text(given, "description", ""));
	input->type = tooljson_type(tooljson_text(given, "type", "string"));
	input->optional = json_is_true(json_object_get(given, "optional"));
	input->sensitive = json_is_true(json_object_get(given, "sensitive"));
	input->default_value = json_incref(json_object_get(given, "default"));
	input->value_count = json_array_size(values);
	if (input->type == INPUT_ENUM && input->value_count == 0)
		tooljson_die("an enum has no values");
	input->values = xcalloc(input->value_count, sizeof(*input->values));
	for (size_t i = 0; i < input->value_count; i++)
		input->values[i] = xstrdup(json_string_value(json_array_get(values, i)));
}

static inline struct tool *tooljson_read(const json_t *given)
{
	const json_t *inputs = json_object_get(given, "inputs");
	struct tool *tool = tool_new();
	tool->name = xstrdup(tooljson_text(given, "name", "described"));
	tool->label = xstrdup(tooljson_text(given, "label", tool->name));
	tool->description = xstrdup(tooljson_text(given, "description", ""));
	tool->version = json_integer_value(json_object_get(given, "version"));
	tool->body = xstrdup(tooljson_text(given, "body", ""));
	tool->body_len = strlen(tool->body);
	tool->input_count = json_array_size(inputs);
	tool->inputs = xcalloc(tool->input_count, sizeof(*tool->inputs));
	for (size_t i = 0; i < tool->input_count; i++)
		tooljson_read_input(&tool->inputs[i], json_array_get(inputs, i));
	return tool;
}

#endif
