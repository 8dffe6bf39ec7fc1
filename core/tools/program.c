#include "core/tools/program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/utf8.h"
#include "core/base/xalloc.h"
#include "core/tools/shell.h"

#define WORD_MAX (5 * PROGRAM_NAME_MAX) /* each character may be a quoted quote */

static char *word_of(const char *text, size_t len)
{
	auto_buf struct buf plain = BUF_INIT(PROGRAM_NAME_MAX);
	auto_buf struct buf word = BUF_INIT(WORD_MAX);
	buf_append(&plain, text, len);
	if (len > 0)
		shell_word(&word, buf_str(&plain));
	return xstrdup(buf_str(&word));
}

void program_of_tool(const char *tool_name, char **program, char **dir)
{
	*dir = word_of(tool_name, strlen(tool_name));
	*program = xasprintf("%s/run", *dir);
}

static bool shows_well(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return len <= PROGRAM_NAME_MAX && utf8_valid_len(text, len) == len;
}

void program_replace(const char *given, char **program, char **dir)
{
	size_t len = strlen(given);
	const char *slash = strrchr(given, '/');
	if (!slash || !shows_well(given, len))
		return;
	free(*program);
	free(*dir);
	*program = word_of(given, len);
	*dir = word_of(given, (size_t)(slash - given));
}
