/*
 * Gathers the bytes that are written to a call file until a request is complete. There are two
 * forms: one JSON object, and the words that a tool's `run` hands over (arguments.h says what they
 * mean, and describes the protocol). Here is only found where a request ends, over any division
 * into writes; whether it is a good one is for params_parse() and arguments_read() to say.
 * call-semantics.md 4.4, step 2.
 */
#ifndef PEGFS_TOOLS_DOCUMENT_H
#define PEGFS_TOOLS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/buf.h"
#include "core/base/fail.h"

#define DOCUMENT_WORDS_MAX 4096 /* of one request by `run` */

enum document_state { DOCUMENT_EMPTY, DOCUMENT_OPEN, DOCUMENT_COMPLETE };
enum document_kind { DOCUMENT_JSON, DOCUMENT_RUN };

/* What comes next of a request by `run`. */
enum document_part {
	DOCUMENT_MARK,  /* "run" */
	DOCUMENT_COUNT, /* of words, with a '+' behind it where a text follows them */
	DOCUMENT_WORDS, /* the program's name, then the words */
	DOCUMENT_TEXT,
	DOCUMENT_END, /* how the text ended: "end" or "cut" */
};

struct document {
	struct buf bytes; /* all that was written, what is around a JSON object included */
	enum document_state state;
	/* Known from the first byte; stays after an error, for who wrote it wants an answer of its kind. */
	enum document_kind kind;
	/* of DOCUMENT_JSON */
	unsigned depth;
	unsigned bom; /* bytes of a byte order mark seen so far */
	bool in_string, escaped;
	/* of DOCUMENT_RUN */
	enum document_part part;
	size_t part_at;       /* in bytes: where the part that comes in has begun */
	size_t words_at;      /* in bytes: where the program's name is */
	size_t words_to_come; /* the program's name included */
	size_t word_count;    /* the program's name not included */
	bool has_text;
	size_t text_at; /* in bytes */
};

/* A complete request by `run`; all is borrowed from the document. */
struct document_run {
	const char *program; /* by which name it was started, as the shell knows it */
	const char *words;   /* word_count strings, one behind the other, each with its NUL */
	size_t word_count;
	const char *
		text; /* what came from standard input, NUL-terminated; NULL: nobody looked there */
	size_t text_len;
	bool text_is_cut; /* standard input could not be read to its end */
};

void document_init(struct document *document, size_t size_max);
void document_release(struct document *document);

/* Drops what was gathered; the limit stays. */
void document_reset(struct document *document);

/*
 * Adds the bytes of one write. Returns 0 (look at state), or *why: -EINVAL where the first byte
 * begins no request, a NUL comes where none may, something follows the request in the same write,
 * or `run` hands over too much; -EFBIG, -ENOMEM. After an error the document is only good for
 * document_reset, and for a look at its kind.
 */
int document_add(struct document *document, const char *bytes, size_t len, struct fail *why);

/* The parts of a complete request of DOCUMENT_RUN. */
struct document_run document_get_run(const struct document *document);

/* Whether there is nothing in it but JSON's white space (RFC 8259, 2). */
bool document_is_blank(const char *bytes, size_t len);

#endif
