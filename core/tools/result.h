/*
 * A ToolResult (R38): what a call leaves. It is made whole before anybody sees it; docs/calls.md
 * has the table of what becomes of values that are no ToolResult (A17, A18).
 */
#ifndef PEGFS_TOOLS_RESULT_H
#define PEGFS_TOOLS_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct result {
	char *json; /* owned; {"content":[...],"isError":true?} on one line, with its newline */
	size_t json_len;
	char *text; /* owned; the text blocks; others as a line that says what they are */
	size_t text_len;
	bool is_error;
};

#define RESULT_INIT                                                                                \
	{                                                                                          \
		.json = NULL, .json_len = 0, .text = NULL, .text_len = 0, .is_error = false        \
	}

/* From what execute returned (any JSON value, borrowed; NULL: undefined). Always makes a result. */
void result_from_value(struct result *result, const json_t *value);

/* An error result with one text block. Bytes that are no UTF-8 are replaced. */
void result_from_error(struct result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void result_release(struct result *result);

#endif
