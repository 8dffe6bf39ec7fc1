#include "core/cmd/mcpcall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/callorder.h"
#include "core/cmd/mcpcontent.h"
#include "core/cmd/mcplevel.h"
#include "core/cmd/mcprpc.h"
#include "core/tools/jsontext.h"
#include "core/tools/xjson.h"

#define LOG_LINE_MAX ((size_t)64 * 1024) /* a longer one is sent in pieces */

void mcpcall_free(struct mcpcall *call)
{
	if (call->link) {
		*call->link = call->next;
		if (call->next)
			call->next->link = call->link;
	}
	buf_release(&call->log);
	json_decref(call->id);
	json_decref(call->token);
	free(call->tool);
	free(call);
}

static void put_in(struct mcpcall *call, struct mcpcall **list)
{
	call->next = *list;
	if (call->next)
		call->next->link = &call->next;
	call->link = list;
	*list = call;
}

struct mcpcall *mcpcall_find(struct mcpcall *list, const json_t *id)
{
	struct mcpcall *call = list;
	while (call && (call->is_cancelled || !json_equal(call->id, id)))
		call = call->next;
	return call;
}

/* ---- while it runs */

static void notify(struct mcpcall *call, const char *method, json_t *params)
{
	call->events->on_notification(call->arg, mcprpc_notification(method, params));
}

/* `progress` of the partial's details, where that is more than before; else one more. */
static void step(struct mcpcall *call, const json_t *partial, json_t *params)
{
	const json_t *details = json_object_get(partial, "details");
	const json_t *told = json_object_get(details, "progress");
	const json_t *total = json_object_get(details, "total");
	bool is_more = json_is_number(told) && json_number_value(told) > call->progress;
	call->progress = is_more ? json_number_value(told) : call->progress + 1;
	xjson_set(params, "progress", json_real(call->progress));
	if (is_more && json_is_number(total) && json_number_value(total) >= call->progress)
		xjson_set(params, "total", json_incref(jsontext_unconst(total)));
}

static void set_text(json_t *object, const char *key, const char *bytes, size_t len)
{
	auto_buf struct buf clean = BUF_INIT(4 * len + 1);
	xjson_append_clean(&clean, bytes, len);
	xjson_set(object, key, json_stringn(buf_str(&clean), clean.len));
}

static void on_progress(void *arg, const char *json, size_t len)
{
	struct mcpcall *call = arg;
	auto_json json_t *partial = call->token && !call->is_cancelled
					    ? json_loadb(json, len, JSON_DECODE_ANY, NULL)
					    : NULL;
	if (!partial)
		return;
	struct result shown = RESULT_INIT;
	result_from_value(&shown, partial);
	json_t *params = xjson_object();
	xjson_set(params, "progressToken", json_incref(call->token));
	step(call, partial, params);
	size_t text_len = shown.text_len;
	while (text_len > 0 && shown.text[text_len - 1] == '\n')
		text_len--;
	set_text(params, "message", shown.text, text_len);
	result_release(&shown);
	notify(call, "notifications/progress", params);
}

static void send_log(struct mcpcall *call, const char *bytes, size_t len)
{
	if (len == 0)
		return;
	json_t *params = xjson_object();
	xjson_set(params, "level", xjson_string("info"));
	xjson_set(params, "logger", xjson_string(call->tool));
	set_text(params, "data", bytes, len);
	notify(call, "notifications/message", params);
}

static void flush_log(struct mcpcall *call)
{
	send_log(call, call->log.data, call->log.len);
	buf_reset(&call->log);
}

/* A message for each line. */
static void on_output(void *arg, const char *bytes, size_t len)
{
	struct mcpcall *call = arg;
	if (call->level > MCPLEVEL_INFO || call->is_cancelled)
		return;
	while (len > 0) {
		const char *newline = memchr(bytes, '\n', len);
		size_t part = newline ? (size_t)(newline - bytes) : len;
		size_t room = LOG_LINE_MAX - call->log.len;
		bool is_full = part > room;
		part = is_full ? room : part;
		buf_append(&call->log, bytes, part);
		bool is_line = newline && !is_full;
		if (is_line || is_full)
			flush_log(call);
		bytes += part + is_line;
		len -= part + is_line;
	}
}

