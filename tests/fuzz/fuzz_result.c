/* What a tool returned, as JSON, through result_from_value: always one whole, writable result. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/tools/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_whole(const struct result *result)
{
	json_t *json = json_loadb(result->json, result->json_len, JSON_ALLOW_NUL, NULL);
	const json_t *content = json_object_get(json, "content");
	bool is_error = json_is_true(json_object_get(json, "isError"));
	if (!json_is_array(content) || is_error != result->is_error)
		abort();
	for (size_t i = 0; i < json_array_size(content); i++)
		if (!json_is_string(json_object_get(json_array_get(content, i), "type")))
			abort();
	if (result->json[result->json_len - 1] != '\n' ||
		memchr(result->json, '\n', result->json_len - 1))
		abort();
	if (result->text_len > 0 && result->text[result->text_len - 1] != '\n')
		abort();
	if (result->is_error && result->text_len == 0)
		abort();
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *value =
		json_loadb((const char *)data, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (!value)
		return 0;
	struct result result = RESULT_INIT;
	result_from_value(&result, value);
	check_whole(&result);
	result_release(&result);
	json_decref(value);
	return 0;
}
