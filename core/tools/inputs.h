/* The `inputs` of TOOL.md -> the inputs of a tool (R20 to R31, A3, A4, A8, A10). */
#ifndef PEGFS_TOOLS_INPUTS_H
#define PEGFS_TOOLS_INPUTS_H

#include "core/tools/field.h"
#include "core/tools/tool.h"

#define INPUTS_MAX 256 /* of one tool */

/* Fills tool->inputs from the value of the key (NULL: there is none). Faults go to the reader. */
void inputs_parse(struct field_reader *reader, const struct yaml_node *node, struct tool *tool);

#endif
