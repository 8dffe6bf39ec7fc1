/*
 * One failure: a negative errno for the program, a sentence for a person. Functions that can fail
 * for a reason worth telling take a `struct fail *why` as their last parameter (never NULL), return
 * its code, and leave it alone on success. The first failure wins; callers add context; the place
 * that handles it reports it, once.
 *
 * Sentences: what failed, on what (quoted), why, what to do; lower-case start, no full stop, never
 * a secret.
 */
#ifndef PEGFS_BASE_FAIL_H
#define PEGFS_BASE_FAIL_H

#include <stddef.h>

#define FAIL_TEXT_MAX 2048

struct fail {
	int code; /* 0, or a negative errno */
	char text[FAIL_TEXT_MAX];
};

#define FAIL_INIT                                                                                  \
	{                                                                                          \
		.code = 0                                                                          \
	}

/* Sets code (a negative errno) and text if nothing has failed yet. Returns why->code. */
int fail_set(struct fail *why, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As fail_set with code -errno and ": strerror(errno)" behind the text. */
int fail_errno(struct fail *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " before the text. Does nothing where nothing has failed. Returns why->code. */
int fail_context(struct fail *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes *why fresh for another attempt. */
void fail_clear(struct fail *why);

#endif
