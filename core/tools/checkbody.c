#include "core/tools/checkbody.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/tools/params.h"

enum section {
	SECTION_USAGE,
	SECTION_EXAMPLES,
	SECTION_AUTHENTICATION,
	SECTION_ERRORS,
	SECTION_NOTES,
	SECTION_COUNT,
};

static const char *const titles[] = { [SECTION_USAGE] = "Usage",
	[SECTION_EXAMPLES] = "Examples",
	[SECTION_AUTHENTICATION] = "Authentication",
	[SECTION_ERRORS] = "Error Handling",
	[SECTION_NOTES] = "Notes" };
_Static_assert(sizeof(titles) / sizeof(*titles) == SECTION_COUNT, "one title a section");

struct body {
	const struct tool *tool;
	struct faults *faults;
	size_t line; /* of the line at hand; 0: unknown */
	bool has_title;
	bool has[SECTION_COUNT];
	bool in_examples;
	char fence; /* the character of the code fence that is open, or '\0' */
};

/* ---- headings */

/* Whether text (without blanks around it) begins with title, ignoring case. */
static bool is_title(const char *text, size_t len, const char *title)
{
	size_t title_len = strlen(title);
	return len >= title_len && strncasecmp(text, title, title_len) == 0 &&
	       (len == title_len || !isalnum((unsigned char)text[title_len]));
}

static void read_heading(struct body *body, const char *line, size_t len)
{
	size_t level = 0;
	while (level < len && line[level] == '#')
		level++;
	if (level > 6 || (level < len && line[level] != ' ' && line[level] != '\t'))
		return;
	while (level < len && isspace((unsigned char)line[level]))
		level++;
	if (line[1] != '#') {
		body->has_title = true;
		return;
	}
	if (line[2] != '#')
		body->in_examples = false;
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (is_title(line + level, len - level, titles[i])) {
			body->has[i] = true;
			body->in_examples = i == SECTION_EXAMPLES;
		}
}

/* ---- examples */

/* Whether an object is meant as parameters: it has at least one of the tool's inputs. */
static bool is_call(const struct tool *tool, json_t *json)
{
	const char *key;
	json_t *value;
	json_object_foreach(json, key, value)
	{
		if (tool_find_input(tool, key))
			return true;
	}
	return false;
}

static void check_call(struct body *body, const char *text, size_t len, size_t column)
{
	struct fail why = FAIL_INIT, refused = FAIL_INIT;
	auto_json json_t *json = params_parse(text, len, &why);
	if (!json || !is_call(body->tool, json))
		return; /* a result, or a way of writing that is not meant as JSON */
	auto_buf struct buf warnings = BUF_INIT(PARAMS_TEXT_MAX);
	auto_json json_t *done = params_check(body->tool, json, &warnings, &refused);
	const char *told = done ? buf_str(&warnings) : refused.text;
	if (*told)
		faults_add(body->faults, FAULT_WARNING, "bad-example", body->line, column,
			"this example is no valid call: %.*s", (int)strcspn(told, "\n"), told);
}

/* The length of the JSON object that begins at text, as far as braces tell; 0: it does not end. */
static size_t object_length(const char *text, size_t len)
{
	size_t depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && text[i] == '{')
			depth++;
		else if (!in_string && text[i] == '}' && --depth == 0)
			return i + 1;
	}
	return 0;
}

static void read_example(struct body *body, const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		size_t size = line[i] == '{' ? object_length(line + i, len - i) : 0;
		if (size == 0)
			continue;
		check_call(body, line + i, size, i + 1);
		i += size - 1;
	}
}

/* ---- lines */

/* Whether the line opens or closes a code fence. */
static bool read_fence(struct body *body, const char *line, size_t len)
{
	size_t at = 0;
	while (at < len && at < 3 && line[at] == ' ')
		at++;
	bool is_fence = len - at >= 3 && (line[at] == '`' || line[at] == '~') &&
			line[at + 1] == line[at] && line[at + 2] == line[at];
	if (!is_fence || (body->fence && body->fence != line[at]))
		return false;
	body->fence = body->fence ? '\0' : line[at];
	return true;
}

static void read_line(struct body *body, const char *line, size_t len)
{
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		len--;
	if (len == 0)
		return;
	if (read_fence(body, line, len))
		return;
	if (!body->fence && line[0] == '#')
		read_heading(body, line, len);
	else if (body->in_examples)
		read_example(body, line, len);
}

static void check_sections(struct body *body, size_t first_line, bool has_secrets)
{
	auto_buf struct buf missing = BUF_INIT(1024);
	if (!body->has_title)
		faults_add(body->faults, FAULT_WARNING, "missing-title", first_line, 0,
			"the body has no title; begin it with '# Name of the tool'");
	for (size_t i = 0; i < SECTION_COUNT; i++)
		if (!body->has[i] && (i != SECTION_AUTHENTICATION || has_secrets))
			buf_printf(&missing, "%s'## %s'", missing.len ? ", " : "", titles[i]);
	if (missing.len > 0)
		faults_add(body->faults, FAULT_WARNING, "missing-section", first_line, 0,
			"the body, from which agents learn to use the tool, lacks %s",
			buf_str(&missing));
}

void checkbody_run(
	const struct tool *tool, size_t first_line, bool has_secrets, struct faults *faults)
{
	struct body body = { .tool = tool, .faults = faults, .line = first_line };
	const char *end = tool->body + tool->body_len;
	for (const char *line = tool->body; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((stop ? stop : end) - line);
		read_line(&body, line, len);
		line += len + 1;
		body.line += first_line ? 1 : 0;
	}
	for (size_t i = 0; i < tool->input_count; i++)
		has_secrets |= tool->inputs[i].sensitive;
	check_sections(&body, first_line, has_secrets);
	if (tool->body_len > CHECKBODY_SIZE_MAX)
		faults_add(faults, FAULT_WARNING, "long-body", first_line, 0,
			"the body has %zu KiB, and every agent that reads it pays for them; keep it "
			"below %d KiB",
			tool->body_len / 1024, CHECKBODY_SIZE_MAX / 1024);
}
