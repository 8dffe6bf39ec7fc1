/*
 * What core makes of a tool's inputs, as JSON, for the tests that compare it with other programs.
 *
 * stdin   a tool as tests/oracle/tooljson.h reads it, with "requests":["{\"a\":1}", ...], which are
 *         texts and may be left out
 * stdout  {"schema":{},"typebox":{},"example":{},"formats":{"mcp":{}, ...},"notes":"",
 *          "checked":[{"params":{},"warnings":""} or {"error":""}, ...]}
 * Exit status 0; 2 where stdin is not as above.
 */
#include <jansson.h>
#include <stdio.h>

#include "core/base/auto.h"
#include "core/tools/formats.h"
#include "core/tools/jsontext.h"
#include "core/tools/params.h"
#include "core/tools/schema.h"
#include "core/tools/xjson.h"
#include "tests/oracle/tooljson.h"

#define OUTPUT_MAX (256UL * 1024 * 1024)

static json_t *check_one(const struct tool *tool, const json_t *text)
{
	struct fail why = FAIL_INIT;
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *request =
		params_parse(json_string_value(text), json_string_length(text), &why);
	json_t *params = request ? params_check(tool, request, &warnings, &why) : NULL;
	json_t *answer = xjson_object();
	if (params) {
		xjson_set(answer, "params", params);
		xjson_set(answer, "warnings", xjson_string(buf_str(&warnings)));
	} else {
		xjson_set(answer, "error", xjson_string(why.text));
	}
	return answer;
}

static json_t *check_all(const struct tool *tool, const json_t *requests)
{
	json_t *answers = xjson_array();
	for (size_t i = 0; i < json_array_size(requests); i++)
		xjson_append(answers, check_one(tool, json_array_get(requests, i)));
	return answers;
}

/* Of the tool alone, by the name of each API. */
static json_t *formats_of(struct tool *tool)
{
	json_t *formats = xjson_object();
	for (int api = 0; api < MODELAPIS; api++) {
		auto_buf struct buf text = BUF_INIT(OUTPUT_MAX);
		if (formats_render((enum modelapi)api, &tool, 1, &text) < 0)
			tooljson_die("no memory for a format");
		xjson_set(formats, modelapi_rules((enum modelapi)api)->name,
			json_loads(buf_str(&text), 0, NULL));
	}
	return formats;
}

static json_t *notes_of(struct tool *tool)
{
	auto_buf struct buf text = BUF_INIT(OUTPUT_MAX);
	formats_notes(&tool, 1, &text);
	return xjson_string(buf_str(&text));
}

int main(void)
{
	auto_json json_t *given = json_loadf(stdin, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(given))
		tooljson_die("stdin is no JSON object");
	auto_tool struct tool *tool = tooljson_read(given);
	auto_json json_t *answer = xjson_object();
	xjson_set(answer, "schema", schema_build(tool));
	xjson_set(answer, "typebox", schema_build_typebox(tool));
	xjson_set(answer, "example", schema_example(tool));
	xjson_set(answer, "formats", formats_of(tool));
	xjson_set(answer, "notes", notes_of(tool));
	xjson_set(answer, "checked", check_all(tool, json_object_get(given, "requests")));
	auto_buf struct buf text = BUF_INIT(OUTPUT_MAX);
	if (jsontext_append(&text, answer, JSONTEXT_COMPACT) < 0)
		tooljson_die("no memory for the answer");
	return puts(buf_str(&text)) < 0 ? 1 : 0;
}
