#include "core/tools/schema.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/tools/xjson.h"

#define PLACEHOLDER_MAX 256

static const char *schema_type(const struct input *input)
{
	return input->type == INPUT_ENUM ? "string" : input_type_name(input->type);
}

/* What both forms say of an input beside its type. A sensitive default is nobody's to read (A21). */
static void add_options(json_t *property, const struct input *input)
{
	if (input->description && *input->description)
		xjson_set(property, "description", xjson_string(input->description));
	if (input->default_value && !input->sensitive)
		xjson_set(property, "default", json_incref(input->default_value));
}

static json_t *property_of(const struct input *input)
{
	json_t *property = xjson_object();
	xjson_set(property, "type", xjson_string(schema_type(input)));
	if (input->type == INPUT_ENUM) {
		json_t *values = xjson_array();
		for (size_t i = 0; i < input->value_count; i++)
			xjson_append(values, xjson_string(input->values[i]));
		xjson_set(property, "enum", values);
	}
	add_options(property, input);
	return property;
}

static json_t *literal(const char *value)
{
	json_t *literal = xjson_object();
	xjson_set(literal, "const", xjson_string(value));
	xjson_set(literal, "type", xjson_string("string"));
	return literal;
}

/* TypeBox 0.34: a union of one collapses to its member. */
static json_t *typebox_property_of(const struct input *input)
{
	if (input->type != INPUT_ENUM)
		return property_of(input);
	json_t *property;
	if (input->value_count == 1) {
		property = literal(input->values[0]);
	} else {
		json_t *members = xjson_array();
		for (size_t i = 0; i < input->value_count; i++)
			xjson_append(members, literal(input->values[i]));
		property = xjson_object();
		xjson_set(property, "anyOf", members);
	}
	add_options(property, input);
	return property;
}

static json_t *build(const struct tool *tool, json_t *property(const struct input *))
{
	json_t *properties = xjson_object();
	json_t *required = xjson_array();
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		xjson_set(properties, input->name, property(input));
		if (!input->optional)
			xjson_append(required, xjson_string(input->name));
	}
	json_t *schema = xjson_object();
	xjson_set(schema, "type", xjson_string("object"));
	xjson_set(schema, "properties", properties);
	if (json_array_size(required) > 0)
		xjson_set(schema, "required", required);
	else
		json_decref(required);
	return schema;
}

/* One of the tool's own is what was given to it, as it is. */
json_t *schema_build(const struct tool *tool)
{
	return tool->parameters ? json_incref(tool->parameters) : build(tool, property_of);
}

json_t *schema_build_typebox(const struct tool *tool)
{
	return tool->parameters ? json_incref(tool->parameters) : build(tool, typebox_property_of);
}

/* What a word in an input's name says of its value; the first that fits wins. */
static const struct {
	const char *word;
	const char *value;
} telling[] = {
	{ "url", "https://example.com/" },
	{ "email", "ada@example.com" },
	{ "sql", "SELECT 1" },
	{ "dir", "/officer/user" },
	{ "path", "/officer/user/example.txt" },
	{ "filename", "example.txt" },
	{ "file", "/officer/user/example.txt" },
	{ "date", "2025-01-31" },
	{ "query", "weather in Berlin" },
	{ "json", "{}" },
	{ "name", "Ada" },
};

/* "<API_TOKEN>": to be replaced by whoever has the secret. */
static json_t *placeholder(const char *name)
{
	auto_buf struct buf text = BUF_INIT(PLACEHOLDER_MAX);
	buf_putc(&text, '<');
	for (const char *at = name; *at; at++)
		buf_putc(&text, (char)toupper((unsigned char)*at));
	buf_putc(&text, '>');
	return xjson_string(text.failed ? "<SECRET>" : buf_str(&text));
}

/* Whether word stands in name as a whole: "url" in "page_url", not in "curl". */
static bool has_word(const char *name, const char *word)
{
	size_t len = strlen(word);
	for (const char *at = name; (at = strcasestr(at, word)); at++) {
		bool begins = at == name || !isalnum((unsigned char)at[-1]);
		if (begins && !isalnum((unsigned char)at[len]))
			return true;
	}
	return false;
}

static json_t *example_string(const struct input *input)
{
	if (input->sensitive)
		return placeholder(input->name);
	for (size_t i = 0; i < sizeof(telling) / sizeof(telling[0]); i++)
		if (has_word(input->name, telling[i].word))
			return xjson_string(telling[i].value);
	return xjson_string("example");
}

static json_t *example_value(const struct input *input)
{
	if (input->default_value && !input->sensitive)
		return json_incref(input->default_value);
	switch (input->type) {
	case INPUT_NUMBER:
		return json_integer(1);
	case INPUT_BOOLEAN:
		return json_true();
	case INPUT_ENUM:
		return xjson_string(input->values[0]);
	case INPUT_STRING:
		break;
	}
	return example_string(input);
}

/* What the inputs do not have: required properties of a schema of the tool's own. */
static json_t *example_of_schema(const json_t *property)
{
	const char *type = json_string_value(json_object_get(property, "type"));
	json_t *given = json_object_get(property, "default");
	if (given)
		return json_incref(given);
	if (json_array_size(json_object_get(property, "enum")) > 0)
		return json_incref(json_array_get(json_object_get(property, "enum"), 0));
	if (type && strcmp(type, "array") == 0)
		return xjson_array();
	return type && strcmp(type, "object") == 0 ? xjson_object() : json_null();
}

static void add_of_schema(json_t *example, const json_t *schema)
{
	const json_t *properties = json_object_get(schema, "properties");
	const json_t *required = json_object_get(schema, "required");
	for (size_t i = 0; i < json_array_size(required); i++) {
		const char *name = json_string_value(json_array_get(required, i));
		if (name && !json_object_get(example, name))
			xjson_set(example, name,
				example_of_schema(json_object_get(properties, name)));
	}
}

json_t *schema_example(const struct tool *tool)
{
	json_t *example = xjson_object();
	for (size_t i = 0; i < tool->input_count; i++)
		if (!tool->inputs[i].optional)
			xjson_set(example, tool->inputs[i].name, example_value(&tool->inputs[i]));
	if (tool->parameters)
		add_of_schema(example, tool->parameters);
	return example;
}
