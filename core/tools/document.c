#include "core/tools/document.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BOM "\xef\xbb\xbf"
#define MARK "run"
#define END_WHOLE "end"
#define END_CUT "cut"

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

static int fail_begin(char byte, struct fail *why)
{
	char shown[8];
	return fail_set(why, -EINVAL,
		"a request is one JSON object and begins with '{', not with %s", show(byte, shown));
}

/* ---- one JSON object */

static int add_outside(struct document *document, char byte, struct fail *why)
{
	if (document->bom < 3 && byte == BOM[document->bom]) {
		document->bom++;
		return 0;
	}
	if ((document->bom == 0 || document->bom == 3) && is_blank(byte)) {
		document->bom = 3;
		return 0;
	}
	if (byte != '{')
		return fail_begin(byte, why);
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

static int add_json(struct document *document, char byte, struct fail *why)
{
	if (byte == '\0')
		return fail_set(why, -EINVAL, "a NUL byte is no part of JSON");
	if (document->state == DOCUMENT_EMPTY)
		return add_outside(document, byte, why);
	if (document->in_string)
		add_in_string(document, byte);
	else
		add_inside(document, byte);
	return 0;
}

/* ---- the words of `run` */

static void begin_part(struct document *document, enum document_part part, size_t at)
{
	document->part = part;
	document->part_at = at;
}

/* at: of the byte in document->bytes, as in all that follow. */
static int add_mark(struct document *document, char byte, size_t at, struct fail *why)
{
	if (byte != MARK[at - document->part_at]) {
		document->kind = DOCUMENT_JSON;
		return fail_begin(MARK[0], why);
	}
	if (byte == '\0')
		begin_part(document, DOCUMENT_COUNT, at + 1);
	return 0;
}

static int add_count(struct document *document, char byte, size_t at, struct fail *why)
{
	if (byte >= '0' && byte <= '9' && !document->has_text) {
		document->word_count = document->word_count * 10 + (size_t)(byte - '0');
		if (document->word_count <= DOCUMENT_WORDS_MAX)
			return 0;
		return fail_set(why, -EINVAL,
			"more than %d words: give the request as JSON on standard input",
			DOCUMENT_WORDS_MAX);
	}
	if (at == document->part_at || (byte != '\0' && (byte != '+' || document->has_text)))
		return fail_set(why, -EINVAL,
			"the number of words is no number: write JSON, or call by the tool's `run`");
	if (byte == '+') {
		document->has_text = true;
		return 0;
	}
	begin_part(document, DOCUMENT_WORDS, at + 1);
	document->words_at = at + 1;
	document->words_to_come = document->word_count + 1;
	return 0;
}

static void add_word(struct document *document, char byte, size_t at)
{
	if (byte != '\0' || --document->words_to_come > 0)
		return;
	if (!document->has_text) {
		document->state = DOCUMENT_COMPLETE;
		return;
	}
	begin_part(document, DOCUMENT_TEXT, at + 1);
	document->text_at = at + 1;
}

/* Whether the bytes from `at` to the last one, a NUL, are this string. */
static bool is_tail(const struct document *document, size_t at, const char *text)
{
	return strcmp(document->bytes.data + at, text) == 0;
}

/* What follows a NUL in the text says that it was the last: a binary file has more of them. */
static int add_end(struct document *document, char byte, size_t at, struct fail *why)
{
	size_t len = at - document->part_at;
	bool fits = byte == '\0' ? is_tail(document, document->part_at, END_WHOLE) ||
					   is_tail(document, document->part_at, END_CUT)
				 : len < strlen(END_WHOLE);
	if (!fits)
		return fail_set(
			why, -EINVAL, "standard input holds a NUL byte, which is no part of JSON");
	if (byte == '\0')
		document->state = DOCUMENT_COMPLETE;
	return 0;
}

static int add_run(struct document *document, char byte, size_t at, struct fail *why)
{
	document->state = DOCUMENT_OPEN;
	switch (document->part) {
	case DOCUMENT_MARK:
		return add_mark(document, byte, at, why);
	case DOCUMENT_COUNT:
		return add_count(document, byte, at, why);
	case DOCUMENT_WORDS:
		add_word(document, byte, at);
		return 0;
	case DOCUMENT_TEXT:
		if (byte == '\0')
			begin_part(document, DOCUMENT_END, at + 1);
		return 0;
	case DOCUMENT_END:
		return add_end(document, byte, at, why);
	}
	return 0;
}

struct document_run document_get_run(const struct document *document)
{
	assert(document->kind == DOCUMENT_RUN && document->state == DOCUMENT_COMPLETE);
	const char *program = document->bytes.data + document->words_at;
	struct document_run run = { .program = program,
		.words = program + strlen(program) + 1,
		.word_count = document->word_count };
	if (document->has_text) {
		run.text = document->bytes.data + document->text_at;
		run.text_len = document->part_at - 1 - document->text_at;
		run.text_is_cut = is_tail(document, document->part_at, END_CUT);
	}
	return run;
}

/* ---- either */

static int add_after(const struct document *document, char byte, struct fail *why)
{
	char shown[8];
	if (document->kind == DOCUMENT_RUN)
		return fail_set(why, -EINVAL, "%s follows the words of `run`", show(byte, shown));
	if (byte == '\0')
		return fail_set(why, -EINVAL, "a NUL byte is no part of JSON");
	if (is_blank(byte))
		return 0;
	return fail_set(why, -EINVAL,
		"%s follows the JSON object: write one object for each open of the call file",
		show(byte, shown));
}

static int add_byte(struct document *document, size_t at, struct fail *why)
{
	char byte = document->bytes.data[at];
	if (at == 0 && byte == MARK[0])
		document->kind = DOCUMENT_RUN;
	if (document->state == DOCUMENT_COMPLETE)
		return add_after(document, byte, why);
	if (document->kind == DOCUMENT_RUN)
		return add_run(document, byte, at, why);
	return add_json(document, byte, why);
}

int document_add(struct document *document, const char *bytes, size_t len, struct fail *why)
{
	size_t at = document->bytes.len;
	int result = buf_append(&document->bytes, bytes, len);
	if (result == -EFBIG && document->bytes.len == 0 && len > 0 && bytes[0] == MARK[0])
		document->kind = DOCUMENT_RUN;
	if (result == -EFBIG)
		return fail_set(why, result, "the request is larger than the limit of %zu bytes",
			document->bytes.max);
	if (result < 0)
		return fail_set(why, result, "no memory for the request");
	for (; at < document->bytes.len && result == 0; at++)
		result = add_byte(document, at, why);
	return result;
}
