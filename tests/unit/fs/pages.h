/*
 * Memory for a struct state, which lies on pages of its own: malloc(3) knows no such alignment.
 */
#ifndef PEGFS_TESTS_UNIT_FS_PAGES_H
#define PEGFS_TESTS_UNIT_FS_PAGES_H

#include <stdlib.h>
#include <string.h>

/* Zeroed, to be freed with free(3). Never NULL, as xcalloc(). */
static inline void *pages_calloc(size_t size)
{
	size_t whole = (size + 4095) / 4096 * 4096;
	void *memory = aligned_alloc(4096, whole);
	if (!memory)
		abort();
	return memset(memory, 0, whole);
}

#endif
