#include "core/tools/runhelp.h"

#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/jsontext.h"
#include "core/tools/markdown.h"
#include "core/tools/option.h"
#include "core/tools/schema.h"
#include "core/tools/shell.h"

#define WORD_MAX (64 * 1024) /* of an input's name or value as a word */
#define WIDTH 90             /* of a usage line, as far as its words allow */
#define CHOICE_MAX 40        /* a longer list of values is left to the lines below */
#define OPTIONAL_MAX 12      /* more optional inputs than this are left to the lines below */

/* --name as a shell takes it. */
static void put_name(struct buf *out, const char *dashes, const char *name)
{
	auto_free char *option = xasprintf("%s%s", dashes, name);
	shell_word(out, option);
}

/* "a|b", or nothing where that is long or holds what is special to a reader or a shell. */
static void put_choice(struct buf *out, const struct input *input)
{
	auto_buf struct buf choice = BUF_INIT(CHOICE_MAX);
	for (size_t i = 0; i < input->value_count; i++) {
		buf_puts(&choice, i > 0 ? "|" : "");
		shell_word(&choice, input->values[i]);
	}
	buf_puts(out, choice.failed ? "VALUE" : buf_str(&choice));
}

/* " STRING", " a|b", "": what follows the name of an input. */
static void put_value_name(struct buf *out, const struct input *input)
{
	switch (input->type) {
	case INPUT_STRING:
		buf_puts(out, " STRING");
		break;
	case INPUT_NUMBER:
		buf_puts(out, " NUMBER");
		break;
	case INPUT_BOOLEAN:
		break;
	case INPUT_ENUM:
		buf_putc(out, ' ');
		put_choice(out, input);
		break;
	}
}

/* A flag where true is the default is given to deny it; where it is needed, either is. */
static void put_flag(struct buf *out, const struct input *input)
{
	bool is_true = json_is_true(input->default_value); /* false where there is none */
	put_name(out, is_true ? "--no-" : "--", input->name);
	if (!option_is_needed(input))
		return;
	buf_putc(out, '|');
	put_name(out, "--no-", input->name);
}

/* One input on a usage line: "--name STRING", "[--limit NUMBER]", "--wait|--no-wait". */
static void put_usage_of(struct buf *out, const struct input *input)
{
	bool needed = option_is_needed(input);
	buf_puts(out, needed ? "" : "[");
	if (input->type == INPUT_BOOLEAN) {
		put_flag(out, input);
	} else {
		put_name(out, "--", input->name);
		put_value_name(out, input);
	}
	buf_puts(out, needed ? "" : "]");
}

/* Puts one piece behind the last, on a new line where it does not fit. */
static void put_wrapped(struct buf *out, size_t *line_at, const struct buf *piece)
{
	if (out->len - *line_at + 1 + piece->len > WIDTH) {
		buf_putc(out, '\n');
		*line_at = out->len;
		buf_puts(out, "         ");
	}
	buf_putc(out, ' ');
	buf_append(out, piece->data, piece->len);
}

static void put_usages(
	struct buf *out, size_t *line_at, const struct tool *tool, bool needed, size_t count_max)
{
	size_t count = 0;
	for (size_t i = 0; i < tool->input_count && count <= count_max; i++) {
		if (option_is_needed(&tool->inputs[i]) != needed)
			continue;
		auto_buf struct buf piece = BUF_INIT(WORD_MAX);
		if (count++ == count_max)
			buf_puts(&piece, "[...]");
		else
			put_usage_of(&piece, &tool->inputs[i]);
		put_wrapped(out, line_at, &piece);
	}
}

void runhelp_usage(const struct tool *tool, const char *program, struct buf *out)
{
	size_t line_at = out->len;
	buf_printf(out, "usage: %s", program);
	put_usages(out, &line_at, tool, true, SIZE_MAX);
	put_usages(out, &line_at, tool, false, OPTIONAL_MAX);
	buf_putc(out, '\n');
}

/* ---- the list of inputs */

static void put_kind(struct buf *out, const struct input *input)
{
	if (input->type == INPUT_ENUM) {
		buf_puts(out, "one of ");
		for (size_t i = 0; i < input->value_count; i++) {
			buf_puts(out, i > 0 ? ", " : "");
			shell_word(out, input->values[i]);
		}
	} else if (input->type == INPUT_BOOLEAN) {
		buf_puts(out, "true, or false by ");
		put_name(out, "--no-", input->name);
	} else {
		buf_printf(out, "a %s", input_type_name(input->type));
	}
}

