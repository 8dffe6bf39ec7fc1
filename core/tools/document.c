#include "core/tools/document.h"

#include <errno.h>
#include <stdio.h>

#define BOM "\xef\xbb\xbf"

void document_init(struct document *document, size_t size_max)
{
	*document = (struct document){ .bytes = BUF_INIT(size_max), .state = DOCUMENT_EMPTY };
}

void document_release(struct document *document)
{
	buf_release(&document->bytes);
}

void document_reset(struct document *document)
{
	size_t size_max = document->bytes.max;
	document_release(document);
	document_init(document, size_max);
}

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

bool document_is_blank(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_blank(bytes[i]))
			return false;
	return true;
}

/* A byte as a message shows it. */
static const char *show(char byte, char shown[8])
{
	unsigned char value = (unsigned char)byte;
	if (value >= 0x20 && value < 0x7f)
		snprintf(shown, 8, "'%c'", byte);
	else
		snprintf(shown, 8, "0x%02x", value);
	return shown;
}

static int add_outside(struct document *document, char byte, struct fail *why)
{
	char shown[8];
	if (document->state == DOCUMENT_COMPLETE) {
		if (is_blank(byte))
			return 0;
		return fail_set(why, -EINVAL,
			"%s follows the JSON object: write one object for each open of the call file",
			show(byte, shown));
	}
	if (document->bom < 3 && byte == BOM[document->bom]) {
		document->bom++;
		return 0;
	}
	if ((document->bom == 0 || document->bom == 3) && is_blank(byte)) {
		document->bom = 3;
		return 0;
	}
	if (byte != '{')
		return fail_set(why, -EINVAL,
			"a request is one JSON object and begins with '{', not with %s",
			show(byte, shown));
	document->state = DOCUMENT_OPEN;
	document->depth = 1;
	return 0;
}

static void add_in_string(struct document *document, char byte)
{
	if (document->escaped)
		document->escaped = false;
	else if (byte == '\\')
		document->escaped = true;
	else if (byte == '"')
		document->in_string = false;
}

static void add_inside(struct document *document, char byte)
{
	if (byte == '"')
		document->in_string = true;
	else if (byte == '{' || byte == '[')
		document->depth++;
	else if ((byte == '}' || byte == ']') && --document->depth == 0)
		document->state = DOCUMENT_COMPLETE;
}

static int add_byte(struct document *document, char byte, struct fail *why)
{
	if (byte == '\0')
		return fail_set(why, -EINVAL, "a NUL byte is no part of JSON");
	if (document->state != DOCUMENT_OPEN)
		return add_outside(document, byte, why);
	if (document->in_string)
		add_in_string(document, byte);
	else
		add_inside(document, byte);
	return 0;
}

int document_add(struct document *document, const char *bytes, size_t len, struct fail *why)
{
	int result = buf_append(&document->bytes, bytes, len);
	if (result == -EFBIG)
		return fail_set(why, result, "the request is larger than the limit of %zu bytes",
			document->bytes.max);
	if (result < 0)
		return fail_set(why, result, "no memory for the request");
	for (size_t i = 0; i < len && result == 0; i++)
		result = add_byte(document, bytes[i], why);
	return result;
}
