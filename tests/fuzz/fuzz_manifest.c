/* Any bytes as TOOL.md: what comes out is usable as it is, or there is an error that says why not. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/tools/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_text(const char *text)
{
	check(text && utf8_valid_len(text, strlen(text)) == strlen(text));
}

static void check_input(const struct input *input)
{
	check_text(input->name);
	check_text(input->description);
	check((input->type == INPUT_ENUM) == (input->value_count > 0));
	for (size_t i = 0; i < input->value_count; i++)
		check_text(input->values[i]);
	const json_t *value = input->default_value;
	if (!value)
		return;
	if (input->type == INPUT_NUMBER)
		check(json_is_number(value));
	else if (input->type == INPUT_BOOLEAN)
		check(json_is_boolean(value));
	else
		check(json_is_string(value));
}

static void check_tool(const struct tool *tool)
{
	check_text(tool->name);
	check(manifest_name_is_safe(tool->name));
	check_text(tool->label);
	check_text(tool->description);
	check(*tool->label && *tool->description && tool->version >= 0);
	check(strlen(tool->body) == tool->body_len);
	for (size_t i = 0; i < tool->input_count; i++)
		check_input(&tool->inputs[i]);
}

static void check_faults(const struct faults *faults)
{
	for (size_t i = 0; i < faults->count; i++) {
		const char *text = faults->items[i].text;
		check_text(text);
		check(!strchr(text, '\n') && !strchr(text, '\x1b'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_tool struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	int result = manifest_parse(size ? (const char *)data : "", size, tool, &faults);
	check((result < 0) == faults_have_error(&faults));
	check_faults(&faults);
	if (result == 0)
		check_tool(tool);
	return 0;
}
