#include "core/tools/formats.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/utf8.h"
#include "core/tools/faults.h"
#include "core/tools/jsontext.h"
#include "core/tools/modelschema.h"
#include "core/tools/xjson.h"

#define DESCRIPTION_MAX (1024 * 1024) /* TOOL.md's front matter is smaller */
#define ELLIPSIS "\xe2\x80\xa6"

/* All tools of a snapshot, which names must be told apart from. */
struct listed {
	struct tool *const *tools;
	size_t count;
};

static json_t *name_of(enum modelapi api, const struct tool *tool, const struct listed *listed)
{
	if (modelapi_takes_tool_name(api, tool->name))
		return xjson_string(tool->name);
	char name[MODELAPI_NAME_SIZE];
	modelapi_make_name(tool, listed->tools, listed->count, name);
	return xjson_string(name);
}

/* How many bytes of text its first `max` characters are; all of it where it is shorter. */
static size_t bytes_of(const char *text, size_t max)
{
	size_t len = strlen(text), at = 0;
	while (at < len && max-- > 0) {
		size_t next = utf8_char_len(text + at, len - at);
		at += next ? next : 1;
	}
	return at;
}

static bool is_too_long(enum modelapi api, const char *description)
{
	size_t max = modelapi_rules(api)->description_max;
	return max > 0 && bytes_of(description, max) < strlen(description);
}

/* Beyond the maximum the last character is an ellipsis. */
static json_t *description_of(enum modelapi api, const struct tool *tool)
{
	if (!is_too_long(api, tool->description))
		return xjson_string(tool->description);
	auto_buf struct buf text = BUF_INIT(DESCRIPTION_MAX);
	size_t max = modelapi_rules(api)->description_max;
	buf_append(&text, tool->description, bytes_of(tool->description, max - 1));
	buf_puts(&text, ELLIPSIS);
	return xjson_string(buf_str(&text));
}

/* ---- one tool, as each API has it */

static json_t *named(enum modelapi api, const struct tool *tool, const struct listed *listed)
{
	json_t *definition = xjson_object();
	xjson_set(definition, "name", name_of(api, tool, listed));
	return definition;
}

static json_t *typebox_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = named(MODELAPI_TYPEBOX, tool, listed);
	xjson_set(definition, "label", xjson_string(tool->label));
	xjson_set(definition, "description", description_of(MODELAPI_TYPEBOX, tool));
	xjson_set(definition, "parameters", modelschema_build(MODELAPI_TYPEBOX, tool));
	return definition;
}

static json_t *mcp_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = named(MODELAPI_MCP, tool, listed);
	xjson_set(definition, "title", xjson_string(tool->label));
	xjson_set(definition, "description", description_of(MODELAPI_MCP, tool));
	xjson_set(definition, "inputSchema", modelschema_build(MODELAPI_MCP, tool));
	if (tool->annotations)
		xjson_set(definition, "annotations", json_incref(tool->annotations));
	return definition;
}

static json_t *openai_function(
	enum modelapi api, const struct tool *tool, const struct listed *listed)
{
	json_t *function = named(api, tool, listed);
	xjson_set(function, "description", description_of(api, tool));
	xjson_set(function, "parameters", modelschema_build(api, tool));
	xjson_set(function, "strict", json_boolean(modelschema_is_strict(tool)));
	return function;
}

static json_t *openai_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = xjson_object();
	xjson_set(definition, "type", xjson_string("function"));
	xjson_set(definition, "function", openai_function(MODELAPI_OPENAI, tool, listed));
	return definition;
}

static json_t *responses_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = xjson_object();
	xjson_set(definition, "type", xjson_string("function"));
	auto_json json_t *function = openai_function(MODELAPI_RESPONSES, tool, listed);
	if (json_object_update(definition, function) < 0)
		abort();
	return definition;
}

static json_t *anthropic_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = named(MODELAPI_ANTHROPIC, tool, listed);
	xjson_set(definition, "description", description_of(MODELAPI_ANTHROPIC, tool));
	xjson_set(definition, "input_schema", modelschema_build(MODELAPI_ANTHROPIC, tool));
	return definition;
}

static json_t *gemini_tool(const struct tool *tool, const struct listed *listed)
{
	json_t *definition = named(MODELAPI_GEMINI, tool, listed);
	xjson_set(definition, "description", description_of(MODELAPI_GEMINI, tool));
	json_t *parameters = modelschema_build(MODELAPI_GEMINI, tool);
	if (parameters)
		xjson_set(definition, "parameters", parameters);
	return definition;
}

typedef json_t *define_tool(const struct tool *tool, const struct listed *listed);

