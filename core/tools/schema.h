/* The JSON documents that describe a tool's inputs. All are new references, the caller's. */
#ifndef PEGFS_TOOLS_SCHEMA_H
#define PEGFS_TOOLS_SCHEMA_H

#include <jansson.h>

#include "core/tools/tool.h"

/*
 * JSON Schema of the inputs: {"type":"object","properties":{...},"required":[...]}, properties in
 * the order of TOOL.md, `required` left out when empty, enums as a string `enum` (R24, R28, R32).
 */
json_t *schema_build(const struct tool *tool);

/* The same inputs as TypeBox writes them: enums as anyOf of const (R24). */
json_t *schema_build_typebox(const struct tool *tool);

/* A request that is valid against the schema: every required input with a telling value. */
json_t *schema_example(const struct tool *tool);

#endif
