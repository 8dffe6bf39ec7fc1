#include "core/tools/inputs.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/xalloc.h"
#include "core/tools/suggest.h"

#define EXACT_INTEGER_MAX 9007199254740992 /* 2^53: a double holds all integers up to it */

/* What reading one input needs. */
struct context {
	struct field_reader *reader;
	struct input *input;
	const struct yaml_node *key; /* the place of what is missing */
	struct faults_excerpt name;  /* of the input, for messages */
};

/* ---- type */

static const struct {
	const char *written;
	enum input_type type;
} types[] = {
	{ "string", INPUT_STRING },
	{ "number", INPUT_NUMBER },
	{ "boolean", INPUT_BOOLEAN },
	{ "enum", INPUT_ENUM },
};

/* Names of types in other formats -> the name here. */
static const struct {
	const char *written, *meant;
} other_types[] = {
	{ "integer", "number" },
	{ "int", "number" },
	{ "float", "number" },
	{ "double", "number" },
	{ "bool", "boolean" },
	{ "str", "string" },
	{ "text", "string" },
};

static const char *meant_type(const char *written)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcasecmp(written, types[i].written) == 0)
			return types[i].written;
	for (size_t i = 0; i < sizeof(other_types) / sizeof(*other_types); i++)
		if (strcasecmp(written, other_types[i].written) == 0)
			return other_types[i].meant;
	return NULL;
}

static void warn_unknown_type(
	const struct context *context, const struct yaml_node *node, const char *written)
{
	const char *name = context->name.text, *meant = meant_type(written);
	if (strcmp(written, "object") == 0 || strcmp(written, "array") == 0)
		field_warn(context->reader, node, "unsupported-type",
			"input '%s': the type '%s' is not supported and is taken as string: the "
			"caller passes JSON text; write 'type: string' and parse it in the tool",
			name, written);
	else if (meant)
		field_warn(context->reader, node, "unknown-type",
			"input '%s': the type '%s' is not known and is taken as string; write "
			"'type: %s'",
			name, faults_excerpt(written).text, meant);
	else
		field_warn(context->reader, node, "unknown-type",
			"input '%s': the type '%s' is not known and is taken as string; there are "
			"string, number, boolean and enum",
			name, faults_excerpt(written).text);
}

static void read_type(const struct context *context, const struct yaml_node *node)
{
	if (!field_is_given(node)) {
		field_warn(context->reader, node ? node : context->key, "missing-type",
			"input '%s' has no type and is taken as string; write 'type: string'",
			context->name.text);
		return;
	}
	if (node->kind != YAML_KIND_SCALAR) {
		field_warn(context->reader, node, "not-text",
			"input '%s': its type is a list or mapping and is taken as string; write "
			"one of string, number, boolean, enum",
			context->name.text);
		return;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(node->text, types[i].written) == 0) {
			context->input->type = types[i].type;
			return;
		}
	warn_unknown_type(context, node, node->text);
}

/* ---- description, optional, sensitive */

static void warn_missing_description(const struct context *context, const struct yaml_node *place)
{
	field_warn(context->reader, place, "input-missing-description",
		"input '%s' has no description; say what it is for, agents read it",
		context->name.text);
}

static void read_description(const struct context *context, const struct yaml_node *node)
{
	char what[128];
	snprintf(what, sizeof(what), "the description of input '%s'", context->name.text);
	if (!field_is_given(node)) {
		warn_missing_description(context, node ? node : context->key);
		return;
	}
	char *text = field_take_text(context->reader, node, what);
	if (!text) {
		field_warn(context->reader, node, "not-text",
			"%s is a list or mapping and is not used; put text in quotes", what);
		return;
	}
	free(context->input->description);
	context->input->description = text;
	if (*text)
		field_check_description(context->reader, node, text, what);
	else
		warn_missing_description(context, node);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasecmp(text, *words) == 0)
			return true;
	return false;
}

/* What is neither true nor false counts as `otherwise`. */
static bool read_boolean(const struct context *context, const struct yaml_node *node,
	const char *key, bool otherwise)
{
	static const char *const yes[] = { "true", "yes", "on", "y", "1", NULL };
	static const char *const no[] = { "false", "no", "off", "n", "0", NULL };
	if (!field_is_given(node))
		return false;
	struct scalar scalar = field_resolve(node);
	if (scalar.type == SCALAR_BOOLEAN)
		return scalar.boolean;
	bool value = otherwise;
	if (node->kind == YAML_KIND_SCALAR && is_one_of(node->text, yes))
		value = true;
	else if (node->kind == YAML_KIND_SCALAR && is_one_of(node->text, no))
		value = false;
	field_warn(context->reader, node, "not-boolean",
		"input '%s': '%s' is neither true nor false and is taken as %s; write one of the "
		"two, without quotes",
		context->name.text, key, value ? "true" : "false");
	return value;
}

/* ---- values */

static bool has_value(const struct input *input, const char *text)
{
	for (size_t i = 0; i < input->value_count; i++)
		if (strcmp(input->values[i], text) == 0)
			return true;
	return false;
}

