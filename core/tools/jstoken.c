#include "core/tools/jstoken.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/xalloc.h"

/* A bracket that is open. */
struct bracket {
	size_t token;
	bool is_block; /* of `{`: statements are in it, or a class's members */
};

struct scanner {
	struct jstokens *tokens;
	const char *source;
	size_t len, at;
	size_t line, line_from; /* of `at` */
	struct bracket *open;   /* owned */
	size_t open_count, open_capacity;
	struct jstoken_problem *problem;
	bool failed;
};

/* ---- reading on */

static char peek(const struct scanner *scanner, size_t ahead)
{
	size_t at = scanner->at + ahead;
	return at < scanner->len ? scanner->source[at] : '\0';
}

static bool at_end(const struct scanner *scanner)
{
	return scanner->at >= scanner->len;
}

static void step(struct scanner *scanner)
{
	bool is_line_end = scanner->source[scanner->at++] == '\n';
	if (!is_line_end)
		return;
	scanner->line++;
	scanner->line_from = scanner->at;
}

static size_t count_characters(const char *bytes, size_t len)
{
	size_t count = 0;
	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
	return count;
}

static void fail_at(struct scanner *scanner, const struct jstoken *token, const char *text)
{
	if (scanner->failed)
		return;
	scanner->failed = true;
	scanner->problem->line = token->line;
	scanner->problem->column = jstokens_column(scanner->tokens, token);
	snprintf(scanner->problem->text, sizeof(scanner->problem->text), "%s", text);
}

/* ---- tokens */

static struct jstoken begin(const struct scanner *scanner, enum jstoken_kind kind)
{
	return (struct jstoken){ .kind = kind,
		.text = scanner->source + scanner->at,
		.line = scanner->line,
		.line_from = scanner->line_from,
		.match = JSTOKEN_NONE,
		.depth = scanner->open_count };
}

static struct jstoken *finish(struct scanner *scanner, struct jstoken token)
{
	struct jstokens *tokens = scanner->tokens;
	token.len = (size_t)(scanner->source + scanner->at - token.text);
	tokens->items =
		xgrow(tokens->items, tokens->count, &tokens->capacity, sizeof(*tokens->items));
	tokens->items[tokens->count] = token;
	return &tokens->items[tokens->count++];
}

/* Asked some hundred times a token: the first byte tells most of them apart. */
static inline bool same(const struct jstoken *token, const char *text)
{
	if ((token->kind != JSTOKEN_WORD && token->kind != JSTOKEN_PUNCT) ||
		token->text[0] != text[0])
		return false;
	return token->len == strlen(text) && memcmp(token->text, text, token->len) == 0;
}

static bool is_any(const struct jstoken *token, const char *const *texts)
{
	for (; *texts; texts++)
		if (same(token, *texts))
			return true;
	return false;
}

static const struct jstoken *last(const struct scanner *scanner)
{
	size_t count = scanner->tokens->count;
	return count ? &scanner->tokens->items[count - 1] : NULL;
}

/* Words behind which an operand begins. */
static const char *const before_operands[] = { "return", "typeof", "case", "in", "of", "delete",
	"void", "throw", "new", "else", "do", "await", "yield", "instanceof", "extends", "default",
	NULL };

/* Whether what `)` closes is the head of a statement: `if (a) /b/.test(c)`. */
static bool ends_head(const struct scanner *scanner, const struct jstoken *token)
{
	static const char *const heads[] = { "if", "while", "for", "with", NULL };
	return token->match != JSTOKEN_NONE && token->match > 0 &&
	       is_any(&scanner->tokens->items[token->match - 1], heads);
}

/* Whether an operand may begin here, and so a regular expression. */
static bool may_begin_operand(const struct scanner *scanner)
{
	const struct jstoken *token = last(scanner);
	if (!token)
		return true;
	if (token->kind == JSTOKEN_WORD) {
		const struct jstoken *before = token - 1;
		bool is_member =
			token > scanner->tokens->items && (same(before, ".") || same(before, "?."));
		return !is_member && is_any(token, before_operands);
	}
	if (token->kind != JSTOKEN_PUNCT || same(token, "]") || same(token, "++") ||
		same(token, "--"))
		return false;
	if (same(token, ")"))
		return ends_head(scanner, token);
	return same(token, "}") ? token->ends_block : true;
}

/* ---- what is no code */

static void skip_line(struct scanner *scanner)
{
	while (!at_end(scanner) && peek(scanner, 0) != '\n')
		scanner->at++;
}

static void skip_block_comment(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_END);
	scanner->at += 2;
	while (!at_end(scanner) && !(peek(scanner, 0) == '*' && peek(scanner, 1) == '/'))
		step(scanner);
	if (at_end(scanner))
		fail_at(scanner, &token, "a comment has no end; close it with */");
	else
		scanner->at += 2;
}

