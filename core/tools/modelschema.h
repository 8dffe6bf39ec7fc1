/*
 * A tool's inputs as the model APIs take them (modelapi.h). An input whose name an API does not take
 * is left out where it can be, which is where the tool works without it.
 */
#ifndef PEGFS_TOOLS_MODELSCHEMA_H
#define PEGFS_TOOLS_MODELSCHEMA_H

#include <jansson.h>

#include "core/tools/modelapi.h"

/* Whether the input is shown to that API. */
bool modelschema_shows(enum modelapi api, const struct input *input);

/* An input that the API does not take and that cannot be left out; NULL: the tool can be shown. */
const struct input *modelschema_obstacle(enum modelapi api, const struct tool *tool);

/* Whether OpenAI takes the tool as `strict`, where the model cannot give what does not fit. */
bool modelschema_is_strict(const struct tool *tool);

/* The document of the inputs, a new reference; NULL where there are none and the API wants nothing. */
json_t *modelschema_build(enum modelapi api, const struct tool *tool);

#endif
