/*
 * Code of tools through the rules of check: nothing reads beyond the source, loops, or names a place
 * that is not in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"
#include "core/tools/codecheck.h"
#include "core/tools/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tool *make_tool(void)
{
	static const char text[] =
		"---\nname: t\ndescription: d\nversion: 1\ninputs:\n  a:\n    type: "
		"string\n    description: d\n  b:\n    type: number\n    optional: "
		"true\n    description: d\n---\n";
	struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	if (manifest_parse(text, strlen(text), tool, &faults) < 0)
		abort();
	return tool;
}

static size_t count_lines(const char *source, size_t size)
{
	size_t lines = 1;
	for (size_t i = 0; i < size; i++)
		lines += source[i] == '\n';
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_tool struct tool *tool = make_tool();
	auto_faults struct faults faults = FAULTS_INIT;
	char *source =
		xcalloc(size ? size : 1, 1); /* of exactly this size, so that overruns show */
	if (size > 0)
		memcpy(source, data, size);
	codecheck_javascript(source, size, true, tool, &faults);
	codecheck_python(source, size, &faults);
	for (size_t i = 0; i < faults.count; i++)
		if (faults.items[i].line == 0 || faults.items[i].line > count_lines(source, size))
			abort();
	free(source);
	return 0;
}
