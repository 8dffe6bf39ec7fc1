#include "core/tools/inputtext.h"

#include "core/tools/jsontext.h"
#include "core/tools/markdown.h"

static void put_type(struct buf *out, const struct input *input, int in_cell)
{
	if (input->type == INPUT_ENUM) {
		for (size_t i = 0; i < input->value_count; i++) {
			buf_puts(out, i == 0 ? "" : i + 1 == input->value_count ? " or " : ", ");
			markdown_code(out, input->values[i], in_cell);
		}
	} else {
		buf_puts(out, input_type_name(input->type));
	}
	buf_puts(out, input->sensitive ? ", sensitive" : "");
}

static void put_default(struct buf *out, const struct input *input, int in_cell)
{
	if (input->sensitive) {
		buf_puts(out, "has a default");
		return;
	}
	auto_buf struct buf text = BUF_INIT(out->max);
	if (jsontext_append(&text, input->default_value, JSONTEXT_COMPACT) < 0)
		out->failed = text.failed;
	buf_puts(out, "default ");
	markdown_code(out, buf_str(&text), in_cell);
}

void inputtext_table(struct buf *out, const struct tool *tool)
{
	buf_puts(out, "| Name | Type | Required | Description |\n|---|---|---|---|\n");
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		buf_puts(out, "| ");
		markdown_code(out, input->name, 1);
		buf_puts(out, " | ");
		put_type(out, input, 1);
		buf_puts(out, " | ");
		if (input->default_value) {
			buf_puts(out, "no, ");
			put_default(out, input, 1);
		} else {
			buf_puts(out, input->optional ? "no" : "yes");
		}
		buf_puts(out, " | ");
		markdown_cell(out, input->description ? input->description : "");
		buf_puts(out, " |\n");
	}
}

void inputtext_list(struct buf *out, const struct tool *tool, const char *prefix)
{
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *input = &tool->inputs[i];
		buf_puts(out, prefix);
		markdown_code(out, input->name, 0);
		buf_puts(out, " (");
		put_type(out, input, 0);
		buf_puts(out, ", ");
		if (input->default_value)
			put_default(out, input, 0);
		else
			buf_puts(out, input->optional ? "optional" : "required");
		buf_puts(out, ")");
		if (input->description && *input->description) {
			buf_puts(out, ": ");
			markdown_line(out, input->description);
		}
		buf_putc(out, '\n');
	}
}

bool inputtext_has_sensitive(const struct tool *tool)
{
	for (size_t i = 0; i < tool->input_count; i++)
		if (tool->inputs[i].sensitive)
			return true;
	return false;
}
