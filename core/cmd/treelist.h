/* The tools of a tree as rows, read from its texts. */
#ifndef PEGFS_CMD_TREELIST_H
#define PEGFS_CMD_TREELIST_H

#include <jansson.h>
#include <stddef.h>

#include "core/cmd/tree.h"

struct treelist_tool { /* all is borrowed from the list */
	const char *name, *title, *description;
	const char *version, *language, *source;
	const json_t *schema;
};

struct treelist {
	struct treelist_tool *tools; /* owned; in byte order of the names */
	size_t count;
	json_t *json; /* owned; tools.json */
	char *table;  /* owned; .pegfs/tools, cut up */
};

/* Returns 0 or *why; released in both cases. */
int treelist_load(const struct tree *tree, struct treelist *list, struct fail *why);
void treelist_release(struct treelist *list);

/* NULL where there is none. */
const struct treelist_tool *treelist_find(const struct treelist *list, const char *name);

#endif
