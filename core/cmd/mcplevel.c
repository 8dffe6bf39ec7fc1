#include "core/cmd/mcplevel.h"

#include <string.h>

int mcplevel_parse(const json_t *name)
{
	static const char *const names[] = { "debug", "info", "notice", "warning", "error",
		"critical", "alert", "emergency" };
	const char *text = json_string_value(name);
	for (int i = 0; text && i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (strcmp(names[i], text) == 0)
			return i;
	return -1;
}
