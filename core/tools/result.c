/*
 * What execute returned -> what the caller gets. Nothing is lost: what is not understood is shown.
 *
 *   returned                            error  result.json                   result.txt
 *   {content:[...]} as R38 says         no     unchanged                     the texts
 *   isError: true                       yes    unchanged                     the texts; where they are
 *                                                                            empty, a line that says so
 *   isError: null                       no     unchanged                     the texts
 *   isError: anything else              yes    isError: true, a block before the others that says
 *                                              what it was                   that, and the texts
 *   content: []                         no     unchanged                     empty
 *   a block of another type (A18)       no     unchanged                     a line in brackets
 *   a text block without a text, a      yes    isError: true, a block before the others that says
 *   block that is no object or has             so; the block itself becomes a text block with its
 *   no type                                    JSON in it                    all of that
 *   further keys (details, ...)         no     unchanged                     -
 *   undefined                           yes    one block that says so        the same
 *   a string, a number, a boolean,      yes    one block that says so, with the value as JSON
 *   null, an array, an object                  behind it                     the same
 *   without a content array (A17)
 */
#include "core/tools/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/xalloc.h"
#include "core/tools/blocktext.h"
#include "core/tools/explain.h"
#include "core/tools/jsontext.h"
#include "core/tools/xjson.h"

/* A host's message is limited before (executor_config.result_max); JSON in JSON is a few times that. */
#define RESULT_SIZE_MAX (1024UL * 1024 * 1024)

#define SHAPE "{ content: [{ type: 'text', text: '...' }] }"
#define NO_MEMORY "the tool's result could not be kept: no memory for it; let the tool return less"

static json_t *text_block(const char *text, size_t len)
{
	json_t *string = json_stringn(text, len);
	return string ? json_pack("{s:s, s:o}", "type", "text", "text", string) : NULL;
}

/* The block's JSON as a text block. */
static json_t *shown_block(const json_t *block)
{
	auto_buf struct buf text = BUF_INIT(RESULT_SIZE_MAX);
	if (jsontext_append(&text, block, JSONTEXT_COMPACT) < 0)
		return NULL;
	return text_block(buf_str(&text), text.len);
}

static bool is_whole_block(const json_t *block)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	return type &&
	       (strcmp(type, "text") != 0 || json_is_string(json_object_get(block, "text")));
}

static size_t count_broken(const json_t *content)
{
	size_t broken = 0;
	for (size_t i = 0; i < json_array_size(content); i++)
		broken += !is_whole_block(json_array_get(content, i));
	return broken;
}

/* Whether isError is what R38 allows; null says no more than its absence. */
static bool is_whole_flag(const json_t *flag)
{
	return !flag || json_is_null(flag) || json_is_boolean(flag);
}

/* Appends the sentences that say what is wrong with a ToolResult; nothing where nothing is. */
static void complain(struct buf *out, const json_t *value)
{
	const json_t *flag = json_object_get(value, "isError");
	size_t broken = count_broken(json_object_get(value, "content"));
	if (broken > 0)
		buf_printf(out,
			"the tool returned %zu content block%s of no known shape, shown as JSON; a "
			"block is { type: 'text', text: '...' }",
			broken, broken == 1 ? "" : "s");
	if (is_whole_flag(flag))
		return;
	if (out->len > 0)
		buf_putc(out, '\n');
	buf_puts(out,
		"the tool returned an isError that is neither true nor false, which counts as "
		"an error: ");
	jsontext_append(out, flag, JSONTEXT_COMPACT);
}

/* The blocks behind a first one with the complaint; broken ones as text. NULL: no memory. */
static json_t *mended_content(const json_t *content, const struct buf *complaint)
{
	auto_json json_t *mended = json_array();
	if (!mended ||
		json_array_append_new(mended, text_block(complaint->data, complaint->len)) < 0)
		return NULL;
	for (size_t i = 0; i < json_array_size(content); i++) {
		json_t *block = json_array_get(content, i);
		json_t *kept = is_whole_block(block) ? json_incref(block) : shown_block(block);
		if (json_array_append_new(mended, kept) < 0)
			return NULL;
	}
	return take_ptr(&mended);
}