static void put_need(struct buf *out, const struct input *input)
{
	if (input->default_value && input->sensitive) {
		buf_puts(out, "; has a default");
	} else if (input->default_value) {
		auto_buf struct buf text = BUF_INIT(WORD_MAX);
		jsontext_append(&text, input->default_value, JSONTEXT_COMPACT);
		buf_puts(out, "; default ");
		markdown_line(out, text.failed ? "given" : buf_str(&text));
	} else {
		buf_puts(out, input->optional ? "; optional" : "; required");
	}
	buf_puts(out, input->sensitive ? "; sensitive: no file shows it" : "");
}

static void put_inputs(struct buf *out, const struct tool *tool)
{
	buf_puts(out, tool->input_count > 0 ? "\ninputs:\n" : "\nIt has no inputs.\n");
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		buf_puts(out, "  ");
		put_name(out, "--", input->name);
		put_value_name(out, input);
		buf_puts(out, "\n      ");
		put_kind(out, input);
		put_need(out, input);
		if (*input->description) {
			buf_puts(out, "\n      ");
			markdown_line(out, input->description);
		}
		buf_putc(out, '\n');
	}
}

/* ---- how to give them */

static void put_ours(struct buf *out, const struct tool *tool)
{
	buf_puts(out, "\noptions:\n");
	if (option_is_ours(tool, "full"))
		buf_puts(out,
			"  --full  the whole text, also where it is longer than 50 KB or 2000 "
			"lines\n");
	if (option_is_ours(tool, "json"))
		buf_puts(out, "  --json  the whole result as JSON on one line\n");
	buf_puts(out, "  --help  this text");
	buf_puts(out, option_is_ours(tool, "help") ? "\n" : ", where it is the only word\n");
}

static void put_rules(struct buf *out, const struct tool *tool)
{
	const struct input *input = option_positional(tool);
	if (tool->input_count > 0)
		buf_puts(out,
			"\nA value is taken as it comes: --name VALUE or --name=VALUE. In names - and _ "
			"are the same.");
	buf_putc(out, '\n');
	if (input) {
		buf_puts(out, "A word without a name before it is the value of ");
		put_name(out, "--", input->name);
		buf_puts(out, ".\n");
	}
	buf_puts(out,
		"A single word {...} is the whole request as JSON; so is standard input where no "
		"input is\ngiven and it is no terminal. After -- every word is a plain text.\n"
		"The text goes to standard output, errors go to standard error. Exit status: 0, 1 "
		"where\nthe tool failed, 2 where the request is wrong and nothing was run.\n");
}

static void put_example_value(struct buf *out, const char *name, const json_t *value)
{
	buf_putc(out, ' ');
	if (json_is_boolean(value)) {
		put_name(out, json_is_true(value) ? "--" : "--no-", name);
		return;
	}
	put_name(out, "--", name);
	buf_putc(out, ' ');
	auto_buf struct buf text = BUF_INIT(WORD_MAX);
	if (json_is_string(value))
		buf_puts(&text, json_string_value(value));
	else
		jsontext_append(&text, value, JSONTEXT_COMPACT);
	shell_word(out, buf_str(&text));
}

static void put_examples(struct buf *out, const struct tool *tool, const char *program)
{
	auto_json json_t *example = schema_example(tool);
	auto_buf struct buf json = BUF_INIT(WORD_MAX);
	jsontext_append(&json, example, JSONTEXT_COMPACT);
	buf_printf(out, "\nexamples:\n  %s", program);
	const char *name;
	json_t *value;
	json_object_foreach(example, name, value)
	{
		put_example_value(out, name, value);
	}
	buf_printf(out, "\n  %s ", program);
	shell_word(out, json.failed ? "{}" : buf_str(&json));
	buf_printf(out, "\n  %s < request.json\n", program);
}

int runhelp_text(const struct tool *tool, const char *program, struct buf *out)
{
	runhelp_usage(tool, program, out);
	buf_putc(out, '\n');
	markdown_line(out, tool->description);
	buf_putc(out, '\n');
	put_inputs(out, tool);
	put_ours(out, tool);
	put_rules(out, tool);
	put_examples(out, tool, program);
	return out->failed;
}
