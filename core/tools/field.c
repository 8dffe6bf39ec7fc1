#include "core/tools/field.h"

#include <stdarg.h>
#include <string.h>

#include "core/base/xalloc.h"

static size_t line_of(const struct yaml_node *node)
{
	return node ? node->line : 0;
}

static size_t column_of(const struct yaml_node *node)
{
	return node ? node->column : 0;
}

void field_warn(struct field_reader *reader, const struct yaml_node *node, const char *code,
	const char *format, ...)
{
	if (++reader->warnings > FIELD_WARNINGS_MAX) {
		if (reader->warnings == FIELD_WARNINGS_MAX + 1)
			faults_add(reader->faults, FAULT_WARNING, "too-many-faults", line_of(node),
				column_of(node),
				"further warnings are left out from here on; mend these first");
		return;
	}
	va_list args;
	va_start(args, format);
	faults_vadd(
		reader->faults, FAULT_WARNING, code, line_of(node), column_of(node), format, args);
	va_end(args);
}

void field_fail(struct field_reader *reader, const struct yaml_node *node, const char *code,
	const char *format, ...)
{
	reader->failed = true;
	va_list args;
	va_start(args, format);
	faults_vadd(
		reader->faults, FAULT_ERROR, code, line_of(node), column_of(node), format, args);
	va_end(args);
}

struct scalar field_resolve(const struct yaml_node *node)
{
	if (node->kind != YAML_KIND_SCALAR || !node->plain)
		return (struct scalar){ .type = SCALAR_STRING };
	return scalar_resolve(node->text);
}

bool field_is_known(const char *key, const char *const *known, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(key, known[i]) == 0)
			return true;
	return false;
}

bool field_is_given(const struct yaml_node *node)
{
	return node && field_resolve(node).type != SCALAR_NULL;
}

char *field_take_text(struct field_reader *reader, const struct yaml_node *node, const char *what)
{
	if (node->kind != YAML_KIND_SCALAR)
		return NULL;
	if (node->cut)
		field_warn(reader, node, "comment-cut",
			"' #' begins a comment, so the rest of this line is not part of %s; put "
			"the value in quotes",
			what);
	static const char blanks[] = " \t\n";
	const char *text = node->text + strspn(node->text, blanks);
	size_t len = strlen(text);
	while (len > 0 && strchr(blanks, text[len - 1]))
		len--;
	return xstrndup(text, len);
}

void field_check_description(struct field_reader *reader, const struct yaml_node *node,
	const char *text, const char *what)
{
	size_t chars = 0;
	for (const char *c = text; *c; c++)
		chars += (*c & 0xc0) != 0x80;
	if (chars > FIELD_DESCRIPTION_MAX)
		field_warn(reader, node, "long-description",
			"%s has %zu characters, and some model APIs take %d; move the rest into "
			"the body",
			what, chars, FIELD_DESCRIPTION_MAX);
}
