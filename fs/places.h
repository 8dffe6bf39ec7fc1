/*
 * Numbers for trees and tools of many users, from which node numbers are made: each is given once, is
 * never given again, and means the same to the next server, which reads it in a file on tmpfs. So
 * nobody can make a name that gets the number of what another user has.
 *
 * What has a number has a key: "name/" a user's tree, "name/tool" a tool in it.
 */
#ifndef PEGFS_FS_PLACES_H
#define PEGFS_FS_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/map.h"

struct places {
	struct map by_key;    /* hash of the key -> owned list of struct place */
	struct map by_number; /* the same, borrowed */
	uint32_t next;
	size_t sweep_at; /* with so many it is looked for those that are gone */
	int dir_fd;      /* borrowed: where the file is */
	int journal_fd;  /* owned; 0: none */
	bool (*is_there)(void *arg, const char *key); /* whether anybody may still want it */
	void *arg;
};

/* Reads what earlier servers gave, and notes there from now on what is given. */
void places_load(struct places *places, int dir_fd);
void places_release(struct places *places);

/* The number of a key, never 0. */
uint32_t places_number(struct places *places, const char *key);

/* The key of a number, borrowed; NULL where none was given, or what had it has been gone for long. */
const char *places_key(const struct places *places, uint32_t number);

#endif
