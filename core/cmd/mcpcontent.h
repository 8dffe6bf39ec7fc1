/* What a tool returned -> the result of tools/call. */
#ifndef PEGFS_CMD_MCPCONTENT_H
#define PEGFS_CMD_MCPCONTENT_H

#include <jansson.h>

#include "core/cmd/mcpversion.h"
#include "core/tools/result.h"

/*
 * A new reference. Blocks that the protocol does not know become text (their JSON), for a client
 * refuses the whole answer because of one. structuredContent is the tool's own, or the text where
 * that is one JSON object; a client that shows either shows the same.
 */
json_t *mcpcontent_result(const struct mcpversion *version, const struct result *result);

#endif
