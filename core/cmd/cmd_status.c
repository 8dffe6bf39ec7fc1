#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/cmd/cmdline.h"
#include "core/cmd/commands.h"
#include "core/cmd/tree.h"
#include "core/tools/jsontext.h"
#include "core/tools/xjson.h"

static const struct command_option options[] = { TREE_OPTIONS,
	{ "json", 'j', NULL, "as JSON", NULL }, { NULL, 0, NULL, NULL, NULL } };

/* ---- what there is to tell: an object of texts and numbers, in the order in which they are shown */

static void put_text(json_t *status, const char *key, const char *text)
{
	xjson_set(status, key, xjson_string(text));
}

static void put_number(json_t *status, const char *key, long long number)
{
	xjson_set(status, key, json_integer(number));
}

/* The number behind "\nNAME" in a text of lines; -1 where there is none. */
static long long number_behind(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

static void put_stats(json_t *status, const char *stats)
{
	static const struct {
		const char *key, *name; /* as .pegfs/stats has it */
	} rows[] = { { "tools", "\npegfs_tools " }, { "faults", "\npegfs_faults " },
		{ "server_pid", "\npegfs_server_pid " },
		{ "supervisor_pid", "\npegfs_supervisor_pid " }, { "hosts", "\npegfs_hosts " },
		{ "calls_running", "\npegfs_calls_running " },
		{ "calls_waiting", "\npegfs_calls_waiting " },
		{ "calls_done", "\npegfs_calls_total{state=\"done\"} " },
		{ "calls_failed", "\npegfs_calls_total{state=\"failed\"} " },
		{ "calls_cancelled", "\npegfs_calls_total{state=\"cancelled\"} " },
		{ "calls_timed_out", "\npegfs_calls_total{state=\"timed out\"} " },
		{ "calls_refused", "\npegfs_calls_total{state=\"refused\"} " } };
	/* A user's tree tells nothing of what others call (pegfs mount --data). */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		long long number = number_behind(stats, rows[i].name);
		if (number >= 0)
			put_number(status, rows[i].key, number);
	}
	long long start = number_behind(stats, "\npegfs_start_time_seconds ");
	put_number(status, "uptime_seconds", (long long)time(NULL) - start);
}

/* What stands behind NAME= in .pegfs/config. */
static void put_config(json_t *status, const char *config, const char *key, const char *name)
{
	const char *at = strstr(config, name);
	const char *value = at ? at + strlen(name) : "";
	auto_free char *text = xstrndup(value, strcspn(value, "\n"));
	put_text(status, key, text);
}

static int look_at_mount(const struct tree *tree, json_t *status, struct fail *why)
{
	auto_buf struct buf version = BUF_INIT(TREE_TEXT_MAX);
	auto_buf struct buf config = BUF_INIT(TREE_TEXT_MAX);
	auto_buf struct buf stats = BUF_INIT(TREE_TEXT_MAX);
	buf_putc(&config, '\n');
	if (tree_read_file(tree, ".pegfs/version", &version, why) < 0 ||
		tree_read_file(tree, ".pegfs/config", &config, why) < 0 ||
		tree_read_file(tree, ".pegfs/stats", &stats, why) < 0)
		return why->code;
	put_text(status, "mount", tree->mount);
	auto_free char *first = xstrndup(buf_str(&version), strcspn(buf_str(&version), "\n"));
	put_text(status, "version", first);
	put_config(status, buf_str(&config), "directories", "\ntools=");
	put_stats(status, buf_str(&stats));
	return 0;
}

static void look_at_directories(const struct tree *tree, json_t *status)
{
	const struct snapshot *all = registry_current(tree->registry);
	put_text(status, "mount", "");
	put_text(status, "version", PEGFS_VERSION);
	put_text(status, "directories", tree->tools);
	put_number(status, "tools", (long long)all->count);
	put_number(status, "faults", (long long)all->faults.count);
}

/* ---- showing it */

static void render_uptime(struct buf *out, long long seconds)
{
	if (seconds >= 86400)
		buf_printf(out, "%lld d ", seconds / 86400);
	if (seconds >= 3600)
		buf_printf(out, "%lld h ", seconds / 3600 % 24);
	buf_printf(out, "%lld min", seconds / 60 % 60);
}

static long long number_of(const json_t *status, const char *key)
{
	return json_integer_value(json_object_get(status, key));
}

static const char *text_of(const json_t *status, const char *key)
{
	return json_string_value(json_object_get(status, key));
}

static void render_server(const json_t *status, struct buf *out)
{
	buf_printf(out, "server       process %lld, version %s, for ",
		number_of(status, "server_pid"), text_of(status, "version"));
	render_uptime(out, number_of(status, "uptime_seconds"));
	buf_putc(out, '\n');
	if (!json_object_get(status, "calls_running"))
		return;
	buf_printf(out,
		"calls        %lld running, %lld waiting; %lld done, %lld failed, %lld cancelled, "
		"%lld timed out, %lld refused\nhosts        %lld\n",
		number_of(status, "calls_running"), number_of(status, "calls_waiting"),
		number_of(status, "calls_done"), number_of(status, "calls_failed"),
		number_of(status, "calls_cancelled"), number_of(status, "calls_timed_out"),
		number_of(status, "calls_refused"), number_of(status, "hosts"));
}

static void render(const json_t *status, struct buf *out)
{
	bool is_mount = *text_of(status, "mount");
	buf_printf(out, "mount        %s\n", is_mount ? text_of(status, "mount") : "none");
	buf_printf(out, "directories  %s\n", text_of(status, "directories"));
	long long faults = number_of(status, "faults");
	buf_printf(out, "tools        %lld; %lld fault%s%s\n", number_of(status, "tools"), faults,
		faults == 1 ? "" : "s", faults ? ", see 'pegfs errors'" : "");
	if (is_mount)
		render_server(status, out);
}

static int print(struct tree *tree, bool as_json)
{
	auto_json json_t *status = xjson_object();
	auto_buf struct buf out = BUF_INIT(TREE_TEXT_MAX);
	struct fail why = FAIL_INIT;
	if (!tree->mount)
		look_at_directories(tree, status);
	else if (look_at_mount(tree, status, &why) < 0)
		return tree_print(tree, &out, &why);
	if (as_json) {
		jsontext_append(&out, status, JSONTEXT_PRETTY);
		buf_putc(&out, '\n');
	} else {
		render(status, &out);
	}
	return tree_print(tree, &out, &why);
}

static int tell_status(int argc, char **argv)
{
	struct tree tree = { .command = "status" };
	bool as_json = false;
	int option;
	cmdline_begin();
	while ((option = cmdline_next(&cmd_status, argc, argv)) != CMDLINE_END) {
		if (option == CMDLINE_WRONG)
			return COMMAND_USAGE;
		if (!tree_take_option(&tree, option, optarg))
			as_json = true;
	}
	if (optind < argc)
		return command_misuse("status", "too many arguments");
	int result = tree_open(&tree);
	if (result == COMMAND_OK)
		result = print(&tree, as_json);
	tree_close(&tree);
	return result;
}

const struct command cmd_status = { .name = "status",
	.summary = "what a mount is doing",
	.arguments = "",
	.about = "Tells how a mounted tree is: its server, its tools, the calls it has made.\n",
	.options = options,
	.notes = "Exit status: 0 the tree is served, 1 it is not, 2 wrong use.\n",
	.run = tell_status };
