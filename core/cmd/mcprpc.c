#include "core/cmd/mcprpc.h"

#include <errno.h>
#include <string.h>

#include "core/cmd/mcpskim.h"
#include "core/tools/jsonfault.h"
#include "core/tools/xjson.h"

json_t *mcprpc_parse(const char *line, size_t len, json_t **id, struct fail *why)
{
	json_error_t error;
	/* NUL in a string is JSON: params.h refuses it where it matters, with a better sentence. */
	json_t *json = json_loadb(
		line, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	*id = NULL;
	if (json)
		return json;
	jsonfault_set(line, len, &error, why);
	*id = mcpskim_id(line, len);
	return NULL;
}

static void set_wrong(struct mcprpc_message *message, enum mcprpc_code code)
{
	message->kind = MCPRPC_WRONG;
	message->code = code;
}

/* Reads the id; a notification has none. */
static int read_id(json_t *json, struct mcprpc_message *message, struct fail *why)
{
	json_t *id = json_object_get(json, "id");
	if (!id) {
		message->kind = MCPRPC_NOTIFICATION;
		return 0;
	}
	if (!json_is_string(id) && !json_is_integer(id))
		return fail_set(why, -EINVAL, "id must be a string or an integer");
	message->id = id;
	return 0;
}

void mcprpc_read(json_t *json, struct mcprpc_message *message, struct fail *why)
{
	*message = (struct mcprpc_message){ .kind = MCPRPC_REQUEST };
	const char *rpc = json_string_value(json_object_get(json, "jsonrpc"));
	json_t *method = json_object_get(json, "method");
	if (!json_is_object(json)) {
		fail_set(why, -EINVAL, "a message must be one JSON object");
	} else if (read_id(json, message, why) == 0) {
		if (!rpc || strcmp(rpc, "2.0") != 0)
			fail_set(why, -EINVAL, "jsonrpc must be \"2.0\"");
		else if (!method &&
			 (json_object_get(json, "result") || json_object_get(json, "error")))
			message->kind = MCPRPC_RESPONSE;
		else if (!json_is_string(method))
			fail_set(why, -EINVAL, "method must be a string");
	}
	if (why->code) {
		set_wrong(message, MCPRPC_INVALID_REQUEST);
		return;
	}
	message->method = json_string_value(method);
	message->params = json_object_get(json, "params");
	if (message->params && !json_is_object(message->params)) {
		fail_set(why, -EINVAL, "params must be an object");
		set_wrong(message, MCPRPC_INVALID_PARAMS);
	}
}

static json_t *make(json_t *id)
{
	json_t *message = xjson_object();
	xjson_set(message, "jsonrpc", xjson_string("2.0"));
	if (id)
		xjson_set(message, "id", json_incref(id));
	return message;
}

json_t *mcprpc_result(json_t *id, json_t *result)
{
	json_t *message = make(id);
	xjson_set(message, "result", result);
	return message;
}

json_t *mcprpc_error(json_t *id, int code, const char *text, json_t *data)
{
	json_t *message = make(id), *error = xjson_object();
	xjson_set(error, "code", json_integer(code));
	xjson_set(error, "message", xjson_string(text));
	if (data)
		xjson_set(error, "data", data);
	xjson_set(message, "error", error);
	return message;
}

json_t *mcprpc_notification(const char *method, json_t *params)
{
	json_t *message = make(NULL);
	xjson_set(message, "method", xjson_string(method));
	if (params)
		xjson_set(message, "params", params);
	return message;
}
