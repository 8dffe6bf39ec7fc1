#include "core/tools/jsonfault.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/buf.h"

/* Where a byte of a request is, for people. */
struct place {
	size_t line, column; /* from 1; columns in characters */
};

static struct place place_of(const char *bytes, size_t offset)
{
	struct place place = { .line = 1, .column = 1 };
	for (size_t i = 0; i < offset; i++) {
		if (bytes[i] == '\n') {
			place.line++;
			place.column = 1;
		} else if ((bytes[i] & 0xc0) != 0x80) {
			place.column++;
		}
	}
	return place;
}

int jsonfault_at(const char *bytes, size_t offset, const char *what, struct fail *why)
{
	struct place place = place_of(bytes, offset);
	return fail_set(why, -EINVAL, "the request is no valid JSON at line %zu, column %zu: %s",
		place.line, place.column, what);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * jansson's message ends in "near '...'" with what stands there, which may be a secret: it is cut
 * off, and so are the digits of a bad escape.
 */
static void describe_syntax(const json_error_t *error, struct buf *out)
{
	if (begins(error->text, "invalid Unicode")) {
		buf_puts(out,
			"a \\u escape in a string is half of a surrogate pair or no character");
	} else if (begins(error->text, "unexpected newline")) {
		buf_puts(out,
			"a string goes on behind the end of its line; close its quote, or write a "
			"new line as \\n");
	} else {
		const char *near = strstr(error->text, " near ");
		buf_append(out, error->text,
			near ? (size_t)(near - error->text) : strlen(error->text));
		if (begins(error->text, "control character"))
			buf_puts(out, " in a string; write it as an escape, a tab as \\t");
	}
}

/* Names the key: jansson reports it as it was read, in quotes. */
static void describe_duplicate(const json_error_t *error, struct buf *out)
{
	const char *begin = strstr(error->text, " near '");
	const char *end = strrchr(error->text, '\'');
	buf_puts(out, "the key ");
	if (begin && end > begin + 7)
		buf_printf(out, "%.*s ", (int)(end - begin - 7), begin + 7);
	buf_puts(out, "is given twice in one object");
}

static void describe(const json_error_t *error, struct buf *out)
{
	switch (json_error_code(error)) {
	case json_error_premature_end_of_input:
		buf_puts(out, "it ends too early; a closing quote, brace or bracket is missing");
		break;
	case json_error_end_of_input_expected:
		buf_puts(
			out, "something follows the object; send one JSON object and nothing else");
		break;
	case json_error_invalid_utf8:
		buf_puts(out, "this is not UTF-8; save or send the text as UTF-8");
		break;
	case json_error_null_character:
	case json_error_null_byte_in_key:
		buf_puts(out, "\\u0000 cannot be part of a string; leave it out");
		break;
	case json_error_duplicate_key:
		describe_duplicate(error, out);
		break;
	case json_error_numeric_overflow:
		buf_puts(out,
			"the number is too large; if it is an identifier, give it as a string");
		break;
	default:
		describe_syntax(error, out);
	}
}

/* A hint for the usual slips, by the byte at which reading stopped. */
static const char *hint(const char *bytes, size_t len, const json_error_t *error)
{
	if (error->position <= 0 || (size_t)error->position > len ||
		json_error_code(error) != json_error_invalid_syntax)
		return "";
	switch (bytes[error->position - 1]) {
	case '\'':
		return "; JSON wants double quotes";
	case '}':
	case ']':
		return "; is there a comma too many before it?";
	default:
		return "";
	}
}

int jsonfault_set(const char *bytes, size_t len, const json_error_t *error, struct fail *why)
{
	if (json_error_code(error) == json_error_out_of_memory)
		return fail_set(why, -ENOMEM, "no memory for the request; send less");
	auto_buf struct buf what = BUF_INIT(512);
	describe(error, &what);
	buf_puts(&what, hint(bytes, len, error));
	size_t offset = error->position > 0 ? (size_t)error->position - 1 : 0;
	return jsonfault_at(bytes, offset < len ? offset : len, buf_str(&what), why);
}
