#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/cmd/callorder.h"
#include "core/cmd/callrequest.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/cmd/terminal.h"
#include "core/cmd/tree.h"

#define LINE_MAX_BYTES (64 * 1024)
#define PROGRESS_WIDTH 80 /* where the terminal does not say */

static const struct command_option options[] = {
	TREE_OPTIONS,
	{ "json", 'j', NULL, "print the whole result as JSON instead of its text", NULL },
	{ "log", 'l', NULL, "show what the tool prints, on standard error", NULL },
	{ "quiet", 'q', NULL, "show no progress", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

struct request {
	struct tree tree;
	bool as_json, with_log, is_quiet;
	bool has_line; /* a line of progress stands on the terminal */
};

int callorder_watch_signals(
	struct loop *loop, loop_on_signal *on_signal, void *arg, struct fail *why)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return loop_watch_signals(loop, &set, on_signal, arg, why);
}

/* ---- while it runs */

static void clear_line(struct request *request)
{
	if (request->has_line)
		fputs("\r\033[K", stderr);
	request->has_line = false;
}

/* The last line of the text that is not empty; the text is cut up. */
static const char *last_line(char *text)
{
	size_t len = strlen(text);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	const char *newline = strrchr(text, '\n');
	return newline ? newline + 1 : text;
}

/* One line that the next takes the place of. */
static void on_progress(void *arg, const char *json, size_t len)
{
	struct request *request = arg;
	auto_json json_t *value = json_loadb(json, len, JSON_DECODE_ANY, NULL);
	if (!value)
		return;
	struct result partial = RESULT_INIT;
	result_from_value(&partial, value);
	size_t width = terminal_width(stderr);
	auto_buf struct buf line = BUF_INIT(LINE_MAX_BYTES);
	auto_buf struct buf shown = BUF_INIT(LINE_MAX_BYTES + 64);
	terminal_cut(&line, last_line(partial.text), (width ? width : PROGRESS_WIDTH) - 1);
	terminal_paint(&shown, terminal_has_colour(stderr), TERMINAL_DIM, buf_str(&line));
	result_release(&partial);
	clear_line(request);
	fputs(buf_str(&shown), stderr);
	request->has_line = true;
}

static void on_output(void *arg, const char *bytes, size_t len)
{
	clear_line(arg);
	fwrite(bytes, 1, len, stderr);
}

/* ---- its end */

static int tell(const struct request *request, const struct callorder_answer *answer)
{
	static const int statuses[] = { [CALLORDER_DONE] = COMMAND_OK,
		[CALLORDER_FAILED] = COMMAND_FAILED,
		[CALLORDER_REFUSED] = COMMAND_USAGE };
	const struct result *result = &answer->result;
	bool to_stdout = request->as_json || answer->end == CALLORDER_DONE;
	fwrite(request->as_json ? result->json : result->text, 1,
		request->as_json ? result->json_len : result->text_len,
		to_stdout ? stdout : stderr);
	if (fflush(stdout) != 0)
		return command_failed("call", "cannot write the output");
	return statuses[answer->end];
}

/* Ends as the signal would have ended it: a shell's loop then ends as well. */
static void die_of(int number)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number);
	signal(number, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(number);
}

static int make_call(struct request *request, const char *tool, const struct buf *json)
{
	const struct callorder order = { .tree = &request->tree,
		.tool = tool,
		.request = json,
		.on_progress = request->is_quiet ? NULL : on_progress,
		.on_output = request->with_log ? on_output : NULL,
		.arg = request };
	struct callorder_answer answer = { .result = RESULT_INIT };
	struct fail why = FAIL_INIT;
	if (request->tree.mount)
		callmount_run(&order, &answer, &why);
	else
		calldirect_run(&order, &answer, &why);
	clear_line(request);
	int status = why.code ? command_failed("call", why.text) : tell(request, &answer);
	result_release(&answer.result);
	if (answer.signal)
		die_of(answer.signal);
	return status;
}

static int parse(struct request *request, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_call, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		if (tree_take_option(&request->tree, option, optarg))
			continue;
		request->as_json |= option == 'j';
		request->with_log |= option == 'l';
		request->is_quiet |= option == 'q';
	}
	if (optind == argc)
		return command_misuse("call", "name a tool; 'pegfs list' shows them");
	return COMMAND_OK;
}

static int call(int argc, char **argv)
{
	struct request request = { .tree = { .command = "call" } };
	request.is_quiet = !isatty(STDERR_FILENO);
	int status = parse(&request, argc, argv);
	if (status != COMMAND_OK)
		return status;
	const char *tool = argv[optind];
	auto_buf struct buf json = BUF_INIT(CALLORDER_SIZE_MAX);
	struct fail why = FAIL_INIT;
	if (callrequest_read(argv + optind + 1, argc - optind - 1, &json, &why) < 0)
		return command_misuse("call", "%s", why.text);
	status = tree_open(&request.tree);
	if (status == COMMAND_OK)
		status = make_call(&request, tool, &json);
	tree_close(&request.tree);
	return status;
}

const struct command cmd_call = { .name = "call",
	.summary = "run a tool",
	.arguments = "TOOL [JSON | KEY=VALUE... | -]",
	.about =
		"Runs a tool and prints its text. The inputs are KEY=VALUE words, or one word of JSON, or\n"
		"JSON on standard input (-). On a terminal its progress is shown; Ctrl-C cancels it.\n"
		"On directories, without a mount, the tool runs just the same, with your own rights.\n",
	.options = options,
	.notes =
		"Exit status: 0 done, 1 the tool failed (its text is on standard error), 2 the request is\n"
		"wrong and nothing was run. One that is cancelled by a signal ends by that signal.\n",
	.takes = COMMAND_TAKES_TOOLS,
	.run = call };
