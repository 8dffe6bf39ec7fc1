#include "core/cmd/mcpversion.h"

#include <string.h>

#include "core/tools/xjson.h"

static const struct mcpversion versions[] = {
	{ "2026-07-28", .is_stateless = true, .id_is_optional = true, .has_structured = true },
	{ "2025-11-25", .id_is_optional = true, .has_structured = true },
	{ "2025-06-18", .has_structured = true },
	{ "2025-03-26", .has_batches = true },
};

#define COUNT (sizeof(versions) / sizeof(*versions))

const struct mcpversion *mcpversion_find(const char *name)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(versions[i].name, name) == 0)
			return &versions[i];
	return NULL;
}

const struct mcpversion *mcpversion_agree(const char *asked)
{
	const struct mcpversion *version = asked ? mcpversion_find(asked) : NULL;
	if (version && !version->is_stateless)
		return version;
	size_t i = 0;
	while (versions[i].is_stateless)
		i++;
	return &versions[i];
}

json_t *mcpversion_names(void)
{
	json_t *names = xjson_array();
	for (size_t i = 0; i < COUNT; i++)
		xjson_append(names, xjson_string(versions[i].name));
	return names;
}

json_t *mcpversion_server_info(void)
{
	json_t *info = xjson_object();
	xjson_set(info, "name", xjson_string("pegfs"));
	xjson_set(info, "version", xjson_string(PEGFS_VERSION));
	return info;
}

json_t *mcpversion_capabilities(void)
{
	json_t *capabilities = xjson_object(), *tools = xjson_object();
	xjson_set(tools, "listChanged", json_true());
	xjson_set(capabilities, "tools", tools);
	xjson_set(capabilities, "logging", xjson_object());
	return capabilities;
}

json_t *mcpversion_complete(const struct mcpversion *version, json_t *result)
{
	if (!version->is_stateless)
		return result;
	json_t *meta = json_object_get(result, "_meta");
	if (!json_is_object(meta)) {
		meta = xjson_object();
		xjson_set(result, "_meta", meta);
	}
	xjson_set(meta, "io.modelcontextprotocol/serverInfo", mcpversion_server_info());
	xjson_set(result, "resultType", xjson_string("complete"));
	return result;
}
