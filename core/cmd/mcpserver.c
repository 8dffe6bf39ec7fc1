#include "core/cmd/mcpserver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/cmd/mcpbatch.h"
#include "core/cmd/mcpcall.h"
#include "core/cmd/mcplevel.h"
#include "core/cmd/mcplisten.h"
#include "core/cmd/mcprpc.h"
#include "core/cmd/mcpstream.h"
#include "core/cmd/mcptools.h"
#include "core/tools/xjson.h"

#define END_MS 1000 /* for calls to end in, and for what is left to be read, before we go */
#define META "io.modelcontextprotocol/"

struct mcpserver {
	struct mcpserver_config config;
	struct mcpstream stream;
	const struct mcprunner_kind *kind;
	struct mcprunner *runner;         /* owned */
	const struct mcpversion *session; /* as `initialize` agreed; NULL: there was none */
	bool is_ready;                    /* the session's client may be told of changes */
	int level;                        /* of the session's messages */
	struct mcpcall *calls;            /* owned */
	struct mcplisten *listens;        /* owned */
	struct mcpbatch *batches;         /* owned */
	json_t *tools;                    /* owned; tools.json when it was looked at last */
	struct loop_timer end_timer;
	bool is_ending;
};

/* One request, as its method gets it. */
struct asked {
	const struct mcpversion *version;
	struct mcpbatch *batch; /* NULL: it came alone */
	json_t *id, *params;    /* borrowed; params may be NULL */
	int level;
};

/* ---- answers */

static void answer(struct mcpserver *server, const struct asked *asked, json_t *message)
{
	mcpbatch_answer(&server->batches, asked->batch, &server->stream, message);
}

static void answer_result(struct mcpserver *server, const struct asked *asked, json_t *result)
{
	answer(server, asked,
		mcprpc_result(asked->id, mcpversion_complete(asked->version, result)));
}

static void refuse(struct mcpserver *server, const struct asked *asked, int code, const char *text)
{
	answer(server, asked, mcprpc_error(asked->id, code, text, NULL));
}

/* ---- methods */

static void do_initialize(struct mcpserver *server, const struct asked *asked)
{
	const json_t *wanted = json_object_get(asked->params, "protocolVersion");
	if (!json_is_string(wanted)) {
		refuse(server, asked, MCPRPC_INVALID_PARAMS,
			"protocolVersion is missing: a string such as \"2025-11-25\"");
		return;
	}
	server->session = mcpversion_agree(json_string_value(wanted));
	server->is_ready = false;
	server->level = MCPLEVEL_INFO;
	json_t *result = xjson_object();
	xjson_set(result, "protocolVersion", xjson_string(server->session->name));
	xjson_set(result, "capabilities", mcpversion_capabilities());
	xjson_set(result, "serverInfo", mcpversion_server_info());
	answer(server, asked, mcprpc_result(asked->id, result));
}

static void do_discover(struct mcpserver *server, const struct asked *asked)
{
	json_t *result = xjson_object();
	xjson_set(result, "supportedVersions", mcpversion_names());
	xjson_set(result, "capabilities", mcpversion_capabilities());
	xjson_set(result, "serverInfo", mcpversion_server_info());
	xjson_set(result, "ttlMs", json_integer(0));
	xjson_set(result, "cacheScope", xjson_string("private"));
	answer_result(server, asked, result);
}

static void do_ping(struct mcpserver *server, const struct asked *asked)
{
	answer_result(server, asked, xjson_object());
}

static void do_set_level(struct mcpserver *server, const struct asked *asked)
{
	int level = mcplevel_parse(json_object_get(asked->params, "level"));
	if (level < 0) {
		refuse(server, asked, MCPRPC_INVALID_PARAMS,
			"level must be debug, info, notice, warning, error, critical, alert or emergency");
		return;
	}
	server->level = level;
	answer_result(server, asked, xjson_object());
}

static void do_list(struct mcpserver *server, const struct asked *asked)
{
	struct fail why = FAIL_INIT;
	auto_json json_t *all = server->kind->list(server->runner, &why);
	json_t *page =
		all ? mcptools_page(asked->version, all, json_object_get(asked->params, "cursor"),
			      server->config.page_size, &why)
		    : NULL;
	if (page)
		answer(server, asked, mcprpc_result(asked->id, page));
	else
		refuse(server, asked, all ? MCPRPC_INVALID_PARAMS : MCPRPC_INTERNAL, why.text);
}

static void on_notification(void *arg, json_t *message)
{
	struct mcpserver *server = arg;
	mcpstream_send(&server->stream, message);
}

static void finish_ending(struct mcpserver *server);

static void on_answer(void *arg, struct mcpbatch *batch, json_t *message)
{
	struct mcpserver *server = arg;
	mcpbatch_answer(&server->batches, batch, &server->stream, message);
	finish_ending(server);
}

static const struct mcpcall_events call_events = { .on_notification = on_notification,
	.on_answer = on_answer };

