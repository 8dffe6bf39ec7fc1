#include "core/tools/jsmodule.h"

#include <string.h>

static bool is(const struct jsmodule *module, size_t index, const char *text)
{
	return jstokens_is(module->tokens, index, text);
}

static bool is_word(const struct jstokens *tokens, size_t index)
{
	return index < tokens->count && tokens->items[index].kind == JSTOKEN_WORD;
}

static void note(size_t *slot, size_t index)
{
	if (*slot == JSTOKEN_NONE)
		*slot = index;
}

/* The index of a bracket's partner, or the end. */
static size_t partner(const struct jstokens *tokens, size_t index)
{
	size_t match = tokens->items[index].match;
	return match == JSTOKEN_NONE ? tokens->count - 1 : match;
}

/* ---- types, as far as they must be passed over */

size_t jsmodule_skip_generics(const struct jstokens *tokens, size_t index)
{
	if (!jstokens_is(tokens, index, "<"))
		return index;
	size_t open = 0;
	for (size_t i = index; i + 1 < tokens->count; i++) {
		if (jstokens_is(tokens, i, "<"))
			open++;
		else if (jstokens_is(tokens, i, ">") && --open == 0)
			return i + 1;
		else if (jstokens_is(tokens, i, "(") || jstokens_is(tokens, i, "[") ||
			 jstokens_is(tokens, i, "{"))
			i = partner(tokens, i);
		else if (jstokens_is(tokens, i, ";"))
			return index; /* it was a comparison */
	}
	return index;
}

/* Whether a type goes on behind this token: `A |`, `keyof`, ... */
static bool wants_more(const struct jstokens *tokens, size_t index)
{
	static const char *const joints[] = { "|", "&", "keyof", "typeof", "readonly", "is",
		"asserts", "infer", "extends", ".", "=>", "?", ":" };
	for (size_t i = 0; i < sizeof(joints) / sizeof(*joints); i++)
		if (jstokens_is(tokens, index, joints[i]))
			return true;
	return false;
}

size_t jsmodule_skip_type(const struct jstokens *tokens, size_t index)
{
	bool wants = true; /* a type, or a part of it, must follow */
	size_t i = index;
	while (i + 1 < tokens->count) {
		const struct jstoken *token = &tokens->items[i];
		if (wants_more(tokens, i)) {
			wants = true;
			i++;
		} else if (jstokens_is(tokens, i, "<")) {
			size_t behind = jsmodule_skip_generics(tokens, i);
			if (behind == i)
				return i;
			i = behind;
			wants = false;
		} else if (jstokens_is(tokens, i, "[") ||
			   (wants &&
				   (jstokens_is(tokens, i, "{") || jstokens_is(tokens, i, "(")))) {
			i = partner(tokens, i) + 1;
			wants = false;
		} else if (wants && token->kind != JSTOKEN_PUNCT) {
			wants = false;
			i++;
		} else {
			return i;
		}
	}
	return i;
}

/* ---- functions */

/* The `=>` behind the type of what an arrow function gives, which begins at index. */
static size_t find_arrow(const struct jstokens *tokens, size_t index)
{
	size_t i = index;
	while (i + 1 < tokens->count && !jstokens_is(tokens, i, "=>")) {
		size_t behind = jsmodule_skip_generics(tokens, i), match = tokens->items[i].match;
		bool is_open = match != JSTOKEN_NONE && match > i;
		if (behind > i)
			i = behind;
		else
			i = is_open ? match + 1 : i + 1;
	}
	return i;
}

