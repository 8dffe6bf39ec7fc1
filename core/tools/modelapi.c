#include "core/tools/modelapi.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUFFIX_LEN 9 /* "_" and an id */

static const struct modelapi_rules rules[] = {
	/* pi hands the names on to whichever API: the narrowest of each. */
	[MODELAPI_TYPEBOX] = { "typebox", 64, "-", false, 64, "", false, 0 },
	[MODELAPI_MCP] = { "mcp", 128, "-.", true, 0, "", true, 0 },
	[MODELAPI_OPENAI] = { "openai", 64, "-", true, 0, "", true, 1024 },
	[MODELAPI_RESPONSES] = { "openai-responses", 64, "-", true, 0, "", true, 1024 },
	[MODELAPI_ANTHROPIC] = { "anthropic", 64, "-", true, 64, ".-", true, 0 },
	[MODELAPI_GEMINI] = { "gemini", 64, "-", false, 64, "", false, 0 },
};
_Static_assert(sizeof(rules) / sizeof(*rules) == MODELAPIS, "each API has a row");

const struct modelapi_rules *modelapi_rules(enum modelapi api)
{
	return &rules[api];
}

/* Not isalnum(3): that depends on the locale. */
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool may_begin(char c)
{
	return is_word(c) && !(c >= '0' && c <= '9');
}

static bool fits(const char *name, size_t max, const char *extra, bool any_first)
{
	size_t len = 0;
	while (name[len] && (is_word(name[len]) || strchr(extra, name[len])))
		len++;
	return name[len] == '\0' && len > 0 && len <= max && (any_first || may_begin(*name));
}

bool modelapi_takes_tool_name(enum modelapi api, const char *name)
{
	const struct modelapi_rules *of = &rules[api];
	return fits(name, of->tool_name_max, of->tool_extra, of->tool_any_first);
}

bool modelapi_takes_input_name(enum modelapi api, const char *name)
{
	const struct modelapi_rules *of = &rules[api];
	return of->input_name_max == 0 ||
	       fits(name, of->input_name_max, of->input_extra, of->input_any_first);
}

static int compare_name(const void *key, const void *item)
{
	return strcmp(key, (*(struct tool *const *)item)->name);
}

void modelapi_make_name(const struct tool *tool, struct tool *const *tools, size_t count,
	char name[MODELAPI_NAME_SIZE])
{
	size_t len = 0;
	if (!may_begin(*tool->name))
		name[len++] = '_';
	/* What is no word becomes one '_', however long it is. */
	for (const char *at = tool->name; *at && len < MODELAPI_NAME_MAX - SUFFIX_LEN; at++)
		if (is_word(*at) || *at == '-')
			name[len++] = *at;
		else if (len > 0 && name[len - 1] != '_')
			name[len++] = '_';
	uint32_t id = tool->id;
	do
		snprintf(name + len, MODELAPI_NAME_SIZE - len, "_%08" PRIx32, id++);
	while (count > 0 && bsearch(name, tools, count, sizeof(*tools), compare_name));
}