/* ---- its end */

static void answer(struct mcpcall *call, json_t *message)
{
	const struct mcpcall_events *events = call->events;
	struct mcpbatch *batch = call->batch;
	void *arg = call->arg;
	mcpcall_free(call);
	events->on_answer(arg, batch, message);
}

static void on_end(void *arg, struct result *result)
{
	struct mcpcall *call = arg;
	call->run = NULL;
	json_t *message = NULL;
	if (!call->is_cancelled) {
		flush_log(call);
		message = mcprpc_result(call->id, mcpcontent_result(call->version, result));
	}
	result_release(result);
	answer(call, message);
}

static const struct mcprun_events run_events = {
	.on_progress = on_progress, .on_output = on_output, .on_end = on_end
};

void mcpcall_cancel(struct mcpcall *call, bool wants_answer)
{
	call->is_cancelled |= !wants_answer;
	call->kind->cancel(call->run);
}

/* ---- its start */

static void answer_error(struct mcpcall *call, int code, const char *text)
{
	answer(call, mcprpc_error(call->id, code, text, NULL));
}

static void answer_failed(struct mcpcall *call, const struct fail *why)
{
	struct result result = RESULT_INIT;
	result_from_error(&result, "%s", why->text);
	on_end(call, &result);
}

/* A token is a string or an integer. */
static json_t *find_token(const json_t *params)
{
	json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");
	return json_is_string(token) || json_is_integer(token) ? json_incref(token) : NULL;
}

static struct mcpcall *make(const struct mcpcall_order *order, const char *tool,
	const struct mcpcall_events *events, void *arg)
{
	struct mcpcall *call = xcalloc(1, sizeof(*call));
	*call = (struct mcpcall){ .events = events,
		.arg = arg,
		.kind = order->kind,
		.version = order->version,
		.batch = order->batch,
		.id = json_incref(order->id),
		.token = find_token(order->params),
		.tool = xstrdup(tool ? tool : ""),
		.log = BUF_INIT(LOG_LINE_MAX),
		.level = order->level };
	return call;
}

/* The arguments as a request's bytes. */
static int render(const json_t *arguments, struct buf *request, struct fail *why)
{
	int result = arguments ? jsontext_append(request, arguments, JSONTEXT_COMPACT)
			       : buf_puts(request, "{}");
	return result < 0
		       ? fail_set(why, result, "the arguments are too large: %s", strerror(-result))
		       : 0;
}

static void run(struct mcpcall *call, struct mcprunner *runner, const json_t *arguments,
	struct mcpcall **list)
{
	auto_buf struct buf request = BUF_INIT(CALLORDER_SIZE_MAX);
	struct fail why = FAIL_INIT;
	if (render(arguments, &request, &why) == 0)
		call->run =
			call->kind->start(runner, call->tool, &request, &run_events, call, &why);
	if (call->run)
		put_in(call, list);
	else if (why.code == -ENOENT)
		answer_error(call, MCPRPC_INVALID_PARAMS, why.text);
	else
		answer_failed(call, &why);
}

void mcpcall_start(const struct mcpcall_order *order, struct mcpcall **list,
	const struct mcpcall_events *events, void *arg)
{
	const char *tool = json_string_value(json_object_get(order->params, "name"));
	const json_t *arguments = json_object_get(order->params, "arguments");
	struct mcpcall *call = make(order, tool, events, arg);
	if (!tool)
		answer_error(call, MCPRPC_INVALID_PARAMS, "name of a tool is missing: a string");
	else if (arguments && !json_is_object(arguments))
		answer_error(call, MCPRPC_INVALID_PARAMS, "arguments must be an object");
	else
		run(call, order->runner, arguments, list);
}
