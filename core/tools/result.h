/*
 * A ToolResult (R38): what a call leaves. It is made whole before anybody sees it; the table at the
 * head of result.c says what becomes of each value, also of those that are no ToolResult (A17, A18).
 *
 * The text is the text blocks as the tool gave them, joined by a newline, with one more newline at
 * the end where that is missing and the text is not empty, so that `cat` shows it well. A block of
 * another type is a line that says what it is: "[image: image/png, 1234 bytes; see result.json]".
 * The JSON has the keys in the tool's order, also those that nobody knows.
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
