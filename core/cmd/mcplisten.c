#include "core/cmd/mcplisten.h"

#include <stdlib.h>

#include "core/base/xalloc.h"
#include "core/cmd/mcprpc.h"
#include "core/tools/xjson.h"

/* {"_meta":{".../subscriptionId":id}} */
static json_t *params_of(const struct mcplisten *one)
{
	json_t *params = xjson_object(), *meta = xjson_object();
	xjson_set(meta, "io.modelcontextprotocol/subscriptionId", json_incref(one->id));
	xjson_set(params, "_meta", meta);
	return params;
}

bool mcplisten_open(struct mcplisten **list, const struct mcpversion *version, json_t *id,
	const json_t *params, struct mcpstream *stream)
{
	size_t count = 0;
	for (const struct mcplisten *one = *list; one; one = one->next)
		count++;
	if (count >= MCPLISTEN_MAX)
		return false;
	const json_t *wanted = json_object_get(params, "notifications");
	struct mcplisten *one = xcalloc(1, sizeof(*one));
	*one = (struct mcplisten){ .next = *list,
		.version = version,
		.id = json_incref(id),
		.has_tools = json_is_true(json_object_get(wanted, "toolsListChanged")) };
	*list = one;
	json_t *told = params_of(one), *honoured = xjson_object();
	if (one->has_tools)
		xjson_set(honoured, "toolsListChanged", json_true());
	xjson_set(told, "notifications", honoured);
	mcpstream_send(
		stream, mcprpc_notification("notifications/subscriptions/acknowledged", told));
	return true;
}

static void take_out(struct mcplisten **slot)
{
	struct mcplisten *one = *slot;
	*slot = one->next;
	json_decref(one->id);
	free(one);
}

bool mcplisten_has(const struct mcplisten *list, const json_t *id)
{
	while (list && !json_equal(list->id, id))
		list = list->next;
	return list != NULL;
}

bool mcplisten_cancel(struct mcplisten **list, const json_t *id)
{
	while (*list && !json_equal((*list)->id, id))
		list = &(*list)->next;
	if (!*list)
		return false;
	take_out(list);
	return true;
}

void mcplisten_tell(const struct mcplisten *list, struct mcpstream *stream)
{
	for (; list; list = list->next)
		if (list->has_tools)
			mcpstream_send(
				stream, mcprpc_notification("notifications/tools/list_changed",
						params_of(list)));
}

void mcplisten_end(struct mcplisten **list, struct mcpstream *stream)
{
	while (*list) {
		json_t *result = mcpversion_complete((*list)->version, params_of(*list));
		mcpstream_send(stream, mcprpc_result((*list)->id, result));
		take_out(list);
	}
}

void mcplisten_free(struct mcplisten **list)
{
	while (*list)
		take_out(list);
}
