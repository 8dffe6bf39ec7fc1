/*
 * What is written to a call file, divided into writes in two ways, then read as JSON or as the words
 * of `run`, for a tool with every input type. The first byte says how it is divided.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/tools/answer.h"
#include "core/tools/arguments.h"
#include "core/tools/document.h"
#include "core/tools/params.h"
#include "tests/oracle/tooljson.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUEST_MAX 32768

static const char inputs[] =
	"{\"name\":\"t\",\"inputs\":["
	"{\"name\":\"text\"},"
	"{\"name\":\"max_count\",\"type\":\"number\",\"optional\":true,\"default\":3},"
	"{\"name\":\"flag\",\"type\":\"boolean\",\"optional\":true},"
	"{\"name\":\"mode\",\"type\":\"enum\",\"values\":[\"a\",\"b\"],\"optional\":true},"
	"{\"name\":\"api-token\",\"optional\":true,\"sensitive\":true}]}";

static struct tool *the_tool(void)
{
	static struct tool *tool;
	if (!tool) {
		json_t *json = json_loads(inputs, 0, NULL);
		tool = tooljson_read(json);
		json_decref(json);
	}
	return tool;
}

/* Adds the bytes in pieces of `step`; returns how many were taken before an error or the end. */
static size_t feed(
	struct document *document, const char *bytes, size_t len, size_t step, struct fail *why)
{
	size_t at = 0;
	while (at < len && document->state != DOCUMENT_COMPLETE) {
		size_t size = len - at < step ? len - at : step;
		if (document_add(document, bytes + at, size, why) < 0)
			return at;
		at += size;
	}
	return at;
}

/* An answer begins with a line that the script can read. */
static void check_head(const struct buf *out)
{
	int code, descriptor;
	size_t notes;
	if (sscanf(buf_str(out), "%d %d %zu\n", &code, &descriptor, &notes) != 3 || code < 0 ||
		code > 2 || descriptor < 1 || descriptor > 2)
		abort();
	const char *at = strchr(out->data, '\n') + 1;
	for (; notes > 0; notes--) {
		at = memchr(at, '\n', out->len - (size_t)(at - out->data));
		if (!at++)
			abort();
	}
}

static void answer(const struct arguments *arguments, const struct fail *why)
{
	struct buf out = BUF_INIT(ANSWER_MORE_MAX);
	int result = why->code ? answer_refused(the_tool(), arguments, why, &out)
			       : answer_help(the_tool(), arguments, &out);
	if (result < 0)
		abort();
	check_head(&out);
	buf_reset(&out);
	if (answer_result(arguments, false, "x\n", 2, "result.txt", &out) < 0)
		abort();
	check_head(&out);
	buf_release(&out);
}

static void read_run(const struct document *document)
{
	struct fail why = FAIL_INIT;
	struct arguments arguments;
	int result = arguments_read(&arguments, the_tool(), document, REQUEST_MAX, &why);
	if (result != why.code || (result < 0 && !*why.text))
		abort();
	if (result == 0 && !arguments.help) {
		json_t *request =
			params_parse(buf_str(&arguments.request), arguments.request.len, &why);
		struct document_run run = document_get_run(document);
		bool is_theirs =
			run.text ||
			memchr(run.words, '{',
				document->bytes.len - (size_t)(run.words - document->bytes.data));
		if (!request && !is_theirs)
			abort();
		json_decref(request);
	}
	answer(&arguments, &why);
	arguments_release(&arguments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *bytes = (const char *)data + 1;
	struct document whole, divided;
	struct fail why = FAIL_INIT, why_divided = FAIL_INIT;
	document_init(&whole, REQUEST_MAX);
	document_init(&divided, REQUEST_MAX);
	feed(&whole, bytes, size - 1, SIZE_MAX, &why);
	feed(&divided, bytes, size - 1, data[0] % 16 + 1U, &why_divided);
	/* What follows in the same write is refused, and nobody knows what follows in the next. */
	if (!why.code && (why_divided.code || divided.state != whole.state))
		abort();
	if (!why.code && whole.kind != divided.kind)
		abort();
	if (!why.code && whole.state == DOCUMENT_COMPLETE && whole.kind == DOCUMENT_RUN)
		read_run(&whole);
	document_release(&whole);
	document_release(&divided);
	return 0;
}
