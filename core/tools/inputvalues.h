/* The `values` and the `default` of one input (R24, R30, R31, A3, A4). */
#ifndef PEGFS_TOOLS_INPUTVALUES_H
#define PEGFS_TOOLS_INPUTVALUES_H

#include "core/tools/field.h"
#include "core/tools/tool.h"

#define INPUTVALUES_MAX 1024 /* values of one enum */

/* The input that is being read, and what its faults need. */
struct input_place {
	struct field_reader *reader;
	struct input *input;
	const struct yaml_node *key; /* the place of what is missing */
	struct faults_excerpt name;  /* of the input */
};

/* Fills input->values of an enum; one without values becomes a string. Node may be NULL: no key. */
void inputvalues_read(const struct input_place *place, const struct yaml_node *node);

/* Sets input->default_value where the default fits the input as it is by then. */
void inputvalues_read_default(const struct input_place *place, const struct yaml_node *node);

#endif
