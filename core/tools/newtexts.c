/* The files of a fresh tool. Each passes check as it stands, and says what to put in its place. */
#include "core/tools/new.h"

#define MANIFEST(language, authors_note)                                                           \
	"---\n"                                                                                    \
	"name: @NAME@\n"                                                                           \
	"label: @LABEL@\n"                                                                         \
	"description: \"Repeats a text, as an example. Use this to try a new tool; then say here " \
	"what it does and when to use it.\"\n"                                                     \
	"version: 1\n"                                                                             \
	"language: " language "\n"                                                                 \
	"inputs:\n"                                                                                \
	"  text:\n"                                                                                \
	"    type: string\n"                                                                       \
	"    description: The text to repeat.\n"                                                   \
	"  times:\n"                                                                               \
	"    type: number\n"                                                                       \
	"    optional: true\n"                                                                     \
	"    default: 1\n"                                                                         \
	"    description: How often, from 1 to 100.\n"                                             \
	"---\n"                                                                                    \
	"# @LABEL@\n"                                                                              \
	"\n"                                                                                       \
	"Gives a text back, as often as asked.\n"                                                  \
	"\n"                                                                                       \
	"## Usage\n"                                                                               \
	"\n"                                                                                       \
	"Give `text`, and `times` if once is not enough. The result has one line for each time.\n" \
	"\n"                                                                                       \
	"## Examples\n"                                                                            \
	"\n"                                                                                       \
	"- Once: `{\"text\": \"Hello\"}`\n"                                                        \
	"- Three times: `{\"text\": \"Hello\", \"times\": 3}`\n"                                   \
	"\n"                                                                                       \
	"## Error Handling\n"                                                                      \
	"\n"                                                                                       \
	"- `text parameter is required.`: it is missing or empty.\n"                               \
	"- `times must be a whole number from 1 to 100.`: choose another one.\n"                   \
	"\n"                                                                                       \
	"## Notes\n"                                                                               \
	"\n"                                                                                       \
	"- Needs nothing else, and changes nothing.\n" authors_note

static const struct new_file typescript[] = {
	{ "TOOL.md", MANIFEST("typescript", ""), false },
	{ "index.ts",
		"// Raise `version` in TOOL.md with every change, here or there.\n"
		"\n"
		"type ToolResult = { content: Array<{ type: string; text: string }>; isError?: "
		"boolean };\n"
		"\n"
		"type Params = { text: string; times?: number };\n"
		"\n"
		"function ok(text: string): ToolResult {\n"
		"  return { content: [{ type: 'text', text }] };\n"
		"}\n"
		"\n"
		"function err(text: string): ToolResult {\n"
		"  return { content: [{ type: 'text', text }], isError: true };\n"
		"}\n"
		"\n"
		"export async function execute(_toolCallId: string, params: Params): "
		"Promise<ToolResult> {\n"
		"  try {\n"
		"    const { text, times = 1 } = params;\n"
		"    if (!text) return err('text parameter is required.');\n"
		"    if (!Number.isInteger(times) || times < 1 || times > 100) {\n"
		"      return err('times must be a whole number from 1 to 100.');\n"
		"    }\n"
		"    return ok(Array(times).fill(text).join('\\n'));\n"
		"  } catch (e) {\n"
		"    return err(`Failed: ${e instanceof Error ? e.message : String(e)}`);\n"
		"  }\n"
		"}\n",
		false },
};

static const struct new_file python[] = {
	{ "TOOL.md", MANIFEST("python", "- The container must have python3.\n"), false },
	{ "index.py",
		"# Raise `version` in TOOL.md with every change, here or there.\n"
		"\n"
		"\n"
		"def ok(text):\n"
		"    return {\"content\": [{\"type\": \"text\", \"text\": text}]}\n"
		"\n"
		"\n"
		"def err(text):\n"
		"    return {\"content\": [{\"type\": \"text\", \"text\": text}], \"isError\": True}\n"
		"\n"
		"\n"
		"def execute(_tool_call_id, params):\n"
		"    try:\n"
		"        text, times = params.get(\"text\"), params.get(\"times\", 1)\n"
		"        if not text:\n"
		"            return err(\"text parameter is required.\")\n"
		"        if times != int(times) or not 1 <= times <= 100:\n"
		"            return err(\"times must be a whole number from 1 to 100.\")\n"
		"        return ok(\"\\n\".join([text] * int(times)))\n"
		"    except Exception as error:\n"
		"        return err(f\"Failed: {error}\")\n",
		false },
};

static const struct new_file bash[] = {
	{ "TOOL.md", MANIFEST("bash", "- The container must have bash.\n"), false },
	{ "index.sh",
		"#!/bin/bash\n"
		"# Raise `version` in TOOL.md with every change, here or there.\n"
		"#\n"
		"# Each parameter is in $PARAM_name. What is printed is the result; an exit status "
		"other than 0\n"
		"# makes it an error.\n"
		"set -u\n"
		"\n"
		"fail() {\n"
		"  echo \"$1\" >&2\n"
		"  exit 1\n"
		"}\n"
		"\n"
		"text=${PARAM_text-}\n"
		"times=${PARAM_times-1}\n"
		"[ -n \"$text\" ] || fail 'text parameter is required.'\n"
		"case $times in\n"
		"  [1-9] | [1-9][0-9] | 100) ;;\n"
		"  *) fail 'times must be a whole number from 1 to 100.' ;;\n"
		"esac\n"
		"for ((i = 0; i < times; i++)); do\n"
		"  printf '%s\\n' \"$text\"\n"
		"done\n",
		true },
};

const struct new_file *new_files(enum language language)
{
	switch (language) {
	case LANGUAGE_PYTHON:
		return python;
	case LANGUAGE_BASH:
		return bash;
	default:
		return typescript;
	}
}