/* A new reference to value where it is whole, else to a mended copy that is an error. */
static json_t *mend(const json_t *value)
{
	auto_buf struct buf complaint = BUF_INIT(RESULT_SIZE_MAX);
	complain(&complaint, value);
	if (complaint.failed)
		return NULL;
	auto_json json_t *mended = json_copy(jsontext_unconst(value));
	if (!mended || complaint.len == 0)
		return take_ptr(&mended);
	json_t *content = mended_content(json_object_get(value, "content"), &complaint);
	if (json_object_set_new(mended, "content", content) < 0 ||
		json_object_set_new(mended, "isError", json_true()) < 0)
		return NULL;
	return take_ptr(&mended);
}

/* The text of all blocks, as result.h says. */
static void put_text(struct buf *out, const json_t *content, bool is_error)
{
	for (size_t i = 0; i < json_array_size(content); i++) {
		if (i > 0)
			buf_putc(out, '\n');
		blocktext_append(out, json_array_get(content, i));
	}
	if (out->len == 0 && is_error)
		buf_puts(out, "[the tool reported an error without a text; see result.json]");
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_putc(out, '\n');
}

/* Fills result from a whole ToolResult. Returns 0 or a negative errno, and then leaves it alone. */
static int fill(struct result *result, const json_t *whole)
{
	auto_buf struct buf json = BUF_INIT(RESULT_SIZE_MAX);
	auto_buf struct buf text = BUF_INIT(RESULT_SIZE_MAX);
	bool is_error = json_is_true(json_object_get(whole, "isError"));
	jsontext_append(&json, whole, JSONTEXT_COMPACT);
	buf_putc(&json, '\n');
	put_text(&text, json_object_get(whole, "content"), is_error);
	buf_reserve(&text, 0);
	if (json.failed || text.failed)
		return json.failed ? json.failed : text.failed;
	result->json_len = json.len;
	result->json = buf_take(&json);
	result->text_len = text.len;
	result->text = buf_take(&text);
	result->is_error = is_error;
	return 0;
}

/* The last resort, without jansson and without anything that can be large. */
static void fill_no_memory(struct result *result)
{
	result->json = xstrdup("{\"content\":[{\"type\":\"text\",\"text\":\"" NO_MEMORY
			       "\"}],\"isError\":true}\n");
	result->json_len = strlen(result->json);
	result->text = xstrdup(NO_MEMORY "\n");
	result->text_len = strlen(result->text);
	result->is_error = true;
}

static void fill_error(struct result *result, const char *text, size_t len)
{
	auto_json json_t *block = text_block(text, len);
	auto_json json_t *whole =
		block ? json_pack("{s:[O], s:b}", "content", block, "isError", 1) : NULL;
	if (!whole || fill(result, whole) < 0)
		fill_no_memory(result);
}

/* A17: never success, and the value is not lost. */
static void fill_foreign(struct result *result, const json_t *value)
{
	auto_buf struct buf text = BUF_INIT(RESULT_SIZE_MAX);
	if (!value) {
		buf_puts(
			&text, "the tool returned nothing (undefined); execute must return " SHAPE);
	} else {
		buf_printf(&text,
			"the tool returned %s%s; execute must return " SHAPE "; it was:\n",
			explain_kind(value),
			json_is_object(value) ? " without a content array" : "");
		jsontext_append(&text, value, JSONTEXT_COMPACT);
	}
	if (text.failed)
		fill_no_memory(result);
	else
		fill_error(result, buf_str(&text), text.len);
}

void result_from_value(struct result *result, const json_t *value)
{
	*result = (struct result)RESULT_INIT;
	if (!json_is_array(json_object_get(value, "content"))) {
		fill_foreign(result, value);
		return;
	}
	auto_json json_t *whole = mend(value);
	if (!whole || fill(result, whole) < 0)
		fill_no_memory(result);
}

void result_from_error(struct result *result, const char *format, ...)
{
	*result = (struct result)RESULT_INIT;
	auto_buf struct buf text = BUF_INIT(RESULT_SIZE_MAX);
	auto_buf struct buf clean = BUF_INIT(RESULT_SIZE_MAX);
	va_list args;
	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	xjson_append_clean(&clean, buf_str(&text), text.len);
	if (text.failed || clean.failed)
		fill_no_memory(result);
	else
		fill_error(result, buf_str(&clean), clean.len);
}

void result_release(struct result *result)
{
	free(result->json);
	free(result->text);
	*result = (struct result)RESULT_INIT;
}
