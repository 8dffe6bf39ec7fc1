#include "core/tools/codecheck.h"

/* ---- arguments */

static bool names_params(const struct codecheck *check, size_t index)
{
	static const char *const names[] = { "params", "parameters", "args", "input", "inputs",
		"options", "{" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (codecheck_is(check, index, names[i]))
			return true;
	return false;
}

static void check_arguments(struct codecheck *check)
{
	size_t open = check->module->function.params;
	if (open != JSTOKEN_NONE && names_params(check, open + 1))
		codecheck_report(check, FAULT_ERROR, "execute-arguments", open + 1,
			"the first argument of 'execute' is the id of the call, the parameters are "
			"the second; write 'execute(_toolCallId, params)'");
}

/* ---- what execute throws */

struct body {
	struct codecheck *check;
	bool has_try;
	size_t first_risk; /* a call or an await outside of try, or JSTOKEN_NONE */
};

/* Whether `{` at index begins the body of an arrow function or a method. */
static bool begins_function(const struct codecheck *check, size_t index)
{
	static const char *const heads[] = { "if", "for", "while", "switch", "catch", "with" };
	if (codecheck_is(check, index - 1, "=>"))
		return true;
	size_t open = check->tokens->items[index - 1].match;
	if (!codecheck_is(check, index - 1, ")") || open == JSTOKEN_NONE)
		return false;
	size_t head = codecheck_is(check, open - 1, "await") ? open - 2 : open - 1;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
		if (codecheck_is(check, head, heads[i]))
			return false;
	return true;
}

/* Calls that cannot fail in a way worth telling. */
static bool is_harmless_call(const struct codecheck *check, size_t index)
{
	static const char *const names[] = { "ok", "err", "String", "Number", "Boolean", "onUpdate",
		"trim", "push", "join", "isArray", "isInteger", "isFinite", "toUpperCase",
		"toLowerCase", "now", "if", "for", "while", "switch", "catch", "return", "function",
		"typeof", "async", "includes", "log", "error", "Date", "Map", "Set", "stringify",
		"Error", "TypeError", "RangeError" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (codecheck_is(check, index, names[i]))
			return true;
	return false;
}

static bool is_risk(const struct codecheck *check, size_t index)
{
	if (codecheck_is(check, index, "await"))
		return true;
	const struct jstoken *token = &check->tokens->items[index];
	if (token->kind != JSTOKEN_WORD || !codecheck_is(check, index + 1, "("))
		return false;
	bool is_method = codecheck_is(check, check->tokens->items[index + 1].match + 1, "{");
	return !is_method && !is_harmless_call(check, index);
}

/* The index of the last token of a function or class that is declared at index, else index. */
static size_t skip_declaration(const struct codecheck *check, size_t index, size_t to)
{
	const struct jstoken *items = check->tokens->items;
	struct jsfunction function = { .body = JSTOKEN_NONE };
	if (codecheck_is(check, index, "function"))
		jsmodule_read_function(check->tokens, index, &function);
	else if (codecheck_is(check, index, "class"))
		for (size_t i = index; i < to && function.body == JSTOKEN_NONE; i++)
			function.body = codecheck_is(check, i, "{") ? i : JSTOKEN_NONE;
	if (function.body == JSTOKEN_NONE || items[function.body].match == JSTOKEN_NONE)
		return index;
	return items[function.body].match;
}

static void look_at(struct body *body, size_t index)
{
	if (codecheck_is(body->check, index, "throw") && !codecheck_is(body->check, index - 1, "."))
		codecheck_report(body->check, FAULT_WARNING, "throw-in-execute", index,
			"what 'execute' throws tells the agent too little; return "
			"{ content: [{ type: 'text', text }], isError: true }");
	else if (body->first_risk == JSTOKEN_NONE && is_risk(body->check, index))
		body->first_risk = index;
}

/* Looks at the tokens that are run by execute itself, outside of try. */
static void walk(struct body *body, size_t from, size_t to)
{
	const struct codecheck *check = body->check;
	const struct jstoken *items = check->tokens->items;
	for (size_t i = from; i < to; i++) {
		size_t end = skip_declaration(check, i, to);
		bool is_try = codecheck_is(check, i, "try") && codecheck_is(check, i + 1, "{") &&
			      codecheck_is(check, items[i + 1].match + 1, "catch");
		bool is_function = codecheck_is(check, i, "{") && begins_function(check, i);
		if (is_try) {
			body->has_try = true;
			i = items[i + 1].match;
		} else if (is_function && items[i].match != JSTOKEN_NONE) {
			i = items[i].match;
		} else if (end > i) {
			i = end;
		} else {
			look_at(body, i);
		}
	}
}

static void check_throws(struct codecheck *check)
{
	size_t open = check->module->function.body;
	if (open == JSTOKEN_NONE || check->tokens->items[open].match == JSTOKEN_NONE)
		return;
	struct body body = { .check = check, .first_risk = JSTOKEN_NONE };
	walk(&body, open + 1, check->tokens->items[open].match);
	if (!body.has_try && body.first_risk != JSTOKEN_NONE)
		codecheck_report(check, FAULT_WARNING, "unguarded-execute", body.first_risk,
			"nothing catches what goes wrong in 'execute'; put its whole body into try, "
			"and return the error's message with isError: true in catch");
}

void codecheck_body(struct codecheck *check)
{
	check_arguments(check);
	check_throws(check);
}
