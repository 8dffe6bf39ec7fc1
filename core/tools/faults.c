#include "core/tools/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

void faults_release(struct faults *faults)
{
	for (size_t i = 0; i < faults->count; i++) {
		free(faults->items[i].file);
		free(faults->items[i].text);
	}
	free(faults->items);
	*faults = (struct faults)FAULTS_INIT;
}

static struct fault *append(struct faults *faults)
{
	faults->items =
		xgrow(faults->items, faults->count, &faults->capacity, sizeof(*faults->items));
	return &faults->items[faults->count++];
}

void faults_add(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		abort();
	*append(faults) = (struct fault){
		.level = level, .code = code, .line = line, .column = column, .text = text
	};
}

void faults_move(struct faults *to, struct faults *from, const char *file)
{
	for (size_t i = 0; i < from->count; i++) {
		struct fault *fault = append(to);
		*fault = from->items[i];
		if (!fault->file && file)
			fault->file = xstrdup(file);
	}
	from->count = 0;
	faults_release(from);
}

static void render_one(const struct fault *fault, struct buf *out)
{
	if (fault->file)
		buf_puts(out, fault->file);
	if (fault->line)
		buf_printf(out, ":%zu", fault->line);
	if (fault->line && fault->column)
		buf_printf(out, ":%zu", fault->column);
	buf_printf(out, ": %s: %s [%s]\n", fault->level == FAULT_ERROR ? "error" : "warning",
		fault->text, fault->code);
}

void faults_render(const struct faults *faults, struct buf *out)
{
	for (size_t i = 0; i < faults->count; i++)
		render_one(&faults->items[i], out);
}
