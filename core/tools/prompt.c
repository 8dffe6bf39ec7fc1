#include "core/tools/prompt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/heading.h"
#include "core/tools/inputtext.h"
#include "core/tools/jsontext.h"
#include "core/tools/markdown.h"
#include "core/tools/schema.h"
#include "core/tools/shell.h"
#include "core/tools/xjson.h"

#define EXAMPLE_MAX (256 * 1024) /* of one tool's commands; its front matter is far smaller */
#define README_NAMES_MAX 12      /* more tools than this are left to ls */
#define README_NAMES_BYTES 400

/* Where a tool's files are, as words of a shell. */
static char *word_of(const char *mount, const char *name, const char *file)
{
	auto_free char *path = xasprintf("%s/%s/%s", mount, name, file);
	auto_buf struct buf word = BUF_INIT(EXAMPLE_MAX);
	shell_word(&word, path);
	char *copy = buf_take(&word);
	return copy ? copy : xstrdup("");
}

static char *example_of(const struct tool *tool)
{
	auto_json json_t *example = schema_example(tool);
	auto_buf struct buf text = BUF_INIT(EXAMPLE_MAX);
	if (jsontext_append(&text, example, JSONTEXT_COMPACT) < 0)
		return xstrdup("{}");
	return buf_take(&text);
}

/* echo '{...}' > MOUNT/hello/call && cat MOUNT/hello/result.txt */
static void put_simple_call(struct buf *out, const struct tool *tool, const char *mount)
{
	auto_free char *example = example_of(tool);
	auto_free char *call = word_of(mount, tool->name, "call");
	auto_free char *answer = word_of(mount, tool->name, "result.txt");
	auto_free char *target = xasprintf("> %s", call);
	auto_free char *then = xasprintf(" && cat %s", answer);
	shell_send(out, example, target, then);
}

/* The read-write form, in which nobody waits in the write and the answer is the reader's own. */
static void put_parallel_call(struct buf *out, const struct tool *tool, const char *mount)
{
	auto_free char *example = example_of(tool);
	auto_free char *call = word_of(mount, tool->name, "call");
	buf_printf(out, "exec 3<>%s\n", call);
	shell_send(out, example, ">&3", "");
	buf_puts(out, "cat <&3; exec 3>&-\n");
}

static void put_inputs(struct buf *out, const struct tool *tool)
{
	buf_puts(out, "## Inputs\n\n");
	if (tool->input_count == 0) {
		buf_puts(out, "None: write `{}`.\n\n");
		return;
	}
	inputtext_table(out, tool);
	if (inputtext_has_sensitive(tool))
		buf_puts(out,
			"\nThe value of a sensitive input reaches the tool and is shown in no "
			"file here.\n");
	buf_putc(out, '\n');
}

static void put_how_to_call(struct buf *out, const struct tool *tool, const char *mount)
{
	buf_puts(out, "## How to call it\n\n"
		      "Write one JSON object to `call`. The write ends when the tool is done; "
		      "`result.txt` has the answer.\n\n```sh\n");
	put_simple_call(out, tool, mount);
	buf_puts(out,
		"```\n\n"
		"Where the write fails (exit status not 0), `result.txt` says why and what to do, and "
		"`log` has what the tool printed. `result.json` is the whole answer.\n\n"
		"For a long call, or several at once, open `call` for reading and writing: the write "
		"returns at once, reading waits for the answer (JSON on one line), and each caller "
		"gets its own.\n\n```sh\n");
	put_parallel_call(out, tool, mount);
	buf_puts(out, "```\n");
}

int prompt_tool(const struct tool *tool, const char *mount, struct buf *out)
{
	buf_puts(out, "# ");
	markdown_line(out, tool->label);
	buf_printf(out, "\n\n%s\n\nThis is the tool ", tool->description);
	markdown_code(out, tool->name, 0);
	buf_printf(out, ", version %lld.\n\n", (long long)tool->version);
	put_inputs(out, tool);
	put_how_to_call(out, tool, mount);
	if (tool->body_len > 0) {
		if (tool->body[0] != '\n')
			buf_putc(out, '\n');
		heading_deepen(tool->body, tool->body_len, out);
		if (out->len > 0 && out->data[out->len - 1] != '\n')
			buf_putc(out, '\n');
	}
	return out->failed;
}

static int put_json(struct buf *out, const json_t *json)
{
	jsontext_append(out, json, JSONTEXT_PRETTY);
	buf_putc(out, '\n');
	return out->failed;
}

int prompt_schema(const struct tool *tool, struct buf *out)
{
	auto_json json_t *schema = schema_build(tool);
	return put_json(out, schema);
}

