#include "core/tools/params.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/tools/coerce.h"
#include "core/tools/explain.h"
#include "core/tools/jsonfault.h"
#include "core/tools/suggest.h"

#define UNKNOWN_MAX 20 /* unknown parameters that are looked at closely; the rest is counted */
#define ERRORS_MAX (FAIL_TEXT_MAX - 256) /* room for the line that counts what did not fit */
#define REDACTED "[sensitive]"
#define UTF8_MARK "\xef\xbb\xbf"
#define EXAMPLE "such as {\"name\":\"Ada\"}, or {} where there is nothing to say"

/*
 * What jansson does not refuse as it should: a NUL byte, which it takes for the end, and nesting
 * below its own large limit, for a host's reader may have a smaller one.
 */
static int check_bytes(const char *bytes, size_t len, struct fail *why)
{
	size_t depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		char byte = bytes[i];
		if (byte == '\0')
			return jsonfault_at(bytes, i, "a NUL byte is no part of JSON", why);
		if (in_string && byte == '\\' && i + 1 < len && bytes[i + 1] != '\0') {
			i++;
			continue;
		}
		if (byte == '"')
			in_string = !in_string;
		if (in_string)
			continue;
		if (strchr("{[", byte) && ++depth > PARAMS_DEPTH_MAX)
			return jsonfault_at(bytes, i,
				"nested deeper than " PARAMS_DEPTH_TEXT " levels; flatten it", why);
		if (strchr("}]", byte) && depth > 0)
			depth--;
	}
	return 0;
}

static bool is_blank(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", bytes[i]) || bytes[i] == '\0')
			return false;
	return true;
}

json_t *params_parse(const char *bytes, size_t len, struct fail *why)
{
	size_t mark = strlen(UTF8_MARK);
	if (len >= mark && memcmp(bytes, UTF8_MARK, mark) == 0) {
		bytes += mark;
		len -= mark;
	}
	if (is_blank(bytes, len)) {
		fail_set(why, -EINVAL, "the request is empty; write one JSON object, " EXAMPLE);
		return NULL;
	}
	if (check_bytes(bytes, len, why) < 0)
		return NULL;
	json_error_t error;
	json_t *request = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!request) {
		jsonfault_set(bytes, len, &error, why);
	} else if (!json_is_object(request)) {
		fail_set(why, -EINVAL,
			"the request is %s at line 1, column 1; write one JSON object, " EXAMPLE,
			explain_kind(request));
		json_decref(request);
		request = NULL;
	}
	return request;
}

/* One request on its way to params. */
struct check {
	const struct tool *tool;
	json_t *request;                  /* borrowed */
	json_t *params;                   /* borrowed; what fits so far */
	const char *unknown[UNKNOWN_MAX]; /* borrowed from request */
	size_t unknown_count;             /* of all, also those that are not in the array */
	struct buf *warnings;
	struct buf errors; /* whole lines */
	size_t error_count, errors_left_out;
	bool no_memory;
};

/* The closest input of the tool, or NULL. */
static const struct input *closest_input(const struct tool *tool, const char *name)
{
	struct suggest suggest;
	suggest_begin(&suggest, name);
	for (size_t i = 0; i < tool->input_count; i++)
		suggest_offer(&suggest, tool->inputs[i].name);
	return suggest.best ? tool_find_input(tool, suggest.best) : NULL;
}

static void keep(struct check *check, const char *name, json_t *value)
{
	if (json_object_set_new(check->params, name, value) < 0)
		check->no_memory = true;
}

/* A line joins the errors whole or not at all. */
static void add_error(struct check *check, const struct buf *line)
{
	check->error_count++;
	if (line->failed || buf_append(&check->errors, line->data, line->len) < 0)
		check->errors_left_out++;
}

static void check_given(struct check *check, const struct input *input, json_t *value)
{
	json_t *fitting = coerce_value(input, value);
	if (fitting) {
		keep(check, input->name, fitting);
		return;
	}
	auto_buf struct buf line = BUF_INIT(ERRORS_MAX);
	explain_mismatch(&line, input, value);
	add_error(check, &line);
}

/* Whether a schema of the tool's own knows it, which the tool checks itself. */
static bool is_in_schema(const struct tool *tool, const char *name)
{
	return json_object_get(json_object_get(tool->parameters, "properties"), name) != NULL;
}

/* A10: passed on as it is. Its value is never shown: it may be a misspelt secret. */
static void check_unknown(struct check *check, const char *name, json_t *value)
{
	keep(check, name, json_incref(value));
	if (check->unknown_count < UNKNOWN_MAX) {
		const struct input *closest = closest_input(check->tool, name);
		check->unknown[check->unknown_count] = name;
		explain_unknown(check->warnings, name, closest ? closest->name : NULL);
	}
	check->unknown_count++;
}

