#include "core/tools/coerce.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "core/tools/jsnumber.h"

static json_t *to_string(json_t *value)
{
	char text[JSNUMBER_TEXT_MAX];
	switch (json_typeof(value)) {
	case JSON_STRING:
		return json_incref(value);
	case JSON_TRUE:
		return json_string("true");
	case JSON_FALSE:
		return json_string("false");
	case JSON_INTEGER:
		/* Exact also beyond 2^53, where JavaScript rounds: it may be an identifier. */
		return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	case JSON_REAL:
		jsnumber_render(json_real_value(value), text);
		return json_string(text);
	default:
		return NULL;
	}
}

static json_t *of_double(double number)
{
	return jsnumber_is_integer(number) ? json_integer((json_int_t)number) : json_real(number);
}

static json_t *text_to_number(const char *text, size_t len)
{
	double number;
	if (jsnumber_parse(text, len, &number))
		return of_double(number);
	if (strcasecmp(text, "true") == 0)
		return json_integer(1);
	if (strcasecmp(text, "false") == 0)
		return json_integer(0);
	return NULL;
}

static json_t *to_number(json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_INTEGER:
		return json_incref(value);
	case JSON_REAL:
		return of_double(json_real_value(value));
	case JSON_TRUE:
		return json_integer(1);
	case JSON_FALSE:
		return json_integer(0);
	case JSON_STRING:
		return text_to_number(json_string_value(value), json_string_length(value));
	default:
		return NULL;
	}
}

static json_t *text_to_boolean(const char *text)
{
	if (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0)
		return json_true();
	if (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0)
		return json_false();
	return NULL;
}

static json_t *to_boolean(json_t *value)
{
	if (json_is_boolean(value))
		return json_incref(value);
	if (json_is_string(value))
		return text_to_boolean(json_string_value(value));
	if (!json_is_number(value))
		return NULL;
	double number = json_number_value(value);
	if (!jsnumber_is_integer(number) || number < 0 || number > 1)
		return NULL;
	return json_boolean((int)number);
}

bool coerce_is_allowed(const struct input *input, const char *text)
{
	for (size_t i = 0; i < input->value_count; i++)
		if (strcmp(input->values[i], text) == 0)
			return true;
	return false;
}

static json_t *to_enum(const struct input *input, json_t *value)
{
	json_t *string = to_string(value);
	if (!string || coerce_is_allowed(input, json_string_value(string)))
		return string;
	json_decref(string);
	return NULL;
}

json_t *coerce_value(const struct input *input, json_t *value)
{
	switch (input->type) {
	case INPUT_STRING:
		return to_string(value);
	case INPUT_NUMBER:
		return to_number(value);
	case INPUT_BOOLEAN:
		return to_boolean(value);
	case INPUT_ENUM:
		return to_enum(input, value);
	}
	return NULL;
}
