/* YAML as the JSON that it stands for: JSON written in TOOL.md (flow style) becomes the same JSON. */
#ifndef PEGFS_TOOLS_YAMLJSON_H
#define PEGFS_TOOLS_YAMLJSON_H

#include <jansson.h>

#include "core/tools/yaml.h"

/* A new reference; NULL where a number in it has no JSON form (.inf, .nan, 1e999). */
json_t *yamljson_build(const struct yaml_node *node);

#endif
