#include "core/tools/faults.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/base/xalloc.h"

#define FAULT_TEXT_MAX 1024

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

static bool is_control(const char *text)
{
	unsigned char byte = (unsigned char)text[0];
	/* C1 controls are two bytes in UTF-8: some terminals obey them as they obey ESC. */
	return byte < 0x20 || byte == 0x7f || (byte == 0xc2 && (unsigned char)text[1] < 0xa0);
}

/* Text comes from files and file names: nothing in it may forge a line or speak to a terminal. */
static void append_clean(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	for (size_t at = 0; at < len;) {
		size_t step = utf8_char_len(text + at, len - at);
		if (step > 0 && !is_control(text + at)) {
			buf_append(out, text + at, step);
			at += step;
		} else {
			buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text[at++]);
		}
	}
}

static char *cleaned(const char *text)
{
	struct buf clean = BUF_INIT(FAULT_TEXT_MAX * 4);
	append_clean(&clean, text);
	char *taken = buf_take(&clean);
	return taken ? taken : xstrdup("out of memory");
}

void faults_vadd(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, va_list args)
{
	char text[FAULT_TEXT_MAX];
	vsnprintf(text, sizeof(text), format, args);
	utf8_trim_partial(text);
	*append(faults) = (struct fault){
		.level = level, .code = code, .line = line, .column = column, .text = cleaned(text)
	};
}

void faults_add(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	faults_vadd(faults, level, code, line, column, format, args);
	va_end(args);
}

bool faults_have_error(const struct faults *faults)
{
	for (size_t i = 0; i < faults->count; i++)
		if (faults->items[i].level == FAULT_ERROR)
			return true;
	return false;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool faults_equal(const struct faults *a, const struct faults *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct fault *one = &a->items[i], *other = &b->items[i];
		if (one->level != other->level || one->line != other->line ||
			one->column != other->column || !same_text(one->code, other->code) ||
			!same_text(one->file, other->file) || !same_text(one->text, other->text))
			return false;
	}
	return true;
}

void faults_copy(struct faults *to, const struct faults *from)
{
	for (size_t i = 0; i < from->count; i++) {
		struct fault *fault = append(to);
		*fault = from->items[i];
		fault->file = fault->file ? xstrdup(fault->file) : NULL;
		fault->text = xstrdup(fault->text);
	}
}

struct faults_excerpt faults_excerpt(const char *text)
{
	static const char more[] = "...";
	struct faults_excerpt excerpt;
	size_t room = sizeof(excerpt.text) - sizeof(more);
	snprintf(excerpt.text, room + 1, "%s", text);
	if (strlen(text) > room) {
		utf8_trim_partial(excerpt.text);
		memcpy(excerpt.text + strlen(excerpt.text), more, sizeof(more));
	}
	return excerpt;
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
		append_clean(out, fault->file);
	if (fault->line)
		buf_printf(out, ":%zu", fault->line);
	if (fault->line && fault->column)
		buf_printf(out, ":%zu", fault->column);
	buf_printf(out, "%s%s: %s [%s]\n", fault->file || fault->line ? ": " : "",
		fault->level == FAULT_ERROR ? "error" : "warning", fault->text, fault->code);
}

void faults_render(const struct faults *faults, struct buf *out)
{
	for (size_t i = 0; i < faults->count; i++)
		render_one(&faults->items[i], out);
}
