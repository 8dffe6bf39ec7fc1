/*
 * JavaScript or TypeScript source -> tokens, for rules that look at code without understanding all
 * of it. Comments are no tokens; strings, templates and regular expressions are one each, so that a
 * word in them is no code.
 *
 * What begins with `/` is a regular expression where an operand may begin, which is told from what
 * stands before it: an operator, an opening bracket, a word such as `return`, the `)` of an `if`, the
 * `}` of a block. A template is told as pieces: `a${b}c` is TEMPLATE PUNCT("${") WORD PUNCT("}")
 * TEMPLATE.
 */
#ifndef PEGFS_TOOLS_JSTOKEN_H
#define PEGFS_TOOLS_JSTOKEN_H

#include <stdbool.h>
#include <stddef.h>

#define JSTOKEN_NONE ((size_t)-1)

enum jstoken_kind {
	JSTOKEN_END,      /* the last one, always there */
	JSTOKEN_WORD,     /* a name or a keyword; also #private */
	JSTOKEN_NUMBER,   /* */
	JSTOKEN_STRING,   /* with its quotes */
	JSTOKEN_TEMPLATE, /* a piece, with the backticks at the ends of the whole */
	JSTOKEN_REGEX,    /* with its flags */
	JSTOKEN_PUNCT,    /* => ?. ... ++ -- && || ?? ${ = == ===, else one character */
};

struct jstoken {
	enum jstoken_kind kind;
	const char *text; /* borrowed from the source */
	size_t len;
	size_t line;      /* from 1 */
	size_t line_from; /* offset of the line's first byte in the source */
	size_t match;     /* of a bracket: the index of its partner; else JSTOKEN_NONE */
	size_t depth;     /* brackets open around it */
	bool ends_block;  /* a `}` after which a statement begins */
};

/* A comment that holds the word pegfs-ignore. */
struct jstoken_remark {
	size_t line; /* on which it ends */
	const char *text;
	size_t len;
};

struct jstokens {
	const char *source; /* borrowed; outlives this */
	size_t source_len;
	struct jstoken *items; /* owned; ends with JSTOKEN_END */
	size_t count, capacity;
	struct jstoken_remark *remarks; /* owned */
	size_t remark_count, remark_capacity;
};

/* Where the source is no JavaScript. */
struct jstoken_problem {
	size_t line, column;
	char text[128];
};

/*
 * Fills *tokens, which the caller releases also after a failure. source need not end with a NUL.
 * Returns 0, or -EINVAL and *problem: something has no end, or brackets do not fit.
 */
int jstokens_scan(
	const char *source, size_t len, struct jstokens *tokens, struct jstoken_problem *problem);
void jstokens_release(struct jstokens *tokens);

/* Whether the token at index is this word or punctuation (never a string). Any index is allowed. */
bool jstokens_is(const struct jstokens *tokens, size_t index, const char *text);

/* The column of a token, from 1, in characters. */
size_t jstokens_column(const struct jstokens *tokens, const struct jstoken *token);

#define JSTOKENS_INIT                                                                              \
	{                                                                                          \
		.source = NULL                                                                     \
	}
#define auto_jstokens __attribute__((cleanup(jstokens_release)))

#endif
