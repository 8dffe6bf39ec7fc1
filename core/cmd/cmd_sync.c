#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/tools/markdown.h"
#include "core/tools/sync.h"
#include "core/tools/xjson.h"

#define OUTPUT_SIZE_MAX (64 * 1024 * 1024)
#define WAIT_SECONDS_MAX 3600

struct request {
	const char *seed, *target;
	struct sync_options options;
	bool as_json;
};

static const struct command_option options[] = {
	{ "dry-run", 'n', NULL, "change nothing, tell what would be done", NULL },
	{ "json", 'j', NULL, "tell it as JSON", NULL },
	{ "wait", 'w', "SECONDS", "wait for another sync of TARGET to end (default: 0)", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

static int parse_wait(const char *text, unsigned *wait_ms)
{
	char *end;
	unsigned long seconds = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || seconds > WAIT_SECONDS_MAX)
		return command_misuse("sync", "--wait takes whole seconds from 0 to %d, not '%s'",
			WAIT_SECONDS_MAX, text);
	*wait_ms = (unsigned)seconds * 1000;
	return COMMAND_OK;
}

static int parse(struct request *request, int argc, char **argv)
{
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_sync, argc, argv)) != CMDLINE_END)
		switch (option) {
		case 'n':
			request->options.dry_run = true;
			break;
		case 'j':
			request->as_json = true;
			break;
		case 'w':
			if (parse_wait(optarg, &request->options.wait_ms) != COMMAND_OK)
				return COMMAND_USAGE;
			break;
		default:
			return COMMAND_USAGE;
		}
	if (argc - optind != 2)
		return command_misuse("sync", "name the seed directory and the target directory");
	request->seed = argv[optind];
	request->target = argv[optind + 1];
	if (!*request->seed || !*request->target)
		return command_misuse("sync", "a directory's name is empty");
	return COMMAND_OK;
}

/* ---- what was done, as a table */

static const char *told(enum sync_action action)
{
	static const char *const texts[] = { [SYNC_INSTALLED] = "installed",
		[SYNC_UPDATED] = "updated",
		[SYNC_EQUAL] = "left (same version)",
		[SYNC_NEWER] = "left (newer in target)",
		[SYNC_FAILED] = "failed: " };
	return texts[action];
}

static int widest_name(const struct sync_report *report)
{
	size_t width = strlen("TOOL");
	for (size_t i = 0; i < report->count; i++) {
		size_t len = strlen(report->items[i].name);
		width = len > width ? len : width;
	}
	return (int)width;
}

static void render_table(const struct sync_report *report, struct buf *out)
{
	int width = widest_name(report);
	buf_printf(out, "%-*s  %8s  %8s  %s\n", width, "TOOL", "SEED", "TARGET", "WHAT");
	for (size_t i = 0; i < report->count; i++) {
		const struct sync_item *item = &report->items[i];
		auto_buf struct buf name = BUF_INIT(OUTPUT_SIZE_MAX);
		markdown_line(&name, item->name);
		buf_printf(out, "%-*s  %8" PRId64 "  ", width, buf_str(&name), item->seed_version);
		if (item->target_version == SYNC_ABSENT)
			buf_printf(out, "%8s  ", "-");
		else
			buf_printf(out, "%8" PRId64 "  ", item->target_version);
		buf_puts(out, told(item->action));
		if (item->problem)
			markdown_line(out, item->problem);
		buf_putc(out, '\n');
	}
}

/* ---- as JSON */

static json_t *json_of_version(int64_t version)
{
	return version == SYNC_ABSENT ? json_null() : json_integer(version);
}

static json_t *json_of_item(const struct sync_item *item)
{
	json_t *json = xjson_object();
	xjson_set(json, "name", xjson_string(item->name));
	xjson_set(json, "action", xjson_string(sync_action_name(item->action)));
	xjson_set(json, "seed_version", json_integer(item->seed_version));
	xjson_set(json, "target_version", json_of_version(item->target_version));
	if (item->problem)
		xjson_set(json, "problem", xjson_string(item->problem));
	return json;
}

