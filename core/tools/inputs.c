#include "core/tools/inputs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/xalloc.h"
#include "core/tools/inputvalues.h"
#include "core/tools/suggest.h"

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
	const struct input_place *place, const struct yaml_node *node, const char *written)
{
	const char *name = place->name.text, *meant = meant_type(written);
	if (strcmp(written, "object") == 0 || strcmp(written, "array") == 0)
		field_warn(place->reader, node, "unsupported-type",
			"input '%s': the type '%s' is not supported and is taken as string: the "
			"caller passes JSON text; write 'type: string' and parse it in the tool",
			name, written);
	else if (meant)
		field_warn(place->reader, node, "unknown-type",
			"input '%s': the type '%s' is not known and is taken as string; write "
			"'type: %s'",
			name, faults_excerpt(written).text, meant);
	else
		field_warn(place->reader, node, "unknown-type",
			"input '%s': the type '%s' is not known and is taken as string; there are "
			"string, number, boolean and enum",
			name, faults_excerpt(written).text);
}

static void read_type(const struct input_place *place, const struct yaml_node *node)
{
	if (!field_is_given(node)) {
		field_warn(place->reader, node ? node : place->key, "missing-type",
			"input '%s' has no type and is taken as string; write 'type: string'",
			place->name.text);
		return;
	}
	if (node->kind != YAML_KIND_SCALAR) {
		field_warn(place->reader, node, "not-text",
			"input '%s': its type is a list or mapping and is taken as string; write "
			"one of string, number, boolean, enum",
			place->name.text);
		return;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strcmp(node->text, types[i].written) == 0) {
			place->input->type = types[i].type;
			return;
		}
	warn_unknown_type(place, node, node->text);
}

/* ---- description, optional, sensitive */

static void warn_missing_description(const struct input_place *place, const struct yaml_node *node)
{
	field_warn(place->reader, node ? node : place->key, "input-missing-description",
		"input '%s' has no description; say what it is for, agents read it",
		place->name.text);
}

static void read_description(const struct input_place *place, const struct yaml_node *node)
{
	char what[128];
	snprintf(what, sizeof(what), "the description of input '%s'", place->name.text);
	if (!field_is_given(node)) {
		warn_missing_description(place, node);
		return;
	}
	char *text = field_take_text(place->reader, node, what);
	if (!text) {
		field_warn(place->reader, node, "not-text",
			"%s is a list or mapping and is not used; put text in quotes", what);
		return;
	}
	free(place->input->description);
	place->input->description = text;
	if (*text)
		field_check_description(place->reader, node, text, what);
	else
		warn_missing_description(place, node);
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcasecmp(text, *words) == 0)
			return true;
	return false;
}

/* What is neither true nor false counts as `otherwise`. */
static bool read_boolean(const struct input_place *place, const struct yaml_node *node,
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
	field_warn(place->reader, node, "not-boolean",
		"input '%s': '%s' is neither true nor false and is taken as %s; write one of the "
		"two, without quotes",
		place->name.text, key, value ? "true" : "false");
	return value;
}

/* ---- one input */

static void warn_unknown_key(const struct input_place *place, const struct yaml_node *key,
	const char *const *known, size_t known_count)
{
	struct suggest suggest;
	suggest_begin(&suggest, key->text);
	for (size_t i = 0; i < known_count; i++)
		suggest_offer(&suggest, known[i]);
	const char *name = place->name.text;
	if (strcmp(key->text, "required") == 0)
		field_warn(place->reader, key, "unknown-key",
			"input '%s': 'required' is ignored; an input is required unless it has "
			"'optional: true'",
			name);
	else if (suggest.best && strcmp(suggest.best, "sensitive") == 0) {
		/* In doubt a value is a secret. */
		place->input->sensitive = true;
		field_warn(place->reader, key, "unknown-key",
			"input '%s': '%s' is not known, and the input is taken as sensitive; did "
			"you mean 'sensitive'?",
			name, faults_excerpt(key->text).text);
	} else if (suggest.best)
		field_warn(place->reader, key, "unknown-key",
			"input '%s': '%s' is ignored; did you mean '%s'?", name,
			faults_excerpt(key->text).text, suggest.best);
	else
		field_warn(place->reader, key, "unknown-key",
			"input '%s': '%s' is ignored; there are type, description, optional, "
			"sensitive, values and default",
			name, faults_excerpt(key->text).text);
}

static void warn_unknown_keys(const struct input_place *place, const struct yaml_node *node)
{
	static const char *const known[] = { "type", "description", "optional", "sensitive",
		"values", "default" };
	size_t known_count = sizeof(known) / sizeof(*known);
	for (size_t i = 0; i + 1 < node->count; i += 2)
		if (!field_is_known(node->items[i].text, known, known_count))
			warn_unknown_key(place, &node->items[i], known, known_count);
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
static void read_short_form(const struct input_place *place, const struct yaml_node *node)
{
	if (place->reader->mended || node->kind == YAML_KIND_SEQUENCE) {
		/* What it was may have said `sensitive: true`; without that it must not be shown. */
		field_fail(place->reader, node, "input-not-mapping",
			"input '%s' is no mapping of type, description, ...; write each on a line "
			"of its own, indented",
			place->name.text);
		return;
	}
	field_warn(place->reader, node, "input-not-mapping",
		"input '%s' is no mapping and is taken as a required string; write 'type: ...' and "
		"'description: ...' below it, indented",
		place->name.text);
	char *text = field_take_text(place->reader, node, "the description");
	free(place->input->description);
	place->input->description = text;
}

static void read_input(struct field_reader *reader, const struct yaml_node *key,
	const struct yaml_node *value, struct input *input)
{
	struct input_place place = {
		.reader = reader, .input = input, .key = key, .name = faults_excerpt(key->text)
	};
	*input = (struct input){ .name = xstrdup(key->text), .description = xstrdup("") };
	if (!name_fits_models(key->text))
		field_warn(reader, key, "input-name-pattern",
			"some model APIs refuse the input name '%s'; use letters, digits and '_', "
			"a letter first, at most 64",
			place.name.text);
	if (value->kind != YAML_KIND_MAPPING) {
		read_short_form(&place, value);
		return;
	}
	read_type(&place, yaml_get(value, "type"));
	read_description(&place, yaml_get(value, "description"));
	input->optional = read_boolean(&place, yaml_get(value, "optional"), "optional", false);
	/* In doubt a value is a secret. */
	input->sensitive = read_boolean(&place, yaml_get(value, "sensitive"), "sensitive", true);
	warn_unknown_keys(&place, value);
	inputvalues_read(&place, yaml_get(value, "values"));
	inputvalues_read_default(&place, yaml_get(value, "default"));
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