/* Takes the text. */
static void add_value(const struct context *context, const struct yaml_node *node, char *text)
{
	struct input *input = context->input;
	if (!*text || input->value_count > INPUTS_VALUES_MAX) {
		free(text);
		return;
	}
	if (input->value_count == INPUTS_VALUES_MAX) {
		field_fail(context->reader, node, "too-many-values",
			"input '%s' has more than %d values; take a string and check it in the "
			"tool",
			context->name.text, INPUTS_VALUES_MAX);
	} else if (has_value(input, text)) {
		field_warn(context->reader, node, "duplicate-value",
			"input '%s': the value '%s' is there twice; remove one", context->name.text,
			faults_excerpt(text).text);
		free(text);
		return;
	}
	input->values = xrealloc(input->values, input->value_count + 1, sizeof(*input->values));
	input->values[input->value_count++] = text;
}

static void add_list_text(
	const struct context *context, const struct yaml_node *node, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ","), end = len, start = 0;
		while (start < end && isspace((unsigned char)text[start]))
			start++;
		while (end > start && isspace((unsigned char)text[end - 1]))
			end--;
		add_value(context, node, xstrndup(text + start, end - start));
		if (!text[len])
			return;
		text += len + 1;
	}
}

static void add_items(const struct context *context, const struct yaml_node *node, const char *what)
{
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml_node *item = &node->items[i];
		char *text = field_take_text(context->reader, item, what);
		if (text)
			add_value(context, item, text);
		else
			field_warn(context->reader, item, "bad-value",
				"input '%s': a value that is a list or mapping is left out; put "
				"the text in quotes",
				context->name.text);
	}
}

static void read_values(const struct context *context, const struct yaml_node *node)
{
	struct input *input = context->input;
	if (input->type != INPUT_ENUM) {
		if (field_is_given(node))
			field_warn(context->reader, node, "unused-values",
				"input '%s' has values but is no enum, so they are not used; write "
				"'type: enum' or remove them",
				context->name.text);
		return;
	}
	char what[128];
	snprintf(what, sizeof(what), "the values of input '%s'", context->name.text);
	if (field_is_given(node) && node->kind == YAML_KIND_SEQUENCE)
		add_items(context, node, what);
	else if (field_is_given(node) && node->kind == YAML_KIND_SCALAR) {
		char *text = field_take_text(context->reader, node, what);
		add_list_text(context, node, text);
		free(text);
	}
	if (input->value_count > 0)
		return;
	input->type = INPUT_STRING;
	field_warn(context->reader, node ? node : context->key, "missing-values",
		"input '%s' is an enum without values and is taken as string; write 'values: a, b' "
		"or 'values: [a, b]'",
		context->name.text);
}

/* ---- default */

static json_t *number_default(const struct scalar *scalar)
{
	if (scalar->type == SCALAR_INTEGER)
		return scalar->integer >= -EXACT_INTEGER_MAX && scalar->integer <= EXACT_INTEGER_MAX
			       ? json_integer(scalar->integer)
			       : NULL;
	if (scalar->type != SCALAR_NUMBER || fabs(scalar->number) > (double)EXACT_INTEGER_MAX)
		return NULL;
	/* Integral ones as JavaScript prints them: 1.0 is 1. */
	json_int_t integer = (json_int_t)scalar->number;
	if ((double)integer == scalar->number)
		return json_integer(integer);
	return json_real(scalar->number);
}

static json_t *text_default(const struct context *context, const struct yaml_node *node)
{
	if (node->kind != YAML_KIND_SCALAR)
		return NULL;
	if (node->cut)
		field_warn(context->reader, node, "comment-cut",
			"' #' begins a comment, so the rest of this line is not part of the "
			"default of input '%s'; put the value in quotes",
			context->name.text);
	bool is_enum = context->input->type == INPUT_ENUM;
	return is_enum && !has_value(context->input, node->text) ? NULL : json_string(node->text);
}

static json_t *default_of(const struct context *context, const struct yaml_node *node)
{
	struct scalar scalar = field_resolve(node);
	switch (context->input->type) {
	case INPUT_NUMBER:
		return number_default(&scalar);
	case INPUT_BOOLEAN:
		return scalar.type == SCALAR_BOOLEAN ? json_boolean(scalar.boolean) : NULL;
	default:
		return text_default(context, node);
	}
}

static void read_default(const struct context *context, const struct yaml_node *node)
{
	static const char *const wanted[] = {
		[INPUT_STRING] = "text; put it in quotes",
		[INPUT_NUMBER] = "a number up to 2^53, without quotes",
		[INPUT_BOOLEAN] = "true or false, without quotes",
		[INPUT_ENUM] = "one of its values",
	};
	if (!field_is_given(node))
		return;
	context->input->default_value = default_of(context, node);
	if (context->input->default_value)
		return;
	/* A sensitive input's default is a secret: it stands in no message. */
	const char *shown = node->kind == YAML_KIND_SEQUENCE  ? "a list"
			    : node->kind == YAML_KIND_MAPPING ? "a mapping"
			    : context->input->sensitive       ? "not shown"
							      : node->text;
	field_warn(context->reader, node, "bad-default",
		"input '%s': its default (%s) does not fit and is not used; it must be %s",
		context->name.text, faults_excerpt(shown).text, wanted[context->input->type]);
}