static void keep_remark(struct scanner *scanner, const char *text)
{
	static const char mark[] = "pegfs-ignore";
	struct jstokens *tokens = scanner->tokens;
	size_t len = (size_t)(scanner->source + scanner->at - text);
	if (!memmem(text, len, mark, strlen(mark)))
		return;
	tokens->remarks = xgrow(tokens->remarks, tokens->remark_count, &tokens->remark_capacity,
		sizeof(*tokens->remarks));
	tokens->remarks[tokens->remark_count++] =
		(struct jstoken_remark){ .line = scanner->line, .text = text, .len = len };
}

/* Returns whether there was a comment. */
static bool skip_comment(struct scanner *scanner)
{
	if (peek(scanner, 0) != '/' || (peek(scanner, 1) != '/' && peek(scanner, 1) != '*'))
		return false;
	const char *text = scanner->source + scanner->at;
	if (peek(scanner, 1) == '/')
		skip_line(scanner);
	else
		skip_block_comment(scanner);
	keep_remark(scanner, text);
	return true;
}

/* ---- literals */

static void scan_string(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_STRING);
	char quote = peek(scanner, 0);
	scanner->at++;
	while (!at_end(scanner) && peek(scanner, 0) != quote && peek(scanner, 0) != '\n') {
		if (peek(scanner, 0) == '\\' && scanner->at + 1 < scanner->len)
			step(scanner);
		step(scanner);
	}
	if (peek(scanner, 0) == quote && !at_end(scanner))
		scanner->at++;
	else
		fail_at(scanner, &token, "a string has no end on its line");
	finish(scanner, token);
}

static void open_bracket(struct scanner *scanner, struct jstoken token, bool is_block);

/* A piece of a template: up to its end, or to `${`, which is the next token. */
static void scan_template(struct scanner *scanner, struct jstoken token)
{
	while (!at_end(scanner) && peek(scanner, 0) != '`' &&
		!(peek(scanner, 0) == '$' && peek(scanner, 1) == '{')) {
		if (peek(scanner, 0) == '\\' && scanner->at + 1 < scanner->len)
			step(scanner);
		step(scanner);
	}
	bool is_whole = !at_end(scanner) && peek(scanner, 0) == '`';
	if (at_end(scanner))
		fail_at(scanner, &token, "a template has no end; close it with `");
	if (is_whole)
		scanner->at++;
	finish(scanner, token);
	if (is_whole || at_end(scanner))
		return;
	struct jstoken opening = begin(scanner, JSTOKEN_PUNCT);
	scanner->at += 2;
	open_bracket(scanner, opening, false);
}

static bool is_word_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_' || byte == '$' || byte == '\\' ||
	       (unsigned char)byte >= 0x80;
}

static void scan_regex(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_REGEX);
	bool in_class = false;
	scanner->at++;
	while (!at_end(scanner) && peek(scanner, 0) != '\n') {
		char byte = peek(scanner, 0);
		if (byte == '/' && !in_class)
			break;
		if (byte == '[')
			in_class = true;
		else if (byte == ']')
			in_class = false;
		else if (byte == '\\' && peek(scanner, 1) != '\n' && scanner->at + 1 < scanner->len)
			scanner->at++;
		scanner->at++;
	}
	if (peek(scanner, 0) == '/')
		scanner->at++;
	else
		fail_at(scanner, &token, "a regular expression has no end on its line");
	while (is_word_byte(peek(scanner, 0)))
		scanner->at++;
	finish(scanner, token);
}

static void scan_word(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_WORD);
	scanner->at++; /* may be # */
	while (is_word_byte(peek(scanner, 0)))
		scanner->at++;
	finish(scanner, token);
}

static void scan_number(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_NUMBER);
	while (is_word_byte(peek(scanner, 0)) ||
		(peek(scanner, 0) == '.' && isdigit((unsigned char)peek(scanner, 1))))
		scanner->at++;
	finish(scanner, token);
}

/* ---- brackets and operators */

static void open_bracket(struct scanner *scanner, struct jstoken token, bool is_block)
{
	scanner->open = xgrow(scanner->open, scanner->open_count, &scanner->open_capacity,
		sizeof(*scanner->open));
	scanner->open[scanner->open_count++] =
		(struct bracket){ .token = scanner->tokens->count, .is_block = is_block };
	finish(scanner, token);
}

static char closer_of(const struct jstoken *opening)
{
	switch (opening->text[0]) {
	case '(':
		return ')';
	case '[':
		return ']';
	default:
		return '}';
	}
}