static void do_call(struct mcpserver *server, const struct asked *asked)
{
	const struct mcpcall_order order = { .kind = server->kind,
		.runner = server->runner,
		.version = asked->version,
		.id = asked->id,
		.params = asked->params,
		.batch = asked->batch,
		.level = asked->level };
	mcpcall_start(&order, &server->calls, &call_events, server);
}

static void do_listen(struct mcpserver *server, const struct asked *asked)
{
	if (!json_is_object(json_object_get(asked->params, "notifications")))
		refuse(server, asked, MCPRPC_INVALID_PARAMS,
			"notifications is missing: an object such as {\"toolsListChanged\":true}");
	else if (!mcplisten_open(&server->listens, asked->version, asked->id, asked->params,
			 &server->stream))
		refuse(server, asked, MCPRPC_INTERNAL,
			"too many subscriptions are open; cancel some");
}

enum era { SESSIONS = 1, STATELESS = 2, BOTH = 3 };

static const struct method {
	const char *name;
	enum era era;
	void (*run)(struct mcpserver *server, const struct asked *asked);
} methods[] = {
	{ "initialize", SESSIONS, do_initialize },
	{ "ping", SESSIONS, do_ping },
	{ "logging/setLevel", SESSIONS, do_set_level },
	{ "server/discover", STATELESS, do_discover },
	{ "subscriptions/listen", STATELESS, do_listen },
	{ "tools/list", BOTH, do_list },
	{ "tools/call", BOTH, do_call },
};

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

/* ---- requests */

/* One whose _meta says a version. Whether it can be served; else it has got its answer. */
static bool read_stateless(struct mcpserver *server, struct asked *asked, const json_t *meta)
{
	json_t *named = json_object_get(meta, META "protocolVersion");
	asked->version = json_is_string(named) ? mcpversion_find(json_string_value(named)) : NULL;
	if (!json_is_string(named)) {
		refuse(server, asked, MCPRPC_INVALID_PARAMS,
			META "protocolVersion in _meta must be a string");
		return false;
	}
	if (!asked->version) {
		json_t *data = xjson_object();
		xjson_set(data, "supported", mcpversion_names());
		xjson_set(data, "requested", json_incref(named));
		answer(server, asked,
			mcprpc_error(asked->id, MCPRPC_NO_VERSION, "Unsupported protocol version",
				data));
		return false;
	}
	if (asked->version->is_stateless &&
		!json_is_object(json_object_get(meta, META "clientCapabilities"))) {
		refuse(server, asked, MCPRPC_INVALID_PARAMS,
			META "clientCapabilities is missing in _meta: an object");
		return false;
	}
	const json_t *level = json_object_get(meta, META "logLevel");
	asked->level = level ? mcplevel_parse(level) : MCPLEVEL_NOTHING;
	if (asked->level < 0)
		refuse(server, asked, MCPRPC_INVALID_PARAMS, META "logLevel in _meta is no level");
	return asked->level >= 0;
}

/* The revision in which the request is to be served. Whether it can be; else it has its answer. */
static bool read_version(struct mcpserver *server, struct asked *asked, const struct method *method)
{
	const json_t *meta = json_object_get(asked->params, "_meta");
	if (json_object_get(meta, META "protocolVersion"))
		return read_stateless(server, asked, meta);
	bool needs_none = method && (method->run == do_initialize || method->run == do_ping);
	asked->version = server->session ? server->session : mcpversion_agree(NULL);
	asked->level = server->level;
	if (server->session || needs_none)
		return true;
	refuse(server, asked, MCPRPC_INVALID_PARAMS,
		"there is no session: send initialize first, or name the protocol's version in _meta (" META
		"protocolVersion)");
	return false;
}

static bool is_in_use(const struct mcpserver *server, const json_t *id)
{
	return mcpcall_find(server->calls, id) || mcplisten_has(server->listens, id);
}

static void on_request(
	struct mcpserver *server, const struct mcprpc_message *message, struct mcpbatch *batch)
{
	struct asked asked = { .batch = batch, .id = message->id, .params = message->params };
	const struct method *method = find_method(message->method);
	if (batch)
		batch->waiting++;
	if (is_in_use(server, message->id))
		refuse(server, &asked, MCPRPC_INVALID_REQUEST,
			"a request of that id is not answered yet");
	else if (!read_version(server, &asked, method))
		return;
	else if (!method || !(method->era & (asked.version->is_stateless ? STATELESS : SESSIONS)))
		refuse(server, &asked, MCPRPC_NO_METHOD, "there is no such method here");
	else if (batch && method->run == do_initialize)
		refuse(server, &asked, MCPRPC_INVALID_REQUEST, "initialize must come alone");
	else
		method->run(server, &asked);
}

static void on_cancelled(struct mcpserver *server, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");
	struct mcpcall *call = id ? mcpcall_find(server->calls, id) : NULL;
	if (call)
		mcpcall_cancel(call, false);
	else if (id)
		mcplisten_cancel(&server->listens, id);
}

/* ---- messages */

static void answer_wrong(
	struct mcpserver *server, json_t *id, int code, const char *text, struct mcpbatch *batch)
{
	auto_json json_t *none = json_null();
	bool is_left_out = !server->session || server->session->id_is_optional;
	if (batch)
		batch->waiting++;
	mcpbatch_answer(&server->batches, batch, &server->stream,
		mcprpc_error(id || is_left_out ? id : none, code, text, NULL));
}

