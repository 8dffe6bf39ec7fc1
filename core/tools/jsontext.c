#include "core/tools/jsontext.h"

#include <errno.h>

#include "core/tools/jsnumber.h"

struct writer {
	struct buf *out;
	int indent, depth;
};

static int on_bytes(const char *bytes, size_t len, void *out)
{
	return buf_append(out, bytes, len);
}

static void put_key(struct writer *writer, const char *key, size_t len)
{
	json_t *string = json_stringn(key, len);
	if (!string || json_dump_callback(string, on_bytes, writer->out, JSON_ENCODE_ANY) < 0)
		writer->out->failed = writer->out->failed ? writer->out->failed : -ENOMEM;
	json_decref(string);
	buf_puts(writer->out, writer->indent ? ": " : ":");
}

static void put_scalar(struct writer *writer, const json_t *value)
{
	if (json_is_real(value)) {
		char text[JSNUMBER_TEXT_MAX];
		jsnumber_render(json_real_value(value), text);
		buf_puts(writer->out, text);
	} else if (json_dump_callback(value, on_bytes, writer->out, JSON_ENCODE_ANY) < 0 &&
		   !writer->out->failed) {
		writer->out->failed = -ENOMEM;
	}
}

static void put_line(struct writer *writer)
{
	if (writer->indent)
		buf_printf(writer->out, "\n%*s", writer->indent * writer->depth, "");
}

static void put_value(struct writer *writer, const json_t *value);

static void put_array(struct writer *writer, const json_t *array)
{
	size_t count = json_array_size(array);
	buf_putc(writer->out, '[');
	writer->depth++;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_putc(writer->out, ',');
		put_line(writer);
		put_value(writer, json_array_get(array, i));
	}
	writer->depth--;
	if (count > 0)
		put_line(writer);
	buf_putc(writer->out, ']');
}

json_t *jsontext_unconst(const json_t *json)
{
	union {
		const json_t *in;
		json_t *out;
	} same = { .in = json };
	return same.out;
}

static void put_object(struct writer *writer, const json_t *object)
{
	json_t *same = jsontext_unconst(object);
	const char *separator = "";
	buf_putc(writer->out, '{');
	writer->depth++;
	for (void *at = json_object_iter(same); at; at = json_object_iter_next(same, at)) {
		buf_puts(writer->out, separator);
		separator = ",";
		put_line(writer);
		put_key(writer, json_object_iter_key(at), json_object_iter_key_len(at));
		put_value(writer, json_object_iter_value(at));
	}
	writer->depth--;
	if (*separator)
		put_line(writer);
	buf_putc(writer->out, '}');
}

static void put_value(struct writer *writer, const json_t *value)
{
	if (writer->out->failed)
		return;
	if (json_is_array(value))
		put_array(writer, value);
	else if (json_is_object(value))
		put_object(writer, value);
	else
		put_scalar(writer, value);
}

int jsontext_append(struct buf *out, const json_t *value, int indent)
{
	struct writer writer = { .out = out, .indent = indent, .depth = 0 };
	put_value(&writer, value);
	return out->failed;
}
