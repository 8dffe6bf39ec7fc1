#include <ctype.h>
#include <string.h>

#include "core/tools/codecheck.h"

static bool begins(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static bool has(const char *line, size_t len, const char *part)
{
	return memmem(line, len, part, strlen(part)) != NULL;
}

/* Whether a line at the left margin makes a name `execute`. */
static bool makes_execute(const char *line, size_t len)
{
	bool is_import = (begins(line, len, "from ") || begins(line, len, "import ")) &&
			 has(line, len, "execute");
	return begins(line, len, "def execute(") || begins(line, len, "async def execute(") ||
	       begins(line, len, "execute =") || begins(line, len, "execute=") || is_import;
}

/* Whether the number of these quotes on the line is odd, so that a text begins or ends in it. */
static bool toggles(const char *line, size_t len, const char *quotes)
{
	bool is_odd = false;
	const char *at = line;
	while ((at = memmem(at, len - (size_t)(at - line), quotes, strlen(quotes)))) {
		is_odd = !is_odd;
		at += strlen(quotes);
	}
	return is_odd;
}

static void check_print(const char *line, size_t len, size_t number, struct faults *faults)
{
	size_t at = 0;
	while (at < len && isspace((unsigned char)line[at]))
		at++;
	if (begins(line + at, len - at, "print(") && !has(line, len, "file=") &&
		!has(line, len, "pegfs-ignore"))
		faults_add(faults, FAULT_WARNING, "console-output", number, at + 1,
			"the agent never sees what is printed; return it, or report it by "
			"on_update");
}

void codecheck_python(const char *source, size_t len, struct faults *faults)
{
	bool has_execute = false, in_text = false;
	size_t number = 0;
	for (const char *line = source; line < source + len;) {
		const char *end = memchr(line, '\n', (size_t)(source + len - line));
		size_t line_len = (size_t)((end ? end : source + len) - line);
		number++;
		if (!in_text) {
			has_execute |= makes_execute(line, line_len);
			check_print(line, line_len, number, faults);
		}
		if (toggles(line, line_len, "\"\"\"") || toggles(line, line_len, "'''"))
			in_text = !in_text;
		line += line_len + 1;
	}
	if (!has_execute)
		faults_add(faults, FAULT_ERROR, "no-execute", 1, 1,
			"there is no function 'execute'; write "
			"'def execute(tool_call_id, params): ...'");
}
