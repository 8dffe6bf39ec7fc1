/*
 * What is wrong with tool directories, for people: each fault names a place and says what to do.
 * They are shown in .pegfs/errors and by `pegfs check`.
 */
#ifndef PEGFS_TOOLS_FAULTS_H
#define PEGFS_TOOLS_FAULTS_H

#include <stddef.h>

#include "core/base/buf.h"

enum fault_level {
	FAULT_WARNING, /* the tool is usable */
	FAULT_ERROR,   /* the tool is not shown */
};

struct fault {
	enum fault_level level;
	const char *code; /* borrowed, static: "yaml-syntax", "missing-entry", ... */
	char *file;       /* owned; a path, or NULL: the TOOL.md at hand */
	size_t line;      /* from 1; 0: the file as a whole */
	size_t column;    /* from 1, in characters; 0: the line as a whole */
	char *text;       /* owned */
};

struct faults {
	struct fault *items; /* owned */
	size_t count, capacity;
};

#define FAULTS_INIT                                                                                \
	{                                                                                          \
		.items = NULL, .count = 0, .capacity = 0                                           \
	}

void faults_release(struct faults *faults);
void faults_add(struct faults *faults, enum fault_level level, const char *code, size_t line,
	size_t column, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* Moves all of `from` to the end of `to`; those without a file get a copy of file (may be NULL). */
void faults_move(struct faults *to, struct faults *from, const char *file);

/* One line a fault, as compilers write: "FILE:LINE:COLUMN: error: TEXT [CODE]". */
void faults_render(const struct faults *faults, struct buf *out);

#define auto_faults __attribute__((cleanup(faults_release)))

#endif