static void check_all_given(struct check *check)
{
	const char *name;
	json_t *value;
	json_object_foreach(check->request, name, value)
	{
		const struct input *input = tool_find_input(check->tool, name);
		if (!input && is_in_schema(check->tool, name))
			keep(check, name, json_incref(value));
		else if (!input)
			check_unknown(check, name, value);
		else if (!json_is_null(value))
			check_given(check, input, value);
	}
	if (check->unknown_count > UNKNOWN_MAX)
		buf_printf(check->warnings,
			"%zu more unknown parameters are passed on as they are\n",
			check->unknown_count - UNKNOWN_MAX);
}

/* The unknown parameter that may have been meant for an input that is missing, or NULL. */
static const char *meant_for(const struct check *check, const struct input *input)
{
	for (size_t i = 0; i < check->unknown_count && i < UNKNOWN_MAX; i++)
		if (closest_input(check->tool, check->unknown[i]) == input)
			return check->unknown[i];
	return NULL;
}

static void check_missing(struct check *check, const struct input *input)
{
	if (input->default_value) { /* A8 */
		keep(check, input->name, json_deep_copy(input->default_value));
	} else if (!input->optional) {
		auto_buf struct buf line = BUF_INIT(ERRORS_MAX);
		explain_missing(&line, input, meant_for(check, input));
		add_error(check, &line);
	}
}

static void check_all_missing(struct check *check)
{
	for (size_t i = 0; i < check->tool->input_count; i++) {
		const struct input *input = &check->tool->inputs[i];
		json_t *given = json_object_get(check->request, input->name);
		if (!given || json_is_null(given))
			check_missing(check, input);
	}
}

static int verdict(struct check *check, struct fail *why)
{
	const char *tool = check->tool->name;
	if (check->no_memory)
		return fail_set(
			why, -ENOMEM, "no memory for the parameters of tool '%s'; send less", tool);
	if (check->error_count == 0)
		return 0;
	auto_buf struct buf more = BUF_INIT(64);
	if (check->errors_left_out)
		buf_printf(&more, "  and %zu more\n", check->errors_left_out);
	return fail_set(why, -EINVAL,
		"%zu parameter%s not fit tool '%.128s' (its schema.json has all of them):\n%s%s",
		check->error_count, check->error_count == 1 ? " does" : "s do", tool,
		buf_str(&check->errors), buf_str(&more));
}

json_t *params_check(
	const struct tool *tool, json_t *request, struct buf *warnings, struct fail *why)
{
	auto_json json_t *params = json_object();
	struct check check = { .tool = tool,
		.request = request,
		.params = params,
		.warnings = warnings,
		.errors = BUF_INIT(ERRORS_MAX),
		.no_memory = !params };
	check_all_given(&check);
	check_all_missing(&check);
	int result = verdict(&check, why);
	buf_release(&check.errors);
	return result < 0 ? NULL : take_ptr(&params);
}

/*
 * A misspelt sensitive parameter is unknown, yet holds the secret. Where there are more unknown
 * ones than can be compared in reasonable time, the rest counts as secret too.
 */
static bool is_secret(const struct tool *tool, const char *name, size_t *unknown_count)
{
	const struct input *input = tool_find_input(tool, name);
	if (input)
		return input->sensitive;
	if ((*unknown_count)++ >= UNKNOWN_MAX)
		return true;
	struct suggest suggest;
	suggest_begin(&suggest, name);
	for (size_t i = 0; i < tool->input_count; i++)
		if (tool->inputs[i].sensitive)
			suggest_offer(&suggest, tool->inputs[i].name);
	return suggest.best != NULL;
}

static bool has_sensitive(const struct tool *tool)
{
	for (size_t i = 0; i < tool->input_count; i++)
		if (tool->inputs[i].sensitive)
			return true;
	return false;
}

json_t *params_redact(const struct tool *tool, const json_t *params)
{
	auto_json json_t *copy = json_deep_copy(params);
	if (!copy || !has_sensitive(tool))
		return take_ptr(&copy);
	size_t unknown_count = 0;
	const char *name;
	json_t *value;
	json_object_foreach(copy, name, value)
	{
		if (!is_secret(tool, name, &unknown_count))
			continue;
		json_t *redacted = json_string(REDACTED);
		/* Replacing the value of a key that is there keeps the iteration valid. */
		if (!redacted || json_object_set_new(copy, name, redacted) < 0)
			return NULL;
	}
	return take_ptr(&copy);
}