/* ---- one input */

static void warn_unknown_key(const struct context *context, const struct yaml_node *key,
	const char *const *known, size_t known_count)
{
	struct suggest suggest;
	suggest_begin(&suggest, key->text);
	for (size_t i = 0; i < known_count; i++)
		suggest_offer(&suggest, known[i]);
	const char *name = context->name.text;
	if (strcmp(key->text, "required") == 0)
		field_warn(context->reader, key, "unknown-key",
			"input '%s': 'required' is ignored; an input is required unless it has "
			"'optional: true'",
			name);
	else if (suggest.best && strcmp(suggest.best, "sensitive") == 0) {
		/* In doubt a value is a secret. */
		context->input->sensitive = true;
		field_warn(context->reader, key, "unknown-key",
			"input '%s': '%s' is not known, and the input is taken as sensitive; did "
			"you mean 'sensitive'?",
			name, faults_excerpt(key->text).text);
	} else if (suggest.best)
		field_warn(context->reader, key, "unknown-key",
			"input '%s': '%s' is ignored; did you mean '%s'?", name,
			faults_excerpt(key->text).text, suggest.best);
	else
		field_warn(context->reader, key, "unknown-key",
			"input '%s': '%s' is ignored; there are type, description, optional, "
			"sensitive, values and default",
			name, faults_excerpt(key->text).text);
}

static void warn_unknown_keys(const struct context *context, const struct yaml_node *node)
{
	static const char *const known[] = { "type", "description", "optional", "sensitive",
		"values", "default" };
	size_t known_count = sizeof(known) / sizeof(*known);
	for (size_t i = 0; i + 1 < node->count; i += 2)
		if (!field_is_known(node->items[i].text, known, known_count))
			warn_unknown_key(context, &node->items[i], known, known_count);
}

static bool name_fits_models(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	size_t len = 0;
	while (isalnum((unsigned char)name[len]) || name[len] == '_')
		len++;
	return len <= 64 && name[len] == '\0';
}

/* `name: text`, or `name:` with nothing: a required string. */
static void read_short_form(const struct context *context, const struct yaml_node *node)
{
	if (context->reader->mended || node->kind == YAML_KIND_SEQUENCE) {
		/* What it was may have said `sensitive: true`; without that it must not be shown. */
		field_fail(context->reader, node, "input-not-mapping",
			"input '%s' is no mapping of type, description, ...; write each on a line "
			"of its own, indented",
			context->name.text);
		return;
	}
	field_warn(context->reader, node, "input-not-mapping",
		"input '%s' is no mapping and is taken as a required string; write 'type: ...' and "
		"'description: ...' below it, indented",
		context->name.text);
	char *text = field_take_text(context->reader, node, "the description");
	free(context->input->description);
	context->input->description = text;
}

static void read_input(struct field_reader *reader, const struct yaml_node *key,
	const struct yaml_node *value, struct input *input)
{
	struct context context = {
		.reader = reader, .input = input, .key = key, .name = faults_excerpt(key->text)
	};
	*input = (struct input){ .name = xstrdup(key->text), .description = xstrdup("") };
	if (!name_fits_models(key->text))
		field_warn(reader, key, "input-name-pattern",
			"some model APIs refuse the input name '%s'; use letters, digits and '_', "
			"a letter first, at most 64",
			context.name.text);
	if (value->kind != YAML_KIND_MAPPING) {
		read_short_form(&context, value);
		return;
	}
	read_type(&context, yaml_get(value, "type"));
	read_description(&context, yaml_get(value, "description"));
	input->optional = read_boolean(&context, yaml_get(value, "optional"), "optional", false);
	/* In doubt a value is a secret. */
	input->sensitive = read_boolean(&context, yaml_get(value, "sensitive"), "sensitive", true);
	warn_unknown_keys(&context, value);
	read_values(&context, yaml_get(value, "values"));
	read_default(&context, yaml_get(value, "default"));
}

void inputs_parse(struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	if (!field_is_given(node) || (node->kind == YAML_KIND_SEQUENCE && node->count == 0))
		return;
	if (node->kind != YAML_KIND_MAPPING) {
		field_fail(reader, node, "inputs-not-mapping",
			"'inputs' is no mapping of names to inputs; write each name on a line of "
			"its own, indented, and its type and description below it");
		return;
	}
	size_t count = node->count / 2;
	if (count > INPUTS_MAX) {
		field_fail(reader, node, "too-many-inputs",
			"%zu inputs, at most %d are possible; take JSON text in one of them", count,
			INPUTS_MAX);
		return;
	}
	tool->inputs = xcalloc(count, sizeof(*tool->inputs));
	for (size_t i = 0; i < count; i++)
		read_input(reader, &node->items[i * 2], &node->items[i * 2 + 1],
			&tool->inputs[tool->input_count++]);
}
