#include "core/tools/modelschema.h"

#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/tools/jsontext.h"
#include "core/tools/schema.h"
#include "core/tools/xjson.h"

#define DESCRIPTION_MAX (1024 * 1024) /* TOOL.md's front matter is smaller */

/* What OpenAI allows of a strict schema ("Structured model outputs", supported schemas). */
#define STRICT_VALUES_MAX 1000          /* of all enums */
#define STRICT_TEXT_MAX 120000          /* characters of all names and values */
#define STRICT_LONG_ENUM 250            /* an enum of more values ... */
#define STRICT_LONG_ENUM_TEXT_MAX 15000 /* ... has at most so many characters */

static bool can_be_left_out(const struct input *input)
{
	return input->optional || input->default_value;
}

bool modelschema_shows(enum modelapi api, const struct input *input)
{
	return modelapi_takes_input_name(api, input->name);
}

const struct input *modelschema_obstacle(enum modelapi api, const struct tool *tool)
{
	for (size_t i = 0; i < tool->input_count; i++)
		if (!modelschema_shows(api, &tool->inputs[i]) && !can_be_left_out(&tool->inputs[i]))
			return &tool->inputs[i];
	return NULL;
}

/* Bytes, of which there are no fewer than characters. */
bool modelschema_is_strict(const struct tool *tool)
{
	if (tool->parameters)
		return false; /* nobody knows what is in it */
	size_t values = 0, text = 0;
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		size_t own = 0;
		for (size_t j = 0; j < input->value_count; j++)
			own += strlen(input->values[j]);
		if (input->value_count > STRICT_LONG_ENUM && own > STRICT_LONG_ENUM_TEXT_MAX)
			return false;
		values += input->value_count;
		text += strlen(input->name) + own;
	}
	return values <= STRICT_VALUES_MAX && text <= STRICT_TEXT_MAX;
}

/* For APIs that take no `default`, or do not show it to the model. */
static json_t *description_of(const struct input *input)
{
	auto_buf struct buf text = BUF_INIT(DESCRIPTION_MAX);
	buf_puts(&text, input->description ? input->description : "");
	if (input->default_value && !input->sensitive) {
		buf_puts(&text, text.len > 0 ? " (default: " : "(default: ");
		jsontext_append(&text, input->default_value, JSONTEXT_COMPACT);
		buf_putc(&text, ')');
	}
	return text.len > 0 ? xjson_string(buf_str(&text)) : NULL;
}

static void add_description(json_t *property, const struct input *input)
{
	json_t *description = description_of(input);
	if (description)
		xjson_set(property, "description", description);
}

static json_t *values_of(const struct input *input)
{
	json_t *values = xjson_array();
	for (size_t i = 0; i < input->value_count; i++)
		xjson_append(values, xjson_string(input->values[i]));
	return values;
}

static const char *type_of(const struct input *input)
{
	return input->type == INPUT_ENUM ? "string" : input_type_name(input->type);
}

/* ---- OpenAI, strict: every key is required; null, which pegfs takes for "not given", stands for none */

static json_t *strict_property(const struct input *input)
{
	json_t *property = xjson_object();
	json_t *type = xjson_string(type_of(input));
	if (can_be_left_out(input)) {
		json_t *types = xjson_array();
		xjson_append(types, type);
		xjson_append(types, xjson_string("null"));
		type = types;
	}
	xjson_set(property, "type", type);
	if (input->type == INPUT_ENUM) {
		json_t *values = values_of(input);
		if (can_be_left_out(input))
			xjson_append(values, json_null());
		xjson_set(property, "enum", values);
	}
	add_description(property, input);
	return property;
}

static json_t *build_strict(const struct tool *tool)
{
	json_t *schema = xjson_object();
	json_t *properties = xjson_object();
	json_t *required = xjson_array();
	for (size_t i = 0; i < tool->input_count; i++) {
		xjson_set(properties, tool->inputs[i].name, strict_property(&tool->inputs[i]));
		xjson_append(required, xjson_string(tool->inputs[i].name));
	}
	xjson_set(schema, "type", xjson_string("object"));
	xjson_set(schema, "properties", properties);
	xjson_set(schema, "required", required);
	xjson_set(schema, "additionalProperties", json_false());
	return schema;
}

/* ---- Gemini: its own Schema, a part of OpenAPI 3.0's; an object without properties is refused */

static const char *gemini_type(const struct input *input)
{
	static const char *const types[] = {
		[INPUT_STRING] = "STRING",
		[INPUT_NUMBER] = "NUMBER",
		[INPUT_BOOLEAN] = "BOOLEAN",
		[INPUT_ENUM] = "STRING",
	};
	return types[input->type];
}

static json_t *gemini_property(const struct input *input)
{
	json_t *property = xjson_object();
	xjson_set(property, "type", xjson_string(gemini_type(input)));
	if (input->type == INPUT_ENUM) {
		xjson_set(property, "format", xjson_string("enum"));
		xjson_set(property, "enum", values_of(input));
	}
	add_description(property, input);
	return property;
}

static json_t *build_gemini(const struct tool *tool)
{
	json_t *properties = xjson_object();
	json_t *required = xjson_array();
	json_t *order = xjson_array();
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		if (!modelschema_shows(MODELAPI_GEMINI, input))
			continue;
		xjson_set(properties, input->name, gemini_property(input));
		xjson_append(order, xjson_string(input->name));
		if (!can_be_left_out(input))
			xjson_append(required, xjson_string(input->name));
	}
	json_t *schema = NULL;
	if (json_object_size(properties) > 0) {
		schema = xjson_object();
		xjson_set(schema, "type", xjson_string("OBJECT"));
		xjson_set(schema, "properties", json_incref(properties));
		if (json_array_size(required) > 0)
			xjson_set(schema, "required", json_incref(required));
		xjson_set(schema, "propertyOrdering", json_incref(order));
	}
	json_decref(properties);
	json_decref(required);
	json_decref(order);
	return schema;
}

/* ---- those that take JSON Schema */

static void drop_hidden(enum modelapi api, const struct tool *tool, json_t *schema)
{
	json_t *required = json_object_get(schema, "required");
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		if (modelschema_shows(api, input))
			continue;
		json_object_del(json_object_get(schema, "properties"), input->name);
		for (size_t j = json_array_size(required); j-- > 0;)
			if (strcmp(json_string_value(json_array_get(required, j)), input->name) ==
				0)
				json_array_remove(required, j);
	}
	if (required && json_array_size(required) == 0)
		json_object_del(schema, "required");
}

json_t *modelschema_build(enum modelapi api, const struct tool *tool)
{
	if (api == MODELAPI_GEMINI)
		return build_gemini(tool);
	bool is_openai = api == MODELAPI_OPENAI || api == MODELAPI_RESPONSES;
	if (is_openai && modelschema_is_strict(tool))
		return build_strict(tool);
	auto_json json_t *shared =
		api == MODELAPI_TYPEBOX ? schema_build_typebox(tool) : schema_build(tool);
	json_t *schema = json_deep_copy(shared);
	drop_hidden(api, tool, schema);
	return schema;
}
