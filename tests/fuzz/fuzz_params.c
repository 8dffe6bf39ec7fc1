/* Requests through params_parse, params_check and params_redact, for a tool with every input type. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/tools/jsontext.h"
#include "core/tools/params.h"
#include "core/tools/xjson.h"
#include "tests/oracle/tooljson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char inputs[] =
	"{\"inputs\":["
	"{\"name\":\"text\"},"
	"{\"name\":\"count\",\"type\":\"number\",\"optional\":true,\"default\":3},"
	"{\"name\":\"flag\",\"type\":\"boolean\",\"optional\":true},"
	"{\"name\":\"mode\",\"type\":\"enum\",\"values\":[\"a\",\"b\",\"1\"],\"optional\":true},"
	"{\"name\":\"api_token\",\"optional\":true,\"sensitive\":true}]}";

static struct tool *the_tool(void)
{
	static struct tool *tool;
	if (!tool) {
		json_t *json = json_loads(inputs, 0, NULL);
		tool = tooljson_read(json);
		json_decref(json);
	}
	return tool;
}

/* What was accepted is a fixed point: checked again it stays as it is, and it can be written. */
static void check_again(const struct tool *tool, json_t *params)
{
	struct fail why = FAIL_INIT;
	struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX), text = BUF_INIT(64UL * 1024 * 1024);
	json_t *again = params_check(tool, params, &warnings, &why);
	if (!again || !json_equal(params, again) || jsontext_append(&text, params, 0) < 0)
		abort();
	json_decref(again);
	buf_release(&warnings);
	buf_release(&text);
}

static void check_redacted(const struct tool *tool, const json_t *params)
{
	json_t *redacted = params_redact(tool, params);
	const json_t *token = json_object_get(redacted, "api_token");
	if (!redacted || (token && strcmp(json_string_value(token), "[sensitive]") != 0))
		abort();
	json_decref(redacted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fail why = FAIL_INIT;
	struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	json_t *request = params_parse((const char *)data, size, &why);
	json_t *params = request ? params_check(the_tool(), request, &warnings, &why) : NULL;
	if (!params && (why.code == 0 || !*why.text))
		abort();
	if (params) {
		check_again(the_tool(), params);
		check_redacted(the_tool(), params);
	}
	json_decref(params);
	json_decref(request);
	buf_release(&warnings);
	return 0;
}
