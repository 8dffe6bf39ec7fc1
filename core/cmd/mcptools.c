#include "core/cmd/mcptools.h"

#include <errno.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/tools/xjson.h"

#define CURSOR_PREFIX "after:"
#define TTL_MS 1000 /* for which a list may be taken as it is, without being told of a change */

static const char *name_of(const json_t *tool)
{
	const char *name = json_string_value(json_object_get(tool, "name"));
	return name ? name : "";
}

/* The title is where each revision looks for it. */
static json_t *show(json_t *tool)
{
	json_t *shown = json_copy(tool), *title = json_object_get(tool, "title");
	json_t *given = json_object_get(tool, "annotations");
	json_t *annotations = json_is_object(given) ? json_copy(given) : xjson_object();
	if (json_is_string(title) && !json_object_get(annotations, "title"))
		xjson_set(annotations, "title", json_incref(title));
	xjson_set(shown, "annotations", annotations);
	return shown;
}

/* The first tool behind the cursor; they are in byte order of their names. */
static size_t find(const json_t *all, const char *after)
{
	size_t at = 0;
	while (after && at < json_array_size(all) &&
		strcmp(name_of(json_array_get(all, at)), after) <= 0)
		at++;
	return at;
}

static int read_cursor(const json_t *cursor, const char **after, struct fail *why)
{
	const char *text = json_string_value(cursor);
	*after = NULL;
	if (!cursor)
		return 0;
	if (!text || strncmp(text, CURSOR_PREFIX, strlen(CURSOR_PREFIX)) != 0)
		return fail_set(why, -EINVAL,
			"cursor is none that was given out; leave it out to begin with the first page");
	*after = text + strlen(CURSOR_PREFIX);
	return 0;
}

json_t *mcptools_page(const struct mcpversion *version, const json_t *all, const json_t *cursor,
	size_t page_size, struct fail *why)
{
	const char *after;
	if (read_cursor(cursor, &after, why) < 0)
		return NULL;
	size_t count = json_array_size(all), first = find(all, after);
	size_t end = count - first > page_size ? first + page_size : count;
	json_t *result = xjson_object(), *tools = xjson_array();
	for (size_t i = first; i < end; i++)
		xjson_append(tools, show(json_array_get(all, i)));
	xjson_set(result, "tools", tools);
	if (end < count) {
		auto_free char *next =
			xasprintf(CURSOR_PREFIX "%s", name_of(json_array_get(all, end - 1)));
		xjson_set(result, "nextCursor", xjson_string(next));
	}
	if (version->is_stateless) {
		xjson_set(result, "ttlMs", json_integer(TTL_MS));
		xjson_set(result, "cacheScope", xjson_string("private"));
	}
	return mcpversion_complete(version, result);
}
