#include "core/tools/arguments.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "core/base/auto.h"
#include "core/base/utf8.h"
#include "core/base/xalloc.h"
#include "core/tools/explain.h"
#include "core/tools/inputtext.h"
#include "core/tools/jsontext.h"
#include "core/tools/option.h"
#include "core/tools/program.h"
#include "core/tools/suggest.h"

#define NOTES_MAX (16 * 1024)
#define NOTE_COUNT_MAX 20
#define SHOWN_MAX 60 /* bytes of a word in a message */

/* The words on their way to a request. */
struct reader {
	struct arguments *arguments;
	const struct tool *tool;
	const char *word; /* the next one */
	size_t left;      /* words, the next one included */
	bool ended;       /* "--" came */
	bool was_fed;     /* standard input was handed over */
	bool has_text;    /* and there was something */
	json_t *params;   /* owned */
	const char *json; /* the request as one word; NULL: none */
	size_t param_count, unknown_count;
	const char *stray; /* the first word without a name */
	size_t stray_count;
	struct fail *why;
};

static const char *take_word(struct reader *reader)
{
	const char *word = reader->word;
	reader->word += strlen(word) + 1;
	reader->left--;
	return word;
}

/* ---- parameters */

static int put(struct reader *reader, const char *name, json_t *value)
{
	if (json_object_get(reader->params, name)) {
		json_decref(value);
		auto_buf struct buf shown = BUF_INIT(SHOWN_MAX * 8);
		explain_quoted(&shown, name, SHOWN_MAX);
		return fail_set(reader->why, -EINVAL, "%s is given twice", buf_str(&shown));
	}
	reader->param_count++;
	if (!value || json_object_set_new(reader->params, name, value) < 0)
		return fail_set(reader->why, -ENOMEM, "no memory for the request");
	return 0;
}

static bool is_truth(const char *word)
{
	return strcasecmp(word, "true") == 0 || strcasecmp(word, "false") == 0 ||
	       strcmp(word, "0") == 0 || strcmp(word, "1") == 0;
}

static int fail_no_value(struct reader *reader, const struct option *option)
{
	auto_buf struct buf expected = BUF_INIT(1024);
	explain_expected(&expected, option->input);
	return fail_set(reader->why, -EINVAL, "--%.*s needs a value, %s: --%.*s=VALUE",
		(int)option->name_len, option->name, buf_str(&expected), (int)option->name_len,
		option->name);
}

/*
 * Whether the next word is an option that this tool knows. A text may well begin with dashes, as
 * each file of a diff does; but `--name --full` has forgotten a value.
 */
static bool option_follows(const struct reader *reader)
{
	if (reader->left == 0)
		return true;
	struct option next;
	struct fail ignored = FAIL_INIT;
	if (strcmp(reader->word, "--") == 0)
		return true;
	return option_is(reader->word) &&
	       (option_read(&next, reader->tool, reader->word, &ignored) < 0 ||
		       next.kind != OPTION_UNKNOWN);
}

static int read_input(struct reader *reader, const struct option *option)
{
	const struct input *input = option->input;
	const char *value = option->value;
	if (!value && input->type == INPUT_BOOLEAN) {
		if (reader->left == 0 || !is_truth(reader->word))
			return put(reader, input->name, json_true());
	} else if (!value && option_follows(reader)) {
		return fail_no_value(reader, option);
	}
	return put(reader, input->name, json_string(value ? value : take_word(reader)));
}

/* A10: passed on as it is, and it is told that nobody knows it. */
static int read_unknown(struct reader *reader, const struct option *option)
{
	auto_free char *name = xstrndup(option->name, option->name_len);
	struct suggest suggest;
	suggest_begin(&suggest, name);
	for (size_t i = 0; i < reader->tool->input_count; i++)
		suggest_offer(&suggest, reader->tool->inputs[i].name);
	if (reader->unknown_count++ < NOTE_COUNT_MAX)
		explain_unknown(&reader->arguments->notes, name, suggest.best);
	const char *value = option->value;
	if (!value && (reader->left == 0 || strncmp(reader->word, "--", 2) == 0))
		return put(reader, name, json_true());
	return put(reader, name, json_string(value ? value : take_word(reader)));
}

