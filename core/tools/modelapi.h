/*
 * What the model APIs take as a tool, one row an API, and names that fit them. The limits are those
 * that each API publishes, or is known to answer with status 400 beyond; tests/formats has them a
 * second time, as JSON Schemas, with their sources.
 */
#ifndef PEGFS_TOOLS_MODELAPI_H
#define PEGFS_TOOLS_MODELAPI_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/tool.h"

enum modelapi {
	MODELAPI_TYPEBOX,   /* pi's registerTool */
	MODELAPI_MCP,       /* the Model Context Protocol's tools/list */
	MODELAPI_OPENAI,    /* OpenAI's Chat Completions, and the many that speak it */
	MODELAPI_RESPONSES, /* OpenAI's Responses */
	MODELAPI_ANTHROPIC, /* Anthropic's Messages */
	MODELAPI_GEMINI,    /* Google's generateContent, `parameters` */
	MODELAPIS,
};

/* The longest name that fits them all, and room for a NUL. */
#define MODELAPI_NAME_MAX 64
#define MODELAPI_NAME_SIZE (MODELAPI_NAME_MAX + 1)

struct modelapi_rules {
	const char *name;       /* of the file, without its ending */
	size_t tool_name_max;   /* bytes of [A-Za-z0-9_-] and of tool_extra */
	const char *tool_extra; /* further characters of a tool's name */
	bool tool_any_first;    /* a name may begin with something else than a letter or '_' */
	size_t input_name_max;  /* bytes of [A-Za-z0-9_] and of input_extra; 0: any name */
	const char *input_extra;
	bool input_any_first;
	size_t description_max; /* characters of a tool's description; 0: any */
};

const struct modelapi_rules *modelapi_rules(enum modelapi api);

bool modelapi_takes_tool_name(enum modelapi api, const char *name);
bool modelapi_takes_input_name(enum modelapi api, const char *name);

/*
 * A name for a tool whose own does not fit, which all APIs take: what of the name can stay, and the
 * tool's id (unique in its snapshot), eight hexadecimal digits. None of tools, which are sorted by
 * name, has it.
 */
void modelapi_make_name(const struct tool *tool, struct tool *const *tools, size_t count,
	char name[MODELAPI_NAME_SIZE]);

#endif
