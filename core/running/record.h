/*
 * What calls leave on disk, in a private directory on tmpfs: it outlives the server. One file a
 * call, put in place whole when the call ends: a header line of JSON with what struct call holds,
 * then the request, the result and its text. What grows while a call runs (log, progress) is
 * appended to files beside it.
 */
#ifndef PEGFS_RUNNING_RECORD_H
#define PEGFS_RUNNING_RECORD_H

#include <sys/types.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/running/call.h"

/* The bytes of the parts that a record file holds. */
struct record_parts {
	const char *request, *result_json, *result_text;
};

/* Writes the record; call->part_len says how long each part is. Returns 0 or a negative errno. */
int record_save(int dir_fd, const struct call *call, const struct record_parts *parts);

/* Writes the header of a record anew, in place; the lengths of its parts stay. 0 or a negative errno. */
int record_mark(int dir_fd, const struct call *call);

/*
 * Reads the header of a record that an earlier process has left: all of call but tool, whose tool_key()
 * is put into key. What grows has the length that it has now. 0, or a negative errno: -EPROTO
 * where it is no record.
 */
int record_load(int dir_fd, const char *file_name, struct call *call, char key[TOOL_KEY_MAX]);

/* Opens the growing file of a part (CALL_PART_LOG, CALL_PART_PROGRESS) for appending; caller's. */
int record_open_growing(int dir_fd, uint64_t seq, enum call_part part);

/*
 * Appends up to size bytes of a part, from offset on, to out; fewer only at the part's end. Returns 0
 * or *why.
 */
int record_read(int dir_fd, const struct call *call, enum call_part part, size_t offset,
	size_t size, struct buf *out, struct fail *why);

/*
 * Opens the file that holds a part, for who reads on when the call is forgotten; *offset is where the
 * part begins in it. The caller's descriptor, or a negative errno.
 */
int record_open(int dir_fd, const struct call *call, enum call_part part, off_t *offset);

/* Appends len bytes of fd from offset on. A file that ends earlier is an error, -EIO. */
int record_read_range(int fd, off_t offset, size_t len, struct buf *out);

/* Removes all files of a call. */
void record_remove(int dir_fd, uint64_t seq);

#endif
