#include "core/cmd/mcpcontent.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/tools/jsontext.h"
#include "core/tools/xjson.h"

#define BLOCK_TEXT_MAX ((size_t)256 * 1024 * 1024)

static bool has_strings(const json_t *object, const char *first, const char *second)
{
	return json_is_string(json_object_get(object, first)) &&
	       (!second || json_is_string(json_object_get(object, second)));
}

static bool is_resource(const json_t *resource)
{
	return has_strings(resource, "uri", NULL) &&
	       (has_strings(resource, "text", NULL) || has_strings(resource, "blob", NULL));
}

/* Whether clients of that revision know such a block. */
static bool is_known(const struct mcpversion *version, const json_t *block)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	if (!type)
		return false;
	if (strcmp(type, "text") == 0)
		return has_strings(block, "text", NULL);
	if (strcmp(type, "image") == 0 || strcmp(type, "audio") == 0)
		return has_strings(block, "data", "mimeType");
	if (strcmp(type, "resource_link") == 0)
		return version->has_structured && has_strings(block, "uri", "name");
	return strcmp(type, "resource") == 0 && is_resource(json_object_get(block, "resource"));
}

static json_t *as_text(const json_t *block)
{
	auto_buf struct buf text = BUF_INIT(BLOCK_TEXT_MAX);
	jsontext_append(&text, block, JSONTEXT_COMPACT);
	json_t *shown = xjson_object();
	xjson_set(shown, "type", xjson_string("text"));
	xjson_set(shown, "text", xjson_string(buf_str(&text)));
	return shown;
}

static json_t *convert(const struct mcpversion *version, const json_t *blocks)
{
	json_t *content = xjson_array();
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		json_t *block = json_array_get(blocks, i);
		xjson_append(
			content, is_known(version, block) ? json_incref(block) : as_text(block));
	}
	return content;
}

/* The only block's text as an object; NULL where it is none: a new reference. */
static json_t *structure_of(const json_t *blocks)
{
	const json_t *text = json_object_get(json_array_get(blocks, 0), "text");
	if (json_array_size(blocks) != 1 || !json_is_string(text))
		return NULL;
	const char *at = json_string_value(text);
	if (at[strspn(at, " \t\r\n")] != '{')
		return NULL;
	return json_loadb(at, json_string_length(text), JSON_ALLOW_NUL, NULL);
}

static json_t *find_structure(const struct mcpversion *version, const json_t *value, bool is_error)
{
	json_t *own = json_object_get(value, "structuredContent");
	if (own && (version->is_stateless || json_is_object(own)))
		return json_incref(own);
	return is_error ? NULL : structure_of(json_object_get(value, "content"));
}

json_t *mcpcontent_result(const struct mcpversion *version, const struct result *result)
{
	auto_json json_t *value = json_loadb(result->json, result->json_len, JSON_ALLOW_NUL, NULL);
	json_t *shown = xjson_object();
	xjson_set(shown, "content", convert(version, json_object_get(value, "content")));
	json_t *structure =
		version->has_structured ? find_structure(version, value, result->is_error) : NULL;
	if (structure)
		xjson_set(shown, "structuredContent", structure);
	json_t *meta = json_object_get(value, "_meta");
	if (json_is_object(meta))
		xjson_set(shown, "_meta", json_copy(meta));
	xjson_set(shown, "isError", json_boolean(result->is_error));
	return mcpversion_complete(version, shown);
}
