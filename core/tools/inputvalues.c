#include "core/tools/inputvalues.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

#define EXACT_INTEGER_MAX 9007199254740992 /* 2^53: a double holds all integers up to it */

/* ---- values */

static bool has_value(const struct input *input, const char *text)
{
	for (size_t i = 0; i < input->value_count; i++)
		if (strcmp(input->values[i], text) == 0)
			return true;
	return false;
}

/* Takes the text. */
static void add_value(const struct input_place *place, const struct yaml_node *node, char *text)
{
	struct input *input = place->input;
	if (!*text || input->value_count > INPUTVALUES_MAX) {
		free(text);
		return;
	}
	if (input->value_count == INPUTVALUES_MAX) {
		field_fail(place->reader, node, "too-many-values",
			"input '%s' has more than %d values; take a string and check it in the "
			"tool",
			place->name.text, INPUTVALUES_MAX);
	} else if (has_value(input, text)) {
		field_warn(place->reader, node, "duplicate-value",
			"input '%s': the value '%s' is there twice; remove one", place->name.text,
			faults_excerpt(text).text);
		free(text);
		return;
	}
	input->values = xrealloc(input->values, input->value_count + 1, sizeof(*input->values));
	input->values[input->value_count++] = text;
}

static void add_list_text(
	const struct input_place *place, const struct yaml_node *node, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ","), end = len, start = 0;
		while (start < end && isspace((unsigned char)text[start]))
			start++;
		while (end > start && isspace((unsigned char)text[end - 1]))
			end--;
		add_value(place, node, xstrndup(text + start, end - start));
		if (!text[len])
			return;
		text += len + 1;
	}
}

static void add_items(
	const struct input_place *place, const struct yaml_node *node, const char *what)
{
	for (size_t i = 0; i < node->count; i++) {
		const struct yaml_node *item = &node->items[i];
		char *text = field_take_text(place->reader, item, what);
		if (text)
			add_value(place, item, text);
		else
			field_warn(place->reader, item, "bad-value",
				"input '%s': a value that is a list or mapping is left out; put "
				"the text in quotes",
				place->name.text);
	}
}

void inputvalues_read(const struct input_place *place, const struct yaml_node *node)
{
	struct input *input = place->input;
	if (input->type != INPUT_ENUM) {
		if (field_is_given(node))
			field_warn(place->reader, node, "unused-values",
				"input '%s' has values but is no enum, so they are not used; write "
				"'type: enum' or remove them",
				place->name.text);
		return;
	}
	char what[128];
	snprintf(what, sizeof(what), "the values of input '%s'", place->name.text);
	if (field_is_given(node) && node->kind == YAML_KIND_SEQUENCE)
		add_items(place, node, what);
	else if (field_is_given(node) && node->kind == YAML_KIND_SCALAR) {
		char *text = field_take_text(place->reader, node, what);
		add_list_text(place, node, text);
		free(text);
	}
	if (input->value_count > 0)
		return;
	input->type = INPUT_STRING;
	field_warn(place->reader, node ? node : place->key, "missing-values",
		"input '%s' is an enum without values and is taken as string; write 'values: a, b' "
		"or 'values: [a, b]'",
		place->name.text);
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

static json_t *text_default(const struct input_place *place, const struct yaml_node *node)
{
	if (node->kind != YAML_KIND_SCALAR)
		return NULL;
	if (node->cut)
		field_warn(place->reader, node, "comment-cut",
			"' #' begins a comment, so the rest of this line is not part of the "
			"default of input '%s'; put the value in quotes",
			place->name.text);
	bool is_enum = place->input->type == INPUT_ENUM;
	return is_enum && !has_value(place->input, node->text) ? NULL : json_string(node->text);
}

static json_t *default_of(const struct input_place *place, const struct yaml_node *node)
{
	struct scalar scalar = field_resolve(node);
	switch (place->input->type) {
	case INPUT_NUMBER:
		return number_default(&scalar);
	case INPUT_BOOLEAN:
		return scalar.type == SCALAR_BOOLEAN ? json_boolean(scalar.boolean) : NULL;
	default:
		return text_default(place, node);
	}
}

void inputvalues_read_default(const struct input_place *place, const struct yaml_node *node)
{
	static const char *const wanted[] = {
		[INPUT_STRING] = "text; put it in quotes",
		[INPUT_NUMBER] = "a number up to 2^53, without quotes",
		[INPUT_BOOLEAN] = "true or false, without quotes",
		[INPUT_ENUM] = "one of its values",
	};
	if (!field_is_given(node))
		return;
	place->input->default_value = default_of(place, node);
	if (place->input->default_value)
		return;
	/* A sensitive input's default is a secret: it stands in no message. */
	const char *shown = node->kind == YAML_KIND_SEQUENCE  ? "a list"
			    : node->kind == YAML_KIND_MAPPING ? "a mapping"
			    : place->input->sensitive         ? "not shown"
							      : node->text;
	field_warn(place->reader, node, "bad-default",
		"input '%s': its default (%s) does not fit and is not used; it must be %s",
		place->name.text, faults_excerpt(shown).text, wanted[place->input->type]);
}
