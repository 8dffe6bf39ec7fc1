/*
 * What the next server must know of a `call` file, and how one is made anew from that.
 */
#ifndef PEGFS_FS_CALLKEPT_H
#define PEGFS_FS_CALLKEPT_H

#include "core/running/place.h"
#include "fs/state.h"

struct callfile;

/* Plain memory, in the state. */
struct kept {
	uint64_t reserved, seq, refused_seq;
	uint64_t start_unique;  /* of the write that started, or was to start, the call seq */
	uint64_t gather_unique; /* of the last write that was gathered */
	int64_t write_end, base;
	uint32_t opener_uid, opener_gid;
	uint64_t opener_caps;
	struct place opener_place;
	int32_t phase, sticky, outcome, show;
	uint32_t gathered; /* writes that were gathered, or are being */
	bool readable, result_read, awaited, detached, is_run, is_help;
};
_Static_assert(sizeof(struct kept) <= STATE_HANDLE_SIZE, "it has to fit into its place");

/* The part of a place in the state that is ours. */
struct kept *callkept_in(struct state_handle *place);

/* Brings it up to date: before anything is answered. */
void callkept_note(const struct callfile *file);

#endif