/* Each line of text behind "#   ". */
static void put_commented(struct buf *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		buf_printf(out, "#   %.*s\n", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

int prompt_usage(const struct tool *tool, const char *mount, struct buf *out)
{
	auto_buf struct buf call = BUF_INIT(EXAMPLE_MAX);
	put_simple_call(&call, tool, mount);
	buf_puts(out, "# ");
	markdown_line(out, tool->name);
	buf_puts(out, ": ");
	markdown_line(out, tool->description);
	buf_puts(out, "\n#\n# Write one JSON object to this file and the tool runs:\n#\n");
	put_commented(out, buf_str(&call));
	buf_puts(out,
		"#\n# The write ends when the tool is done. The answer is in result.txt beside "
		"this file (whole: result.json);\n# where the write fails, it says why and what "
		"to do. prompt.md has the instructions.\n#\n# Inputs:");
	buf_puts(out, tool->input_count == 0 ? " none, write {}\n" : "\n");
	inputtext_list(out, tool, "#   ");
	return out->failed;
}

static void put_in_list(struct buf *out, const struct tool *tool, const char *mount)
{
	buf_puts(out, "\n## ");
	markdown_line(out, tool->name);
	if (strcmp(tool->label, tool->name) != 0) {
		buf_puts(out, ": ");
		markdown_line(out, tool->label);
	}
	buf_puts(out, "\n\n");
	buf_printf(out, "%s\n\n", tool->description);
	inputtext_list(out, tool, "- ");
	buf_puts(out, tool->input_count > 0 ? "\n```sh\n" : "No inputs.\n\n```sh\n");
	put_simple_call(out, tool, mount);
	buf_puts(out, "```\n");
}

int prompt_all(struct tool *const *tools, size_t count, const char *mount, struct buf *out)
{
	buf_printf(out,
		"# Tools\n\n"
		"Each tool below is a directory in %s. To call one, write one JSON object with its "
		"inputs to its `call` file, as the example of each shows; the write ends when the tool "
		"is done, and `result.txt` beside it has the answer or, where the write failed, says "
		"why and what to do. Before you call a tool for the first time, read its `prompt.md`: "
		"it has the whole instructions.\n",
		mount);
	if (count == 0)
		buf_puts(out,
			"\nThere are no tools yet. `.pegfs/errors` there says what was skipped "
			"and why.\n");
	for (size_t i = 0; i < count; i++)
		put_in_list(out, tools[i], mount);
	return out->failed;
}

/* "there are 2 now: hello, my_db" */
static void put_names(struct buf *out, struct tool *const *tools, size_t count)
{
	auto_buf struct buf names = BUF_INIT(README_NAMES_BYTES);
	for (size_t i = 0; i < count; i++) {
		buf_puts(&names, i > 0 ? ", " : "");
		markdown_line(&names, tools[i]->name);
	}
	if (count == 0)
		buf_puts(out, "there are none yet");
	else
		buf_printf(out, "there %s %zu now", count == 1 ? "is" : "are", count);
	if (count > 0 && count <= README_NAMES_MAX && !names.failed)
		buf_printf(out, ": %s", buf_str(&names));
}

static void put_readme_call(
	struct buf *out, struct tool *const *tools, size_t count, const char *mount)
{
	buf_puts(out, "```sh\n");
	if (count > 0) {
		auto_free char *guide = word_of(mount, tools[0]->name, "prompt.md");
		buf_printf(out, "cat %s\n", guide);
		put_simple_call(out, tools[0], mount);
	} else {
		buf_printf(out,
			"cat %s/NAME/prompt.md\n"
			"echo '{\"input\":\"value\"}' > %s/NAME/call && cat %s/NAME/result.txt\n",
			mount, mount, mount);
	}
	buf_puts(out, "```\n");
}

int prompt_readme(struct tool *const *tools, size_t count, const char *mount, struct buf *out)
{
	buf_printf(out, "# Tools\n\nEach directory in %s is a tool; ", mount);
	put_names(out, tools, count);
	buf_puts(out,
		".\nRead what a tool does and which inputs it takes, then write one JSON object "
		"to its `call` file:\n\n");
	put_readme_call(out, tools, count, mount);
	buf_puts(out,
		"\nThe write ends when the tool is done, and `result.txt` has the answer. Where the "
		"write fails (exit status\nnot 0), `result.txt` says why and what to do. A text with "
		"`'` or `\\` in it is safe in a here-document:\n\n"
		"```sh\ncat > NAME/call <<'END'\n{\"text\":\"it's here\"}\nEND\n```\n\n"
		"In each tool's directory:\n\n"
		"- `prompt.md` the instructions; `schema.json` the inputs as JSON Schema\n"
		"- `call` write JSON and the tool runs; reading it shows an example\n"
		"- `result.txt` your last answer as text; `result.json` all of it; `log` what the tool "
		"printed\n"
		"- `run` the same as a program: `NAME/run --help`\n"
		"- `calls/ID/` each call with its status, progress and result; write anything to "
		"`cancel` to stop it\n\n"
		"Here: `prompt.md` describes every tool in one text, `tools.json` as JSON. A tool is "
		"missing?\n`.pegfs/errors` says what was skipped and why.\n");
	return out->failed;
}

int prompt_tools_json(struct tool *const *tools, size_t count, struct buf *out)
{
	auto_json json_t *list = xjson_array();
	for (size_t i = 0; i < count; i++) {
		json_t *definition = xjson_object();
		xjson_set(definition, "name", xjson_string(tools[i]->name));
		xjson_set(definition, "title", xjson_string(tools[i]->label));
		xjson_set(definition, "description", xjson_string(tools[i]->description));
		xjson_set(definition, "inputSchema", schema_build(tools[i]));
		if (tools[i]->annotations)
			xjson_set(definition, "annotations", json_incref(tools[i]->annotations));
		xjson_append(list, definition);
	}
	return put_json(out, list);
}

int prompt_table(struct tool *const *tools, size_t count, struct buf *out)
{
	buf_puts(out, "# name\tversion\tlanguage\tsource\n");
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s\t%" PRId64 "\t%s\t%s\n", tools[i]->name, tools[i]->version,
			language_name(tools[i]->language), tools[i]->dir);
	return out->failed;
}
