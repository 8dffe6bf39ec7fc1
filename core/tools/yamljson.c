#include "core/tools/yamljson.h"

#include "core/base/auto.h"
#include "core/tools/scalar.h"
#include "core/tools/xjson.h"

static json_t *build_scalar(const struct yaml_node *node)
{
	const struct scalar scalar =
		node->plain ? scalar_resolve(node->text) : (struct scalar){ .type = SCALAR_STRING };
	switch (scalar.type) {
	case SCALAR_NULL:
		return json_null();
	case SCALAR_BOOLEAN:
		return json_boolean(scalar.boolean);
	case SCALAR_INTEGER:
		return json_integer(scalar.integer);
	case SCALAR_NUMBER:
		return json_real(scalar.number);
	case SCALAR_INFINITE:
		return NULL;
	case SCALAR_STRING:
		break;
	}
	return xjson_string(node->text);
}

static json_t *build_sequence(const struct yaml_node *node)
{
	auto_json json_t *array = xjson_array();
	for (size_t i = 0; i < node->count; i++) {
		json_t *item = yamljson_build(&node->items[i]);
		if (!item)
			return NULL;
		xjson_append(array, item);
	}
	return take_ptr(&array);
}

static json_t *build_mapping(const struct yaml_node *node)
{
	auto_json json_t *object = xjson_object();
	for (size_t i = 0; i + 1 < node->count; i += 2) {
		json_t *value = yamljson_build(&node->items[i + 1]);
		if (!value)
			return NULL;
		xjson_set(object, node->items[i].text, value);
	}
	return take_ptr(&object);
}

/* As deep as the YAML is: YAML_DEPTH_MAX at most. */
json_t *yamljson_build(const struct yaml_node *node)
{
	switch (node->kind) {
	case YAML_KIND_SEQUENCE:
		return build_sequence(node);
	case YAML_KIND_MAPPING:
		return build_mapping(node);
	case YAML_KIND_SCALAR:
		break;
	}
	return build_scalar(node);
}
