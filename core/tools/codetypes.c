#include "core/tools/codecheck.h"

static void report(struct codecheck *check, size_t index, const char *what, const char *instead)
{
	codecheck_report(check, FAULT_WARNING, "non-erasable", index,
		"%s is not just a type: Node.js, which only takes types away, refuses it; %s", what,
		instead);
}

static bool is_word(const struct codecheck *check, size_t index)
{
	return index < check->tokens->count && check->tokens->items[index].kind == JSTOKEN_WORD;
}

static bool is_declared(const struct codecheck *check, size_t index)
{
	return index > 0 && codecheck_is(check, index - 1, "declare");
}

static void check_declaration(struct codecheck *check, size_t i)
{
	if (!is_word(check, i + 1) || (i > 0 && codecheck_is(check, i - 1, ".")))
		return;
	bool is_enum = codecheck_is(check, i, "enum") && codecheck_is(check, i + 2, "{");
	bool is_const = i > 0 && codecheck_is(check, i - 1, "const");
	if (is_enum && !is_declared(check, is_const ? i - 1 : i))
		report(check, i, "an enum", "use a union of texts, or an object");
	bool is_space = (codecheck_is(check, i, "namespace") || codecheck_is(check, i, "module")) &&
			(codecheck_is(check, i + 2, "{") || codecheck_is(check, i + 2, "."));
	if (is_space && !is_declared(check, i))
		report(check, i, "a namespace", "use plain functions");
	bool is_import = codecheck_is(check, i, "import") && codecheck_is(check, i + 2, "=");
	if (is_import)
		report(check, i, "'import x = ...'", "use 'import x from'");
}

/* constructor(private name: string) */
static void check_constructor(struct codecheck *check, size_t i)
{
	static const char *const words[] = { "private", "public", "protected", "readonly",
		"override" };
	const struct jstoken *items = check->tokens->items;
	if (!codecheck_is(check, i, "constructor") || !codecheck_is(check, i + 1, "(") ||
		items[i + 1].match == JSTOKEN_NONE)
		return;
	for (size_t at = i + 2; at < items[i + 1].match; at++)
		for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++)
			if (items[at].depth == items[i + 1].depth + 1 &&
				codecheck_is(check, at, words[w]) && is_word(check, at + 1)) {
				report(check, at, "a parameter property",
					"declare the field and assign it");
				return;
			}
}

/* Whether an operand begins at index, so that `<` there is no comparison and no type argument. */
static bool begins_operand(const struct codecheck *check, size_t index)
{
	static const char *const before[] = { "=", "(", ",", "return", "?", "&&", "||", "??", "[",
		"=>", "await", ";", "}" };
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
		if (index > 0 && codecheck_is(check, index - 1, before[i]))
			return true;
	return false;
}

/* <Type>value; but not <T>(a: T) => ..., nor a type such as <T>(a: T): void. */
static void check_cast(struct codecheck *check, size_t i)
{
	const struct jstoken *items = check->tokens->items;
	if (!codecheck_is(check, i, "<") || !begins_operand(check, i))
		return;
	size_t behind = jsmodule_skip_generics(check->tokens, i);
	if (behind == i)
		return;
	size_t match = codecheck_is(check, behind, "(") ? items[behind].match : JSTOKEN_NONE;
	bool is_function = match != JSTOKEN_NONE && (codecheck_is(check, match + 1, "=>") ||
							    codecheck_is(check, match + 1, ":"));
	if (!is_function)
		report(check, i, "a cast in angle brackets", "use 'value as Type'");
}

void codecheck_types(struct codecheck *check)
{
	for (size_t i = 0; i + 1 < check->tokens->count; i++) {
		if (is_word(check, i)) {
			check_declaration(check, i);
			check_constructor(check, i);
		}
		check_cast(check, i);
		if (codecheck_is(check, i, "@") && is_word(check, i + 1))
			report(check, i, "a decorator", "call the function");
	}
}