bool jsmodule_read_function(
	const struct jstokens *tokens, size_t index, struct jsfunction *function)
{
	*function = (struct jsfunction){ .params = JSTOKEN_NONE, .body = JSTOKEN_NONE };
	size_t i = index;
	if (jstokens_is(tokens, i, "async") && !jstokens_is(tokens, i + 1, "=>")) {
		function->is_async = true;
		i++;
	}
	bool is_arrow = !jstokens_is(tokens, i, "function");
	if (!is_arrow) {
		i += jstokens_is(tokens, i + 1, "*") ? 2 : 1;
		if (is_word(tokens, i))
			i++;
	}
	i = jsmodule_skip_generics(tokens, i);
	if (is_arrow && is_word(tokens, i) && jstokens_is(tokens, i + 1, "=>")) {
		function->body = jstokens_is(tokens, i + 2, "{") ? i + 2 : JSTOKEN_NONE;
		return true;
	}
	if (!jstokens_is(tokens, i, "("))
		return false;
	function->params = i;
	i = partner(tokens, i) + 1;
	if (jstokens_is(tokens, i, ":"))
		i = is_arrow ? find_arrow(tokens, i + 1) : jsmodule_skip_type(tokens, i + 1);
	if (is_arrow && !jstokens_is(tokens, i, "=>"))
		return false;
	i += is_arrow ? 1 : 0;
	if (jstokens_is(tokens, i, "{"))
		function->body = i;
	return true;
}

/* The index behind `=` of a declaration whose name is at index: `name: Type =`. */
static size_t value_of(const struct jstokens *tokens, size_t name)
{
	for (size_t i = name + 1; i + 1 < tokens->count; i++) {
		if (jstokens_is(tokens, i, "="))
			return i + 1;
		if (jstokens_is(tokens, i, ";") || jstokens_is(tokens, i, "function"))
			break;
		size_t match = tokens->items[i].match;
		if (match != JSTOKEN_NONE && match > i)
			i = match;
	}
	return JSTOKEN_NONE;
}

/* The function that a top-level declaration of that name holds. */
static void find_function(struct jsmodule *module, const struct jstoken *name)
{
	const struct jstokens *tokens = module->tokens;
	for (size_t i = 1; i + 1 < tokens->count; i++) {
		const struct jstoken *token = &tokens->items[i];
		bool is_named = token->kind == JSTOKEN_WORD && token->depth == 0 &&
				token->len == name->len &&
				memcmp(token->text, name->text, name->len) == 0;
		if (!is_named)
			continue;
		size_t head = i - 1;
		if (is(module, head, "*") && head > 0)
			head--;
		if (is(module, head, "function")) {
			bool is_async = head > 0 && is(module, head - 1, "async");
			jsmodule_read_function(
				tokens, is_async ? head - 1 : head, &module->function);
			/* An overload has no body; the one with it follows. */
			if (module->function.body != JSTOKEN_NONE)
				return;
		}
		bool is_variable = is(module, head, "const") || is(module, head, "let") ||
				   is(module, head, "var");
		size_t value = is_variable ? value_of(tokens, i) : JSTOKEN_NONE;
		if (value != JSTOKEN_NONE &&
			jsmodule_read_function(tokens, value, &module->function))
			return;
	}
}

/* ---- exports */

/* export { a, b as execute }: returns the local name's index, or JSTOKEN_NONE. */
static size_t read_export_list(struct jsmodule *module, size_t open)
{
	size_t end = partner(module->tokens, open), local = JSTOKEN_NONE;
	bool is_from = is(module, end + 1, "from");
	for (size_t i = open + 1; i < end; i++) {
		if (!is_word(module->tokens, i))
			continue;
		bool has_other = is(module, i + 1, "as") && i + 2 < end;
		size_t outer = has_other ? i + 2 : i;
		if (is(module, outer, "execute")) {
			note(&module->execute, outer);
			local = is_from ? JSTOKEN_NONE : i;
		} else if (is(module, outer, "default")) {
			note(&module->default_export, outer);
		} else if (!is(module, i, "type")) {
			note(&module->exported_name, outer);
		}
		i = outer;
	}
	return local;
}

static void read_default(struct jsmodule *module, size_t index)
{
	note(is(module, index + 1, "class") ? &module->class_export : &module->default_export,
		index + 1 < module->tokens->count ? index : index - 1);
}

