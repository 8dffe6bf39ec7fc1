/* tools/list: pages of tools.json, and whether it is another one. */
#ifndef PEGFS_CMD_MCPTOOLS_H
#define PEGFS_CMD_MCPTOOLS_H

#include <jansson.h>
#include <stddef.h>

#include "core/base/fail.h"
#include "core/cmd/mcpversion.h"

#define MCPTOOLS_PAGE 500 /* tools on a page: many clients read the first one only */

/*
 * The result: those of all (tools.json) that come behind the cursor (NULL: from the first on). A
 * cursor names the last tool of its page, so that none is shown twice or left out where others come
 * and go meanwhile. A new reference; NULL and *why (-EINVAL) where the cursor is none.
 */
json_t *mcptools_page(const struct mcpversion *version, const json_t *all, const json_t *cursor,
	size_t page_size, struct fail *why);

#endif
