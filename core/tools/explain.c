#include "core/tools/explain.h"

#include <string.h>

#include "core/base/auto.h"
#include "core/base/utf8.h"
#include "core/tools/jsontext.h"
#include "core/tools/suggest.h"
#include "core/tools/xjson.h"

#define SHOWN_MAX 60 /* bytes of a value, a name or a description in a line */
#define DESCRIPTION_MAX 120
#define ALLOWED_MAX 20 /* values of an enum in a line */
#define ALLOWED_BYTES 600

void explain_quoted(struct buf *out, const char *text, size_t max)
{
	auto_buf struct buf part = BUF_INIT(max + 4);
	size_t len = strnlen(text, max + 1);
	buf_append(&part, text, len > max ? max : len);
	if (len > max) {
		part.data[part.len] = '\0';
		utf8_trim_partial(part.data);
	}
	auto_json json_t *string = xjson_string(buf_str(&part));
	jsontext_append(out, string, JSONTEXT_COMPACT);
	if (len > max)
		buf_puts(out, "...");
}

const char *explain_kind(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

static void put_allowed(struct buf *out, const struct input *input)
{
	buf_puts(out, "one of ");
	size_t begin = out->len, i = 0;
	for (; i < input->value_count && i < ALLOWED_MAX && out->len - begin < ALLOWED_BYTES; i++) {
		buf_puts(out, i > 0 ? ", " : "");
		explain_quoted(out, input->values[i], SHOWN_MAX);
	}
	if (i < input->value_count)
		buf_printf(out, ", ... (%zu in all)", input->value_count);
}

void explain_expected(struct buf *out, const struct input *input)
{
	switch (input->type) {
	case INPUT_STRING:
		buf_puts(out, "a string");
		break;
	case INPUT_NUMBER:
		buf_puts(out, "a number");
		break;
	case INPUT_BOOLEAN:
		buf_puts(out, "true or false");
		break;
	case INPUT_ENUM:
		put_allowed(out, input);
		break;
	}
}

static void put_given(struct buf *out, const struct input *input, const json_t *value)
{
	if (input->sensitive || json_is_object(value) || json_is_array(value)) {
		buf_puts(out, explain_kind(value));
	} else if (json_is_string(value)) {
		buf_puts(out, "the string ");
		explain_quoted(out, json_string_value(value), SHOWN_MAX);
	} else {
		jsontext_append(out, value, JSONTEXT_COMPACT);
	}
}

static void put_closest_allowed(struct buf *out, const struct input *input, const json_t *value)
{
	if (input->sensitive || input->type != INPUT_ENUM || !json_is_string(value))
		return;
	struct suggest suggest;
	suggest_begin(&suggest, json_string_value(value));
	for (size_t i = 0; i < input->value_count; i++)
		suggest_offer(&suggest, input->values[i]);
	if (!suggest.best)
		return;
	buf_puts(out, "; did you mean ");
	explain_quoted(out, suggest.best, SHOWN_MAX);
	buf_putc(out, '?');
}

/* The input's name as it is; TOOL.md may hold names with characters that would break the line. */
static void put_name(struct buf *out, const struct input *input)
{
	buf_puts(out, "  ");
	if (input->name[strspn(input->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					    "0123456789_-.")])
		explain_quoted(out, input->name, SHOWN_MAX);
	else
		buf_printf(out, "%.64s", input->name);
	buf_puts(out, ": ");
}

void explain_mismatch(struct buf *out, const struct input *input, const json_t *value)
{
	put_name(out, input);
	buf_puts(out, "expected ");
	explain_expected(out, input);
	buf_puts(out, ", got ");
	put_given(out, input, value);
	if (input->type == INPUT_STRING)
		buf_puts(out, "; give it as JSON in a string");
	put_closest_allowed(out, input, value);
	buf_putc(out, '\n');
}

/* The description on one line: whatever begins a new line becomes a blank. */
static void put_description(struct buf *out, const char *description)
{
	size_t len = strlen(description);
	char line[DESCRIPTION_MAX + 1];
	size_t shown = len > DESCRIPTION_MAX ? DESCRIPTION_MAX : len;
	for (size_t i = 0; i < shown; i++)
		line[i] = (unsigned char)description[i] < ' ' ? ' ' : description[i];
	line[shown] = '\0';
	if (shown < len)
		utf8_trim_partial(line);
	buf_printf(out, ": %s%s", line, shown < len ? "..." : "");
}

void explain_missing(struct buf *out, const struct input *input, const char *meant)
{
	put_name(out, input);
	buf_puts(out, "missing, expected ");
	explain_expected(out, input);
	if (meant) {
		buf_puts(out, "; did you mean it by ");
		explain_quoted(out, meant, SHOWN_MAX);
		buf_putc(out, '?');
	} else if (input->description && *input->description) {
		put_description(out, input->description);
	}
	buf_putc(out, '\n');
}

void explain_unknown(struct buf *out, const char *name, const char *closest)
{
	buf_puts(out, "unknown parameter ");
	explain_quoted(out, name, SHOWN_MAX);
	buf_puts(out, " is passed on as it is");
	if (closest) {
		buf_puts(out, "; did you mean ");
		explain_quoted(out, closest, SHOWN_MAX);
		buf_putc(out, '?');
	}
	buf_putc(out, '\n');
}
