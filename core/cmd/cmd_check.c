#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/xalloc.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/tools/check.h"
#include "core/tools/checkcodes.h"
#include "core/tools/checkreport.h"

#define OUTPUT_SIZE_MAX (1024 * 1024 * 1024)

/* What makes the exit status 1. */
enum fail_on { FAIL_ON_WARNING, FAIL_ON_ERROR, FAIL_ON_NOTHING };

struct request {
	struct check_options options;
	enum checkreport_format format;
	enum fail_on fail_on;
	char **ignored; /* owned, NULL-terminated; their texts too */
	size_t ignored_count;
};

static const struct command_option options[] = {
	{ "format", 'f', "FORMAT", "text (as compilers write; default), json, sarif or github",
		"text json sarif github" },
	{ "ignore", 'i', "CODES", "leave these out; separated by commas, may be repeated", NULL },
	{ "fail-on", 'e', "LEVEL",
		"exit with 1 from a warning on (default), from an error on, or\n"
		"nothing: warning, error, nothing",
		"warning error nothing" },
	{ "against", 'a', "DIR",
		"an earlier state of the tools: what changed needs a greater version", NULL },
	{ "list", 'l', NULL, "list all codes", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static void list_codes(void)
{
	size_t count;
	const struct checkcode *codes = checkcodes_all(&count);
	for (size_t i = 0; i < count; i++)
		printf("%-26s %-8s %-10s %s\n", codes[i].code,
			codes[i].level == FAULT_ERROR ? "error" : "warning", codes[i].rules,
			codes[i].summary);
}

static int parse_ignored(struct request *request, const char *text)
{
	auto_free char *list = xstrdup(text);
	char *rest = list;
	for (const char *code; (code = strsep(&rest, ","));) {
		if (!checkcodes_find(code))
			return command_misuse("check",
				"there is no code '%s'; 'pegfs check --list' lists them", code);
		request->ignored = xrealloc(
			request->ignored, request->ignored_count + 2, sizeof(*request->ignored));
		request->ignored[request->ignored_count++] = xstrdup(code);
		request->ignored[request->ignored_count] = NULL;
	}
	return COMMAND_OK;
}

static int parse_fail_on(struct request *request, const char *name)
{
	static const char *const names[] = { [FAIL_ON_WARNING] = "warning",
		[FAIL_ON_ERROR] = "error",
		[FAIL_ON_NOTHING] = "nothing" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0) {
			request->fail_on = (enum fail_on)i;
			return COMMAND_OK;
		}
	return command_misuse("check", "--fail-on takes warning, error or nothing, not '%s'", name);
}

static int parse_option(struct request *request, int option)
{
	switch (option) {
	case 'f':
		if (checkreport_parse_format(optarg, &request->format) == 0)
			return COMMAND_OK;
		return command_misuse(
			"check", "the formats are text, json, sarif and github, not '%s'", optarg);
	case 'i':
		return parse_ignored(request, optarg);
	case 'e':
		return parse_fail_on(request, optarg);
	case 'a':
		request->options.against = optarg;
		return COMMAND_OK;
	case 'l':
		list_codes();
		exit(COMMAND_OK);
	default:
		return COMMAND_USAGE;
	}
}

static int parse(struct request *request, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_check, argc, argv)) != CMDLINE_END) {
		int status = parse_option(request, option);
		if (status != COMMAND_OK)
			return status;
	}
	if (optind == argc)
		return command_misuse("check", "name a directory to look at");
	return COMMAND_OK;
}

static void summarize(const struct check_report *report)
{
	size_t errors = check_count(report, FAULT_ERROR);
	size_t warnings = check_count(report, FAULT_WARNING);
	fprintf(stderr, "%zu tool%s: %zu error%s, %zu warning%s\n", report->tools,
		report->tools == 1 ? "" : "s", errors, errors == 1 ? "" : "s", warnings,
		warnings == 1 ? "" : "s");
}

static int tell(const struct request *request, const struct check_report *report)
{
	auto_buf struct buf out = BUF_INIT(OUTPUT_SIZE_MAX);
	checkreport_render(report, request->format, &out);
	fwrite(buf_str(&out), 1, out.len, stdout);
	if (out.failed || fflush(stdout) != 0)
		return command_failed("check", "cannot write the output");
	summarize(report);
	bool has_errors = check_count(report, FAULT_ERROR) > 0;
	bool is_bad = request->fail_on == FAIL_ON_WARNING ? report->faults.count > 0
		      : request->fail_on == FAIL_ON_ERROR ? has_errors
							  : false;
	return is_bad ? COMMAND_FAILED : COMMAND_OK;
}

static int run(struct request *request, int argc, char **argv)
{
	struct check_report report = { .tools = 0 };
	request->options.ignored = (const char *const *)request->ignored;
	for (int i = optind; i < argc; i++)
		check_path(argv[i], &request->options, &report);
	check_finish(&request->options, &report);
	int status = tell(request, &report);
	check_report_release(&report);
	return status;
}

static int check(int argc, char **argv)
{
	struct request request = { .format = CHECKREPORT_TEXT };
	int status = parse(&request, argc, argv);
	if (status == COMMAND_OK)
		status = run(&request, argc, argv);
	for (size_t i = 0; i < request.ignored_count; i++)
		free(request.ignored[i]);
	free(request.ignored);
	return status;
}

const struct command cmd_check = { .name = "check",
	.summary = "look for mistakes in tools",
	.arguments = "PATH...",
	.about =
		"Looks for mistakes in tools. PATH is a tool's directory, or one that holds tools.\n",
	.options = options,
	.notes =
		"In code, a comment 'pegfs-ignore: CODE' silences a finding on its line or the next.\n"
		"Exit status: 0 nothing found, 1 something found, 2 wrong use.\n",
	.takes = COMMAND_TAKES_DIRS,
	.run = check };