/* export const { execute, other } = ... */
static void read_pattern(struct jsmodule *module, size_t open)
{
	for (size_t i = open; i < partner(module->tokens, open); i++)
		if (is(module, i, "execute"))
			note(&module->execute, i);
}

/* What follows the word `export` at index. */
static void read_export(struct jsmodule *module, size_t index)
{
	size_t i = index + 1;
	if (is(module, i, "=")) {
		note(&module->commonjs, index);
		return;
	}
	if (is(module, i, "*")) {
		if (!is(module, i + 1, "as"))
			note(&module->star_export, i);
		return;
	}
	if (is(module, i, "default")) {
		read_default(module, i);
		return;
	}
	if (is(module, i, "{")) {
		size_t local = read_export_list(module, i);
		if (local != JSTOKEN_NONE)
			find_function(module, &module->tokens->items[local]);
		return;
	}
	if (is(module, i, "abstract"))
		i++;
	if (is(module, i, "class")) {
		note(&module->class_export, i);
		return;
	}
	bool is_variable = is(module, i, "const") || is(module, i, "let") || is(module, i, "var");
	if (is(module, i, "async"))
		i++;
	if (!is_variable && !is(module, i, "function"))
		return; /* a type, an enum, ... */
	i++;
	if (is(module, i, "*"))
		i++;
	if (is(module, i, "{") || is(module, i, "["))
		read_pattern(module, i);
	else if (is(module, i, "execute"))
		note(&module->execute, i);
	else if (is_word(module->tokens, i))
		note(&module->exported_name, i);
}

static void read_top_level(struct jsmodule *module, size_t i)
{
	bool is_member = i > 0 && is(module, i - 1, ".");
	if (is(module, i, "export") && !is_member)
		read_export(module, i);
	else if (is(module, i, "execute") && i > 0 &&
		 (is(module, i - 1, "function") || is(module, i - 1, "const") ||
			 is(module, i - 1, "let") || is(module, i - 1, "var")))
		note(&module->unexported, i);
}

static void read_anywhere(struct jsmodule *module, size_t i)
{
	if (i > 0 && (is(module, i - 1, ".") || is(module, i - 1, "?.")))
		return;
	bool is_module =
		is(module, i, "module") && is(module, i + 1, ".") && is(module, i + 2, "exports");
	/* exports.x = ..., and not a variable of that name. */
	bool is_exports =
		is(module, i, "exports") && is(module, i + 1, ".") && is(module, i + 3, "=");
	if (is_module || is_exports)
		note(&module->commonjs, i);
	bool is_main =
		(is(module, i, "require") && is(module, i + 1, ".") && is(module, i + 2, "main")) ||
		(is(module, i, "import") && is(module, i + 1, ".") && is(module, i + 2, "meta") &&
			is(module, i + 4, "main"));
	bool is_argv =
		is(module, i, "process") && is(module, i + 1, ".") && is(module, i + 2, "argv");
	if (is_main || is_argv)
		note(&module->cli, i);
}

void jsmodule_read(const struct jstokens *tokens, struct jsmodule *module)
{
	*module = (struct jsmodule){ .tokens = tokens,
		.execute = JSTOKEN_NONE,
		.unexported = JSTOKEN_NONE,
		.exported_name = JSTOKEN_NONE,
		.star_export = JSTOKEN_NONE,
		.class_export = JSTOKEN_NONE,
		.default_export = JSTOKEN_NONE,
		.commonjs = JSTOKEN_NONE,
		.cli = JSTOKEN_NONE,
		.function = { .params = JSTOKEN_NONE, .body = JSTOKEN_NONE } };
	for (size_t i = 0; i + 1 < tokens->count; i++) {
		if (tokens->items[i].kind != JSTOKEN_WORD)
			continue;
		read_anywhere(module, i);
		if (tokens->items[i].depth == 0)
			read_top_level(module, i);
	}
	if (module->execute != JSTOKEN_NONE && module->function.params == JSTOKEN_NONE &&
		module->function.body == JSTOKEN_NONE)
		find_function(module, &tokens->items[module->execute]);
}