static void on_message(struct mcpserver *server, json_t *json, struct mcpbatch *batch)
{
	struct mcprpc_message message;
	struct fail why = FAIL_INIT;
	mcprpc_read(json, &message, &why);
	if (message.kind == MCPRPC_REQUEST)
		on_request(server, &message, batch);
	else if (message.kind == MCPRPC_WRONG && (message.id || !message.method))
		answer_wrong(server, message.id, message.code, why.text, batch);
	else if (message.kind == MCPRPC_NOTIFICATION &&
		 strcmp(message.method, "notifications/cancelled") == 0)
		on_cancelled(server, message.params);
	else if (message.kind == MCPRPC_NOTIFICATION &&
		 strcmp(message.method, "notifications/initialized") == 0)
		server->is_ready = server->session != NULL;
}

static void on_batch(struct mcpserver *server, const json_t *messages)
{
	struct mcpbatch *batch = mcpbatch_open(&server->batches);
	for (size_t i = 0; i < json_array_size(messages); i++)
		on_message(server, json_array_get(messages, i), batch);
	mcpbatch_answer(&server->batches, batch, &server->stream, NULL);
}

static void on_line(void *arg, const char *line, size_t len)
{
	struct mcpserver *server = arg;
	struct fail why = FAIL_INIT;
	auto_json json_t *id = NULL;
	if (strspn(line, " \t\r") == len)
		return;
	auto_json json_t *json = mcprpc_parse(line, len, &id, &why);
	if (!json)
		answer_wrong(server, id, MCPRPC_PARSE_ERROR, why.text, NULL);
	else if (json_array_size(json) > 0 && server->session && server->session->has_batches)
		on_batch(server, json);
	else
		on_message(server, json, NULL);
}

static void on_long_line(void *arg)
{
	answer_wrong(arg, NULL, MCPRPC_INVALID_REQUEST, "the message is larger than 64 MiB", NULL);
}

/* ---- changes */

static void on_change(void *arg)
{
	struct mcpserver *server = arg;
	struct fail why = FAIL_INIT;
	json_t *tools = server->kind->list(server->runner, &why);
	if (!tools) {
		log_msg(LOG_LEVEL_WARNING, "cannot look at the tools: %s", why.text);
		return;
	}
	bool is_same = json_equal(tools, server->tools);
	json_decref(server->tools);
	server->tools = tools;
	if (is_same || server->is_ending)
		return;
	if (server->is_ready)
		mcpstream_send(&server->stream,
			mcprpc_notification("notifications/tools/list_changed", NULL));
	mcplisten_tell(server->listens, &server->stream);
}

/* ---- life */

static void stop(void *arg)
{
	const struct mcpserver *server = arg;
	loop_stop(server->config.loop, 0);
}

/* Goes when all has ended and what was sent has been read. */
static void finish_ending(struct mcpserver *server)
{
	if (server->is_ending && !server->calls && mcpstream_is_flushed(&server->stream))
		stop(server);
}

static void on_flushed(void *arg)
{
	finish_ending(arg);
}

void mcpserver_end(struct mcpserver *server)
{
	if (server->is_ending)
		return;
	server->is_ending = true;
	loop_arm_timer(server->config.loop, &server->end_timer, END_MS, stop, server);
	for (struct mcpcall *call = server->calls, *next; call; call = next) {
		next = call->next;
		if (!call->is_cancelled)
			mcpcall_cancel(call, true);
	}
	mcplisten_end(&server->listens, &server->stream);
	finish_ending(server);
}

static void on_end(void *arg, bool is_broken)
{
	struct mcpserver *server = arg;
	if (is_broken)
		stop(server);
	else
		mcpserver_end(server);
}

static const struct mcpstream_events stream_events = {
	.on_line = on_line, .on_long_line = on_long_line, .on_flushed = on_flushed, .on_end = on_end
};

struct mcpserver *mcpserver_new(const struct mcpserver_config *config, struct fail *why)
{
	struct mcpserver *server = xcalloc(1, sizeof(*server));
	*server = (struct mcpserver){
		.config = *config, .kind = config->kind, .level = MCPLEVEL_INFO
	};
	server->runner = server->kind->make(config->loop, config->tree, on_change, server, why);
	if (server->runner)
		server->tools = server->kind->list(server->runner, why);
	if (server->tools && mcpstream_open(&server->stream, config->loop, config->in_fd,
				     config->out_fd, &stream_events, server, why) == 0)
		return server;
	mcpserver_free(server);
	return NULL;
}

void mcpserver_free(struct mcpserver *server)
{
	if (!server)
		return;
	server->kind->release(server->runner);
	while (server->calls)
		mcpcall_free(server->calls);
	mcplisten_free(&server->listens);
	mcpbatch_free_all(&server->batches);
	mcpstream_release(&server->stream);
	loop_cancel_timer(&server->end_timer);
	json_decref(server->tools);
	free(server);
}