static void close_bracket(struct scanner *scanner)
{
	struct jstoken token = begin(scanner, JSTOKEN_PUNCT);
	char byte = peek(scanner, 0);
	scanner->at++;
	if (scanner->open_count == 0) {
		fail_at(scanner, &token, "a bracket is closed that was not opened");
		return;
	}
	struct bracket bracket = scanner->open[scanner->open_count - 1];
	struct jstoken *opening = &scanner->tokens->items[bracket.token];
	if (closer_of(opening) != byte) {
		fail_at(scanner, opening, "a bracket is closed by one of another kind, or never");
		return;
	}
	bool is_template = opening->text[0] == '$';
	opening->match = scanner->tokens->count;
	scanner->open_count--;
	token.match = bracket.token;
	token.depth = scanner->open_count;
	token.ends_block = bracket.is_block;
	finish(scanner, token);
	if (is_template)
		scan_template(scanner, begin(scanner, JSTOKEN_TEMPLATE));
}

/* Whether `{` here begins a block and no object: what stands before it needs no operand. */
static bool begins_block(const struct scanner *scanner)
{
	static const char *const before_blocks[] = { ";", "{", "}", ")", "=>", ">", "]", "else",
		"do", NULL };
	const struct jstoken *token = last(scanner);
	if (!token || is_any(token, before_blocks))
		return true;
	return !may_begin_operand(scanner);
}

static void scan_punctuation(struct scanner *scanner)
{
	static const char *const longer[] = { "===", "...", "=>", "==", "?.", "++", "--", "&&",
		"||", "??", NULL };
	struct jstoken token = begin(scanner, JSTOKEN_PUNCT);
	for (const char *const *text = longer; *text; text++) {
		size_t len = strlen(*text);
		bool is_here =
			scanner->len - scanner->at >= len && memcmp(token.text, *text, len) == 0;
		/* a?.5:b */
		if (!is_here || (**text == '?' && isdigit((unsigned char)peek(scanner, 2))))
			continue;
		scanner->at += len;
		finish(scanner, token);
		return;
	}
	scanner->at++;
	finish(scanner, token);
}

/* ---- all of it */

static void scan_token(struct scanner *scanner)
{
	char byte = peek(scanner, 0);
	bool is_number = isdigit((unsigned char)byte) ||
			 (byte == '.' && isdigit((unsigned char)peek(scanner, 1)));
	if (is_number) {
		scan_number(scanner);
	} else if (is_word_byte(byte) || (byte == '#' && is_word_byte(peek(scanner, 1)))) {
		scan_word(scanner);
	} else if (byte == '"' || byte == '\'') {
		scan_string(scanner);
	} else if (byte == '`') {
		struct jstoken token = begin(scanner, JSTOKEN_TEMPLATE);
		scanner->at++;
		scan_template(scanner, token);
	} else if (byte == '/' && may_begin_operand(scanner)) {
		scan_regex(scanner);
	} else if (byte == '(' || byte == '[' || byte == '{') {
		bool is_block = byte == '{' && begins_block(scanner);
		struct jstoken token = begin(scanner, JSTOKEN_PUNCT);
		scanner->at++;
		open_bracket(scanner, token, is_block);
	} else if (byte == ')' || byte == ']' || byte == '}') {
		close_bracket(scanner);
	} else {
		scan_punctuation(scanner);
	}
}

static void scan_all(struct scanner *scanner)
{
	static const char mark[] = "\xef\xbb\xbf";
	if (scanner->len >= 3 && memcmp(scanner->source, mark, 3) == 0)
		scanner->line_from = scanner->at = 3;
	if (peek(scanner, 0) == '#' && peek(scanner, 1) == '!')
		skip_line(scanner);
	while (!at_end(scanner) && !scanner->failed) {
		if (isspace((unsigned char)peek(scanner, 0)) || peek(scanner, 0) == '\0')
			step(scanner);
		else if (!skip_comment(scanner))
			scan_token(scanner);
	}
	if (scanner->open_count > 0) {
		size_t index = scanner->open[scanner->open_count - 1].token;
		fail_at(scanner, &scanner->tokens->items[index], "a bracket is never closed");
	}
	finish(scanner, begin(scanner, JSTOKEN_END));
}

int jstokens_scan(
	const char *source, size_t len, struct jstokens *tokens, struct jstoken_problem *problem)
{
	*tokens = (struct jstokens){ .source = source, .source_len = len };
	struct scanner scanner = {
		.tokens = tokens, .source = source, .len = len, .line = 1, .problem = problem
	};
	scan_all(&scanner);
	free(scanner.open);
	return scanner.failed ? -EINVAL : 0;
}

void jstokens_release(struct jstokens *tokens)
{
	free(tokens->items);
	free(tokens->remarks);
	*tokens = (struct jstokens)JSTOKENS_INIT;
}

bool jstokens_is(const struct jstokens *tokens, size_t index, const char *text)
{
	return index < tokens->count && same(&tokens->items[index], text);
}

size_t jstokens_column(const struct jstokens *tokens, const struct jstoken *token)
{
	const char *from = tokens->source + token->line_from;
	return count_characters(from, (size_t)(token->text - from)) + 1;
}
