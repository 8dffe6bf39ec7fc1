/*
 * The protocol between pegfs and a tool host.
 *
 * A stream socket (descriptor 3 of the host) carries JSON objects, one a line, both ways.
 *
 * To the host:
 *   {"type":"attach","key":K,"acked":N,...settings}   first, and again by each server that takes over
 *   {"type":"call","id":ID,"dir":DIR,"entry":FILE,"name":TOOL,"secrets":[...],"params":{...}}
 *       with "env":{NAME:VALUE,...}: with the first call of a host that was started for any tool
 *   {"type":"prepare","dir":DIR,"entry":FILE}          fill the cache; run nothing of the tool
 *   {"type":"abort","id":ID,"reason":TEXT}             fire the call's AbortSignal
 *   {"type":"ack","seq":N}                             forget your messages up to N
 *   {"type":"exit"}                                    go, nothing runs
 *
 * From the host, each with the key and a number that counts from 1, these two first:
 *   {"key":K,"seq":N,"type":"ready"}                   booted
 *   ... "type":"started","id":ID                       the call's code is about to be loaded or run
 *   ... "type":"stale","id":ID                         it was not: the tool's files have changed since
 *                                                      they were loaded; it wants a fresh host
 *   ... "type":"progress","id":ID,"partial":JSON
 *   ... "type":"result","id":ID,"value":JSON           "value" is left out for undefined
 *   ... "type":"failed","id":ID,"kind":WORD,"text":TEXT  a throw, a missing export, ...
 *   ... "type":"idle","id":ID,"clean":BOOL             after result or failed: whether the call left
 *                                                      timers, sockets or the like behind
 *   ... "type":"prepared","dir":DIR
 *
 * Nothing is lost when a server dies: the host keeps each message until it is acknowledged, and on
 * "attach" sends again all that follow the number acked. A message that was seen already is known by
 * its number and dropped. The old server may have read half a line, or written half of one: both
 * sides therefore begin every message with a newline, and empty lines mean nothing.
 *
 * The key is made by the server for each attach. Until a line begins with it, it is not ours: so the
 * rest of a line from before the attach is passed over, and so is whatever a tool writes to the
 * descriptor by accident. It keeps nobody out who means it, and need not: a host runs one tool with
 * the rights of one caller, and can at worst answer that caller's calls of that tool wrongly.
 */
#ifndef PEGFS_RUNNING_WIRE_H
#define PEGFS_RUNNING_WIRE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/fail.h"

#define WIRE_KEY_LEN 16
#define WIRE_ID_MAX 256
#define WIRE_ENVELOPE_MAX (64 * 1024) /* what a message may be longer than the value it carries */

enum wire_type {
	WIRE_READY,
	WIRE_STARTED,
	WIRE_STALE,
	WIRE_PROGRESS,
	WIRE_RESULT,
	WIRE_FAILED,
	WIRE_IDLE,
	WIRE_PREPARED,
};
#define WIRE_TYPES (WIRE_PREPARED + 1)

/* One message of a host. The strings and values are borrowed from body. */
struct wire_message {
	enum wire_type type;
	uint64_t seq;
	const char *id;      /* "" where the type has none */
	const char *kind;    /* of WIRE_FAILED; "" else */
	const char *text;    /* of WIRE_FAILED; "" else */
	const json_t *value; /* of WIRE_RESULT and WIRE_PROGRESS; NULL: undefined */
	bool clean;          /* of WIRE_IDLE */
	json_t *body;        /* owned; wire_message_release */
};

void wire_message_release(struct wire_message *message);

/* ---- reading */

struct wire_reader {
	char key[WIRE_KEY_LEN + 1];
	uint64_t seen;  /* the highest number so far: to acknowledge */
	size_t at;      /* where the next line starts in bytes */
	size_t scanned; /* up to here there is no newline in it */
	bool skipping;  /* the rest of a line that is not ours and longer than the limit */
	struct buf bytes;
};

/* line_max: bytes of one message. key: WIRE_KEY_LEN characters. seen: already acknowledged. */
void wire_reader_init(struct wire_reader *reader, const char *key, uint64_t seen, size_t line_max);
void wire_reader_release(struct wire_reader *reader);

/*
 * Room for `more` bytes at the end of reader->bytes, into which the caller reads and by whose count
 * it then raises bytes.len. 0 or a negative errno.
 */
int wire_reader_reserve(struct wire_reader *reader, size_t more);

/*
 * 1 and a message (release it), 0 where a whole one has not come yet, or a negative errno and *why:
 * a message with our key that is too long (-EFBIG) or cannot be understood (-EPROTO). Nothing more
 * is to be read from that host then.
 */
int wire_next(struct wire_reader *reader, struct wire_message *message, struct fail *why);

/* What a call is; all borrowed. */
struct wire_call {
	const char *id;
	const char *name; /* of the tool */
	const char *dir;  /* its directory, absolute */
	const char *entry;
	const json_t *secrets; /* names of its sensitive inputs, an array */
	const json_t *env;  /* an object: the environment from here on; NULL: as it was started */
	const char *params; /* JSON text on one line */
};

/* ---- writing: all append one line to out; 0 or a negative errno */

int wire_put_attach(struct buf *out, const char *key, uint64_t acked, const json_t *settings);
int wire_put_call(struct buf *out, const struct wire_call *call);
int wire_put_prepare(struct buf *out, const char *dir, const char *entry);
int wire_put_abort(struct buf *out, const char *id, const char *reason);
int wire_put_ack(struct buf *out, uint64_t seq);
int wire_put_exit(struct buf *out);

/* A fresh key. */
void wire_make_key(char key[WIRE_KEY_LEN + 1]);

#endif