static json_t *json_of_warning(const struct fault *fault)
{
	json_t *json = xjson_object();
	xjson_set(json, "code", xjson_string(fault->code));
	xjson_set(json, "file", xjson_string(fault->file));
	xjson_set(json, "line", fault->line ? json_integer((json_int_t)fault->line) : json_null());
	xjson_set(json, "text", xjson_string(fault->text));
	return json;
}

static void render_json(
	const struct request *request, const struct sync_report *report, struct buf *out)
{
	auto_json json_t *whole = xjson_object();
	json_t *tools = xjson_array(), *warnings = xjson_array();
	for (size_t i = 0; i < report->count; i++)
		xjson_append(tools, json_of_item(&report->items[i]));
	for (size_t i = 0; i < report->warnings.count; i++)
		xjson_append(warnings, json_of_warning(&report->warnings.items[i]));
	xjson_set(whole, "seed", xjson_string(request->seed));
	xjson_set(whole, "target", xjson_string(request->target));
	xjson_set(whole, "dry_run", json_boolean(request->options.dry_run));
	xjson_set(whole, "tools", tools);
	xjson_set(whole, "warnings", warnings);
	auto_free char *text = json_dumps(whole, JSON_INDENT(2));
	buf_printf(out, "%s\n", text ? text : "null");
}

/* ---- running */

/* One line that is written over, on a terminal alone. */
static void show_progress(void *context, const char *name, size_t done, size_t count)
{
	(void)context;
	auto_buf struct buf line = BUF_INIT(OUTPUT_SIZE_MAX);
	markdown_line(&line, name);
	fprintf(stderr, "\r\033[K[%zu/%zu] %.60s", done + 1, count, buf_str(&line));
}

static void summarize(const struct request *request, const struct sync_report *report)
{
	auto_buf struct buf warnings = BUF_INIT(OUTPUT_SIZE_MAX);
	faults_render(&report->warnings, &warnings);
	fputs(buf_str(&warnings), stderr);
	fprintf(stderr, "%zu tools: %zu installed, %zu updated, %zu left, %zu failed%s\n",
		report->count, sync_count(report, SYNC_INSTALLED), sync_count(report, SYNC_UPDATED),
		sync_count(report, SYNC_EQUAL) + sync_count(report, SYNC_NEWER),
		sync_count(report, SYNC_FAILED),
		request->options.dry_run ? " (nothing was changed: --dry-run)" : "");
}

static int tell(const struct request *request, const struct sync_report *report)
{
	auto_buf struct buf out = BUF_INIT(OUTPUT_SIZE_MAX);
	if (request->as_json)
		render_json(request, report, &out);
	else
		render_table(report, &out);
	fputs(buf_str(&out), stdout);
	if (out.failed || fflush(stdout) != 0)
		return command_failed("sync", "cannot write the output");
	summarize(request, report);
	return sync_count(report, SYNC_FAILED) > 0 ? COMMAND_FAILED : COMMAND_OK;
}

static int sync_tools(int argc, char **argv)
{
	struct request request = { .seed = NULL };
	int status = parse(&request, argc, argv);
	if (status != COMMAND_OK)
		return status;
	if (isatty(STDERR_FILENO))
		request.options.on_progress = show_progress;
	struct sync_report report;
	struct fail why = FAIL_INIT;
	int result = sync_run(request.seed, request.target, &request.options, &report, &why);
	if (request.options.on_progress)
		fputs("\r\033[K", stderr);
	status = result < 0 ? command_failed("sync", why.text) : tell(&request, &report);
	sync_report_release(&report);
	return status;
}

const struct command cmd_sync = { .name = "sync",
	.summary = "copy tools from a seed, by version",
	.arguments = "SEED TARGET",
	.about =
		"Copies each tool of the directory SEED to TARGET if its version is greater than that of\n"
		"the same tool there, or if it is missing there. A tool is replaced whole, in one step.\n",
	.options = options,
	.notes = "Exit status: 0 done, 1 a tool (or all of it) failed, 2 wrong use.\n",
	.takes = COMMAND_TAKES_DIRS,
	.run = sync_tools };