static define_tool *const definitions[] = {
	[MODELAPI_TYPEBOX] = typebox_tool,
	[MODELAPI_MCP] = mcp_tool,
	[MODELAPI_OPENAI] = openai_tool,
	[MODELAPI_RESPONSES] = responses_tool,
	[MODELAPI_ANTHROPIC] = anthropic_tool,
	[MODELAPI_GEMINI] = gemini_tool,
};
_Static_assert(sizeof(definitions) / sizeof(*definitions) == MODELAPIS, "each API has a row");

/* ---- all of them */

static json_t *wrap(const char *key, json_t *list)
{
	json_t *object = xjson_object();
	xjson_set(object, key, list);
	return object;
}

static json_t *as_the_api_has_it(enum modelapi api, json_t *list)
{
	if (api == MODELAPI_MCP)
		return wrap("tools", list);
	if (api != MODELAPI_GEMINI)
		return list;
	/* An empty list of functions is refused; no `tools` at all is not. */
	json_t *tools = xjson_array();
	if (json_array_size(list) > 0)
		xjson_append(tools, wrap("functionDeclarations", list));
	else
		json_decref(list);
	return tools;
}

static int put_json(struct buf *out, const json_t *json)
{
	jsontext_append(out, json, JSONTEXT_PRETTY);
	buf_putc(out, '\n');
	return out->failed;
}

int formats_render(enum modelapi api, struct tool *const *tools, size_t count, struct buf *out)
{
	const struct listed listed = { tools, count };
	json_t *list = xjson_array();
	for (size_t i = 0; i < count; i++)
		if (!modelschema_obstacle(api, tools[i]))
			xjson_append(list, definitions[api](tools[i], &listed));
	auto_json json_t *whole = as_the_api_has_it(api, list);
	return put_json(out, whole);
}

int formats_names(struct tool *const *tools, size_t count, struct buf *out)
{
	const struct listed listed = { tools, count };
	auto_json json_t *names = xjson_object();
	for (size_t i = 0; i < count; i++)
		for (int api = 0; api < MODELAPIS; api++) {
			auto_json json_t *name = name_of((enum modelapi)api, tools[i], &listed);
			if (!modelschema_obstacle((enum modelapi)api, tools[i]))
				xjson_set(names, json_string_value(name),
					xjson_string(tools[i]->name));
		}
	return put_json(out, names);
}

/* ---- what is not as it is in TOOL.md */

static void note_inputs(enum modelapi api, const struct tool *tool, struct buf *out)
{
	const char *file = modelapi_rules(api)->name;
	for (size_t i = 0; i < tool->input_count; i++)
		if (!modelschema_shows(api, &tool->inputs[i]))
			buf_printf(out,
				"%s.json: input '%s' of '%s' is left out: the API does not take "
				"such a name\n",
				file, faults_excerpt(tool->inputs[i].name).text,
				faults_excerpt(tool->name).text);
}

static void note(
	enum modelapi api, const struct tool *tool, const struct listed *listed, struct buf *out)
{
	const char *file = modelapi_rules(api)->name;
	struct faults_excerpt shown = faults_excerpt(tool->name);
	const struct input *obstacle = modelschema_obstacle(api, tool);
	if (obstacle) {
		buf_printf(out,
			"%s.json: '%s' is left out: the API does not take the name of its input "
			"'%s', which is required; use letters, digits and '_'\n",
			file, shown.text, faults_excerpt(obstacle->name).text);
		return;
	}
	if (!modelapi_takes_tool_name(api, tool->name)) {
		char name[MODELAPI_NAME_SIZE];
		modelapi_make_name(tool, listed->tools, listed->count, name);
		buf_printf(out, "%s.json: '%s' is called '%s': the API takes no such name\n", file,
			shown.text, name);
	}
	if (is_too_long(api, tool->description))
		buf_printf(out, "%s.json: the description of '%s' ends after %zu characters\n",
			file, shown.text, modelapi_rules(api)->description_max);
	if ((api == MODELAPI_OPENAI || api == MODELAPI_RESPONSES) && !modelschema_is_strict(tool))
		buf_printf(out,
			"%s.json: '%s' is not strict: its names and values are more than the API "
			"allows\n",
			file, shown.text);
	note_inputs(api, tool, out);
}

int formats_notes(struct tool *const *tools, size_t count, struct buf *out)
{
	const struct listed listed = { tools, count };
	for (int api = 0; api < MODELAPIS; api++)
		for (size_t i = 0; i < count; i++)
			note((enum modelapi)api, tools[i], &listed, out);
	return out->failed;
}
