/*
 * Release at the end of a scope. A local that is declared with one of these words is released when
 * its block ends, on every path; what leaves the function is taken out of its hands with take_fd()
 * or take_ptr().
 */
#ifndef PEGFS_BASE_AUTO_H
#define PEGFS_BASE_AUTO_H

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

/* Closes a descriptor that is held (not -1). Keeps errno, so a failing path can still report it. */
void auto_close_fd(const int *fd);

static inline void auto_free_ptr(void *ptr)
{
	free(*(void **)ptr);
}

static inline void auto_closedir_ptr(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static inline void auto_json_ptr(json_t **json)
{
	json_decref(*json);
}

#define auto_close __attribute__((cleanup(auto_close_fd)))
#define auto_free __attribute__((cleanup(auto_free_ptr)))
#define auto_closedir __attribute__((cleanup(auto_closedir_ptr)))
#define auto_json __attribute__((cleanup(auto_json_ptr)))

/* The descriptor becomes the caller's; the local holds -1 afterwards. */
static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

/* The pointer in *slot becomes the caller's; the local holds NULL afterwards. */
static inline void *take_ptr(void *slot)
{
	void *taken = *(void **)slot;
	*(void **)slot = NULL;
	return taken;
}

#endif
