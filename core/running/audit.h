/*
 * The audit trail: who called what, when, and how it ended; which server served, and which tools
 * there were. A record is one line of JSON that begins with time, uid and pid namespace, by which it is
 * known who may read it. It holds numbers, states, and names of tools and calls, and no text of anybody: neither
 * a parameter nor what a tool says can come here.
 *
 *   {"time":"2026-11-30T20:15:00.123Z","uid":1000,"pid_ns":4026531836,"event":"call",
 *    "id":"6a3f...","tool":"hello","version":1,"gid":1000,"pid":4242}
 *   {..., "event":"end", the same, "state":"done","waited_ms":0,"ran_ms":12}
 *   {..., "event":"server","pid":17,"generation":2}
 *   {..., "event":"tools","count":12,"faults":0}
 *
 * The last records lie in two files of the private directory, which outlive the server: the older one
 * goes when the newer is full. Each may also be written to a file of the administrator's choice,
 * whose size is for him to bound: where it has been moved away it is made anew.
 */
#ifndef PEGFS_RUNNING_AUDIT_H
#define PEGFS_RUNNING_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/buf.h"
#include "core/base/fail.h"
#include "core/running/call.h"

#define AUDIT_SIZE_MAX ((size_t)1 << 20) /* bytes kept in all */
#define AUDIT_STDERR "-"                 /* as the file: standard error, for the journal */

struct audit {
	int dir_fd;       /* borrowed */
	size_t size_max;  /* of both files */
	int fd;           /* owned; the newer file */
	const char *path; /* borrowed; where each record is written to as well; NULL: nowhere */
	int path_fd;      /* owned; or standard error */
	bool complained;  /* that a record could not be written */
	uint64_t pid_ns;  /* this process's own */
};

#define AUDIT_INIT                                                                                 \
	{                                                                                          \
		.dir_fd = -1, .fd = -1, .path_fd = -1                                              \
	}

/* dir_fd and path are borrowed. 0 or *why; to be released in every case. */
int audit_open(
	struct audit *audit, int dir_fd, size_t size_max, const char *path, struct fail *why);
void audit_release(struct audit *audit);

/* One record each. A trail that cannot be written is complained of in the log, and stops nobody. */
void audit_call(struct audit *audit, const struct call *call);
void audit_end(struct audit *audit, const struct call *call);
void audit_server(struct audit *audit, uint64_t generation);
void audit_tools(struct audit *audit, size_t count, size_t faults);

/* Who reads: all records, or those of a uid in a pid namespace (0: not known, any). */
struct audit_reader {
	bool all;
	uid_t uid;
	uint64_t pid_ns;
};

/* Appends the records that the reader may see, the oldest first. 0 or a negative errno. */
int audit_render(const struct audit *audit, const struct audit_reader *reader, struct buf *out);

#endif
