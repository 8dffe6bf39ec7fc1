/* JSON-RPC 2.0 as the Model Context Protocol has it: lines are read into messages, and made. */
#ifndef PEGFS_CMD_MCPRPC_H
#define PEGFS_CMD_MCPRPC_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/fail.h"

enum mcprpc_code {
	MCPRPC_PARSE_ERROR = -32700,
	MCPRPC_INVALID_REQUEST = -32600,
	MCPRPC_NO_METHOD = -32601,
	MCPRPC_INVALID_PARAMS = -32602,
	MCPRPC_INTERNAL = -32603,
	MCPRPC_NO_VERSION = -32022, /* of 2026-07-28 */
};

enum mcprpc_kind {
	MCPRPC_REQUEST,
	MCPRPC_NOTIFICATION,
	MCPRPC_RESPONSE, /* to nothing that was asked */
	MCPRPC_WRONG,
};

struct mcprpc_message { /* all is borrowed from the JSON */
	enum mcprpc_kind kind;
	const char *method;
	json_t *id;            /* NULL: none that could be read */
	json_t *params;        /* an object, or NULL */
	enum mcprpc_code code; /* of what is wrong */
};

/*
 * One line. NULL and *why where it is no JSON; then *id is that of the request nevertheless, where
 * it could be found: a new reference.
 */
json_t *mcprpc_parse(const char *line, size_t len, json_t **id, struct fail *why);

/* What it is; *why where it is wrong. */
void mcprpc_read(json_t *json, struct mcprpc_message *message, struct fail *why);

/* New messages. id is borrowed (NULL: it is not known), what follows is taken; data may be NULL. */
json_t *mcprpc_result(json_t *id, json_t *result);
json_t *mcprpc_error(json_t *id, int code, const char *text, json_t *data);
json_t *mcprpc_notification(const char *method, json_t *params);

#endif