static int read_ours(struct reader *reader, const struct option *option)
{
	if (option->value)
		return fail_set(reader->why, -EINVAL, "--%.*s takes no value",
			(int)option->name_len, option->name);
	if (option->kind == OPTION_HELP)
		reader->arguments->help = true;
	else if (option->kind == OPTION_JSON)
		reader->arguments->show = ARGUMENTS_JSON;
	else if (reader->arguments->show == ARGUMENTS_BOUNDED)
		reader->arguments->show = ARGUMENTS_FULL;
	return 0;
}

static int read_option(struct reader *reader, const char *word)
{
	struct option option;
	if (option_read(&option, reader->tool, word, reader->why) < 0)
		return reader->why->code;
	switch (option.kind) {
	case OPTION_INPUT:
		return read_input(reader, &option);
	case OPTION_NOT:
		if (option.value)
			return fail_set(reader->why, -EINVAL, "--%.*s takes no value",
				(int)option.name_len, option.name);
		return put(reader, option.input->name, json_false());
	case OPTION_UNKNOWN:
		return read_unknown(reader, &option);
	case OPTION_FULL:
	case OPTION_JSON:
	case OPTION_HELP:
		break;
	}
	return read_ours(reader, &option);
}

/* ---- words without a name */

/* -n, -name: a word that was meant as an option of another kind of program. */
static bool is_short_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0' && !strchr("-0123456789.", word[1]);
}

static int fail_short_option(struct reader *reader, const char *word)
{
	if (inputtext_has_sensitive(reader->tool))
		return fail_set(reader->why, -EINVAL,
			"a word begins with one dash: options begin with two, and after -- "
			"nothing is an option");
	auto_buf struct buf shown = BUF_INIT(SHOWN_MAX * 8);
	explain_quoted(&shown, word, SHOWN_MAX);
	return fail_set(reader->why, -EINVAL,
		"%s begins with one dash: options begin with two, and after -- nothing is an "
		"option",
		buf_str(&shown));
}

static int read_stray(struct reader *reader, const char *word)
{
	if (!reader->ended && strcmp(word, "-") == 0 && reader->was_fed)
		return 0;
	if (!reader->ended && is_short_option(word))
		return fail_short_option(reader, word);
	if (!reader->ended && !reader->json && word[strspn(word, " \t\r\n")] == '{')
		reader->json = word;
	if (reader->stray_count++ == 0)
		reader->stray = word;
	return 0;
}

static int fail_stray(struct reader *reader)
{
	auto_buf struct buf shown = BUF_INIT(SHOWN_MAX * 8);
	if (!inputtext_has_sensitive(reader->tool)) {
		buf_puts(&shown, ": ");
		explain_quoted(&shown, reader->stray, SHOWN_MAX);
	}
	if (!option_positional(reader->tool))
		return fail_set(reader->why, -EINVAL,
			"a word belongs to no option%s; each value needs its name before it: "
			"--name VALUE",
			buf_str(&shown));
	return fail_set(reader->why, -EINVAL,
		"%zu words belong to no option, the first%s; put a text of several words into "
		"quotes",
		reader->stray_count, buf_str(&shown));
}

static int settle_stray(struct reader *reader)
{
	const struct input *input = option_positional(reader->tool);
	if (reader->stray_count == 0)
		return 0;
	if (reader->stray_count > 1 || !input)
		return fail_stray(reader);
	return put(reader, input->name, json_string(reader->stray));
}

/* ---- the request */

