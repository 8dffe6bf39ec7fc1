/*
 * Small, fixed allocations whose failure nobody could act on: they abort, and the mount goes on
 * with the next server. A size that anyone outside chose never comes here: it is limited first and
 * its failure is that caller's ENOMEM (struct buf).
 */
#ifndef PEGFS_BASE_XALLOC_H
#define PEGFS_BASE_XALLOC_H

#include <stddef.h>

/* Zeroed memory for count items of size bytes. */
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *ptr, size_t count, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t len) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/*
 * Room for one more item in a growing array: doubles *items when count has reached *capacity.
 * Use: list->items = xgrow(list->items, list->count, &list->capacity, sizeof(*list->items)).
 */
void *xgrow(void *items, size_t count, size_t *capacity, size_t size)
	__attribute__((returns_nonnull));

#endif
