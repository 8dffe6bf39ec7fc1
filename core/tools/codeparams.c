#include <string.h>

#include "core/tools/codecheck.h"

/* The parameters as the code declares them: `type Params = { ... }`, or at execute's argument. */
struct declared {
	size_t name;        /* the token to report at what is missing */
	size_t open;        /* the `{` */
	bool is_open_ended; /* an index signature, or a union or intersection with another type */
};

/* One member of that type. */
struct member {
	size_t name;
	bool is_optional;
	size_t type; /* its first token */
};

/* ---- finding the type */

static bool find_named(
	const struct codecheck *check, const char *name, size_t name_len, struct declared *declared)
{
	const struct jstoken *items = check->tokens->items;
	for (size_t i = 1; i + 2 < check->tokens->count; i++) {
		bool is_name = items[i].depth == 0 && items[i].len == name_len &&
			       items[i].kind == JSTOKEN_WORD &&
			       memcmp(items[i].text, name, name_len) == 0;
		bool is_type =
			codecheck_is(check, i - 1, "type") && codecheck_is(check, i + 1, "=");
		bool is_interface = codecheck_is(check, i - 1, "interface");
		if (!is_name || (!is_type && !is_interface))
			continue;
		declared->name = i;
		declared->open = is_type ? i + 2 : i + 1;
		return codecheck_is(check, declared->open, "{");
	}
	return false;
}

/* The type of execute's second argument. */
static bool find_declared(const struct codecheck *check, struct declared *declared)
{
	const struct jstoken *items = check->tokens->items;
	size_t open = check->module->function.params;
	if (open == JSTOKEN_NONE || items[open].match == JSTOKEN_NONE)
		return false;
	for (size_t i = open + 1; i < items[open].match; i++) {
		if (!codecheck_is(check, i, ",") || items[i].depth != items[open].depth + 1)
			continue;
		size_t colon = i + 2; /* params:, or { a, b }: */
		if (codecheck_is(check, i + 1, "{") && items[i + 1].match != JSTOKEN_NONE)
			colon = items[i + 1].match + 1;
		if (codecheck_is(check, colon, "?"))
			colon++;
		if (!codecheck_is(check, colon, ":"))
			return false;
		if (codecheck_is(check, colon + 1, "{")) {
			*declared = (struct declared){ .name = i + 1, .open = colon + 1 };
			return true;
		}
		return find_named(check, items[colon + 1].text, items[colon + 1].len, declared);
	}
	return false;
}

/* ---- its members */

/* The next member at or after *index; false at the end. */
static bool next_member(const struct codecheck *check, struct declared *declared, size_t *index,
	struct member *member)
{
	const struct jstoken *items = check->tokens->items;
	size_t end = items[declared->open].match, i = *index;
	while (i < end && (codecheck_is(check, i, ";") || codecheck_is(check, i, ",")))
		i++;
	if (codecheck_is(check, i, "readonly") && !codecheck_is(check, i + 1, ":"))
		i++;
	if (i >= end)
		return false;
	bool is_named = items[i].kind == JSTOKEN_WORD || items[i].kind == JSTOKEN_STRING;
	bool is_optional = codecheck_is(check, i + 1, "?");
	size_t colon = is_optional ? i + 2 : i + 1;
	if (!is_named || !codecheck_is(check, colon, ":")) {
		declared->is_open_ended = true; /* [key: string]: ..., a method, ... */
		return false;
	}
	*member = (struct member){ .name = i, .is_optional = is_optional, .type = colon + 1 };
	*index = jsmodule_skip_type(check->tokens, colon + 1);
	return true;
}

static bool is_named(const struct codecheck *check, size_t index, const char *name)
{
	const struct jstoken *token = &check->tokens->items[index];
	size_t quotes = token->kind == JSTOKEN_STRING ? 1 : 0;
	return token->len == strlen(name) + 2 * quotes &&
	       memcmp(token->text + quotes, name, strlen(name)) == 0;
}

static const struct input *find_input(const struct codecheck *check, size_t index)
{
	for (size_t i = 0; i < check->tool->input_count; i++)
		if (is_named(check, index, check->tool->inputs[i].name))
			return &check->tool->inputs[i];
	return NULL;
}

/* ---- comparing */

/* A type of one word that is another than the input's. */
static bool is_other_type(
	const struct codecheck *check, const struct input *input, size_t type, size_t end)
{
	static const char *const expected[] = { [INPUT_STRING] = "string",
		[INPUT_NUMBER] = "number",
		[INPUT_BOOLEAN] = "boolean",
		[INPUT_ENUM] = "string" };
	bool is_plain = codecheck_is(check, type, "string") ||
			codecheck_is(check, type, "number") || codecheck_is(check, type, "boolean");
	return end == type + 1 && is_plain && !codecheck_is(check, type, expected[input->type]);
}

static void check_member(struct codecheck *check, const struct member *member, size_t end)
{
	const struct input *input = find_input(check, member->name);
	const struct jstoken *token = &check->tokens->items[member->name];
	int shown = token->len < 64 ? (int)token->len : 64;
	if (!input) {
		codecheck_report(check, FAULT_WARNING, "params-extra", member->name,
			"'%.*s' is no input of TOOL.md, so no agent gives it; add it there, or "
			"remove it here",
			shown, token->text);
		return;
	}
	if (input->optional && !input->default_value && !member->is_optional)
		codecheck_report(check, FAULT_WARNING, "params-optional", member->name,
			"'%s' is optional in TOOL.md and may be missing; write '%s?'", input->name,
			input->name);
	if (is_other_type(check, input, member->type, end))
		codecheck_report(check, FAULT_WARNING, "params-type", member->type,
			"'%s' has the type %s in TOOL.md", input->name,
			input_type_name(input->type));
}

static void check_missing(
	struct codecheck *check, const struct declared *declared, const struct input *input)
{
	struct declared again = *declared;
	struct member member;
	size_t index = declared->open + 1;
	while (next_member(check, &again, &index, &member))
		if (is_named(check, member.name, input->name))
			return;
	if (!again.is_open_ended)
		codecheck_report(check, FAULT_WARNING, "params-missing", declared->name,
			"the input '%s' of TOOL.md is missing in this type; add it, or remove it "
			"there",
			input->name);
}

void codecheck_params(struct codecheck *check)
{
	struct declared declared = { .name = 0 };
	if (!check->tool || !find_declared(check, &declared) ||
		check->tokens->items[declared.open].match == JSTOKEN_NONE)
		return;
	size_t behind = check->tokens->items[declared.open].match + 1;
	if (codecheck_is(check, behind, "&") || codecheck_is(check, behind, "|"))
		declared.is_open_ended = true;
	struct member member;
	size_t index = declared.open + 1;
	while (next_member(check, &declared, &index, &member))
		check_member(check, &member, index);
	for (size_t i = 0; i < check->tool->input_count && !declared.is_open_ended; i++)
		check_missing(check, &declared, &check->tool->inputs[i]);
}
