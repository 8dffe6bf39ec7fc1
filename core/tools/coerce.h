/*
 * A given value -> the value of an input's type, as the pi agent converts arguments before it
 * checks them (TypeBox Value.Convert; tests/oracle compares and lists the differences).
 *
 *   for      becomes
 *   string   a number its text in JavaScript ("7", "0.1"), true and false their names
 *   enum     as string; then it must be one of the values
 *   number   a text that is a number ("5", " 1e3 ", "0x10") that number, true 1, false 0, also as
 *            texts in any case; blank texts do not fit (in pi they are 0). Whole numbers are whole:
 *            5.0 is 5
 *   boolean  0 and 1, "0" and "1", "true" and "false" in any case
 *
 * null never comes here: it means that the parameter is not given. Arrays and objects never fit
 * (R25).
 */
#ifndef PEGFS_TOOLS_COERCE_H
#define PEGFS_TOOLS_COERCE_H

#include <jansson.h>
#include <stdbool.h>

#include "core/tools/tool.h"

/* A new reference, or NULL where value does not fit the input's type (or memory is short). */
json_t *coerce_value(const struct input *input, json_t *value);

/* Whether text is one of the values of an INPUT_ENUM. */
bool coerce_is_allowed(const struct input *input, const char *text);

#endif