static int check_words(const struct document_run *run, struct fail *why)
{
	const char *word = run->words;
	for (size_t i = 1; i <= run->word_count; i++) {
		size_t len = strlen(word);
		size_t valid = utf8_valid_len(word, len);
		if (valid < len)
			return fail_set(why, -EINVAL,
				"word %zu is not UTF-8 from its byte %zu on; a text has to be UTF-8, "
				"other bytes can be given in a file",
				i, valid + 1);
		word += len + 1;
	}
	return 0;
}

static int read_words(struct reader *reader)
{
	int result = 0;
	while (reader->left > 0 && result == 0) {
		const char *word = take_word(reader);
		if (!reader->ended && strcmp(word, "--") == 0)
			reader->ended = true;
		else if (!reader->ended && option_is(word))
			result = read_option(reader, word);
		else
			result = read_stray(reader, word);
	}
	return result;
}

static int copy_request(struct reader *reader, const char *text, size_t len)
{
	int result = buf_append(&reader->arguments->request, text, len);
	if (result < 0)
		return fail_set(reader->why, result,
			"the request is larger than the limit of %zu bytes",
			reader->arguments->request.max);
	return 0;
}

static int put_params(struct reader *reader)
{
	int result = jsontext_append(&reader->arguments->request, reader->params, JSONTEXT_COMPACT);
	if (result < 0)
		return fail_set(reader->why, result,
			"the request is larger than the limit of %zu bytes",
			reader->arguments->request.max);
	return 0;
}

static int settle_request(struct reader *reader, const struct document_run *run)
{
	bool has_words = reader->param_count > 0 || reader->stray_count > 0;
	if (run->text_is_cut)
		return fail_set(reader->why, -EINVAL,
			"standard input could not be read: is it a directory?");
	if (reader->has_text && has_words)
		return fail_set(reader->why, -EINVAL,
			"there are inputs as words and more on standard input: give one of the two");
	if (reader->has_text)
		return copy_request(reader, run->text, run->text_len);
	if (reader->json && reader->stray_count == 1 && reader->param_count == 0)
		return copy_request(reader, reader->json, strlen(reader->json));
	if (reader->json)
		return fail_set(reader->why, -EINVAL,
			"a word that begins with '{' is the whole request as JSON, and must be the "
			"only one; after -- it is a text");
	if (settle_stray(reader) < 0)
		return reader->why->code;
	return put_params(reader);
}

static bool is_only_help(const struct document_run *run)
{
	return run->word_count == 1 &&
	       (strcmp(run->words, "--help") == 0 || strcmp(run->words, "-h") == 0);
}

void arguments_init(struct arguments *arguments, const struct tool *tool)
{
	*arguments = (struct arguments){ .has_full = option_is_ours(tool, "full"),
		.notes = BUF_INIT(NOTES_MAX) };
	program_of_tool(tool->name, &arguments->program, &arguments->dir);
}

void arguments_release(struct arguments *arguments)
{
	free(arguments->program);
	free(arguments->dir);
	buf_release(&arguments->request);
	buf_release(&arguments->notes);
	*arguments = (struct arguments){ .program = NULL };
}

int arguments_read(struct arguments *arguments, const struct tool *tool,
	const struct document *document, size_t size_max, struct fail *why)
{
	arguments_init(arguments, tool);
	buf_init(&arguments->request, size_max);
	const struct document_run run = document_get_run(document);
	program_replace(run.program, &arguments->program, &arguments->dir);
	arguments->help = is_only_help(&run);
	if (arguments->help)
		return 0;
	auto_json json_t *params = json_object();
	struct reader reader = { .arguments = arguments,
		.tool = tool,
		.word = run.words,
		.left = run.word_count,
		.was_fed = run.text != NULL,
		.has_text = run.text && !document_is_blank(run.text, run.text_len),
		.params = params,
		.why = why };
	if (!params)
		return fail_set(why, -ENOMEM, "no memory for the request");
	if (check_words(&run, why) < 0 || read_words(&reader) < 0)
		return why->code;
	return arguments->help ? 0 : settle_request(&reader, &run);
}
