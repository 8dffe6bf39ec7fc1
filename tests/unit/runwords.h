/* What `run` hands over, for tests of those that read it. */
#ifndef PEGFS_TESTS_UNIT_RUNWORDS_H
#define PEGFS_TESTS_UNIT_RUNWORDS_H

#include <jansson.h>
#include <string.h>

#include "core/base/buf.h"
#include "tests/unit/golden.h"

#define RUNWORDS_MAX (8 * 1024 * 1024)

/* words: an array of strings; text: standard input, or NULL; how: "end" or "cut". */
static inline struct buf runwords_render(
	const char *program, const json_t *words, const char *text, const char *how)
{
	struct buf out = BUF_INIT(RUNWORDS_MAX);
	buf_printf(&out, "run%c%zu%s%c%s%c", 0, json_array_size(words), text ? "+" : "", 0, program,
		0);
	for (size_t i = 0; i < json_array_size(words); i++) {
		const json_t *word = json_array_get(words, i);
		buf_append(&out, json_string_value(word), json_string_length(word) + 1);
	}
	if (text) {
		buf_append(&out, text, strlen(text) + 1);
		buf_append(&out, how, strlen(how) + 1);
	}
	return out;
}

#endif
