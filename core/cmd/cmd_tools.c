#include "core/cmd/cmd_tools.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/cmd/command.h"
#include "core/tools/prompt.h"
#include "core/tools/registry.h"

#define DEFAULT_MOUNT "/officer/tools"

/* One of these commands at work. */
struct inspection {
	const char *command;
	const char *usage;
	const char *tools, *mount;
	struct registry *registry;
	struct buf out;
};

static int parse(struct inspection *look, int argc, char **argv)
{
	static const struct option options[] = {
		{ "tools", required_argument, NULL, 't' },
		{ "mount", required_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	look->tools = getenv("PI_TOOLS_DIRS");
	look->mount = getenv("PEGFS_MOUNT");
	int option;
	optind = 0;
	while ((option = getopt_long(argc, argv, "t:m:h", options, NULL)) != -1)
		switch (option) {
		case 't':
			look->tools = optarg;
			break;
		case 'm':
			look->mount = optarg;
			break;
		case 'h':
			printf("usage: pegfs %s %s\n\n"
			       "  -t, --tools DIR:DIR...  the tool directories (default: "
			       "$PI_TOOLS_DIRS)\n"
			       "  -m, --mount PATH        the path that the texts name (default: "
			       "$PEGFS_MOUNT, else " DEFAULT_MOUNT ")\n",
				look->command, look->usage);
			exit(COMMAND_OK);
		default:
			fprintf(stderr, "see 'pegfs %s --help'\n", look->command);
			return COMMAND_USAGE;
		}
	if (!look->tools || !*look->tools)
		return command_misuse(
			look->command, "no tool directories: give --tools or set PI_TOOLS_DIRS");
	if (!look->mount || !*look->mount)
		look->mount = DEFAULT_MOUNT;
	return COMMAND_OK;
}

static int begin(struct inspection *look, int argc, char **argv)
{
	buf_init(&look->out, PROMPT_ALL_SIZE_MAX);
	int status = parse(look, argc, argv);
	if (status != COMMAND_OK)
		return status;
	look->registry = registry_new(look->tools);
	registry_scan(look->registry);
	return COMMAND_OK;
}

static int end(struct inspection *look, int status)
{
	if (look->out.failed)
		status = command_failed(look->command, strerror(-look->out.failed));
	else if (status == COMMAND_OK)
		fwrite(look->out.data ? look->out.data : "", 1, look->out.len, stdout);
	if (fflush(stdout) != 0)
		status = command_failed(look->command, "cannot write the output");
	buf_release(&look->out);
	registry_free(look->registry);
	return status;
}

static const struct tool *find(const struct inspection *look, const char *name)
{
	const struct tool *tool = snapshot_find(registry_current(look->registry), name);
	if (!tool)
		fprintf(stderr,
			"pegfs %s: there is no tool '%s' in %s; see 'pegfs list' and "
			"'pegfs errors'\n",
			look->command, name, look->tools);
	return tool;
}

int cmd_list(int argc, char **argv)
{
	struct inspection look = { .command = "list", .usage = "[OPTIONS]" };
	int status = begin(&look, argc, argv);
	if (status == COMMAND_OK) {
		const struct snapshot *snapshot = registry_current(look.registry);
		for (size_t i = 0; i < snapshot->count; i++)
			buf_printf(&look.out, "%-24s %3" PRId64 "  %s\n", snapshot->tools[i]->name,
				snapshot->tools[i]->version, snapshot->tools[i]->dir);
	}
	return end(&look, status);
}

int cmd_schema(int argc, char **argv)
{
	struct inspection look = { .command = "schema", .usage = "[OPTIONS] TOOL" };
	int status = begin(&look, argc, argv);
	if (status == COMMAND_OK && optind + 1 != argc)
		status = command_misuse("schema", "name one tool");
	if (status == COMMAND_OK) {
		const struct tool *tool = find(&look, argv[optind]);
		status = tool ? COMMAND_OK : COMMAND_FAILED;
		if (tool)
			prompt_schema(tool, &look.out);
	}
	return end(&look, status);
}

int cmd_prompt(int argc, char **argv)
{
	struct inspection look = { .command = "prompt", .usage = "[OPTIONS] [TOOL...]" };
	int status = begin(&look, argc, argv);
	if (status == COMMAND_OK && optind == argc) {
		const struct snapshot *snapshot = registry_current(look.registry);
		prompt_all(snapshot->tools, snapshot->count, look.mount, &look.out);
	}
	for (int i = optind; status == COMMAND_OK && i < argc; i++) {
		const struct tool *tool = find(&look, argv[i]);
		status = tool ? COMMAND_OK : COMMAND_FAILED;
		if (tool)
			prompt_tool(tool, look.mount, &look.out);
	}
	return end(&look, status);
}

int cmd_errors(int argc, char **argv)
{
	struct inspection look = { .command = "errors", .usage = "[OPTIONS]" };
	int status = begin(&look, argc, argv);
	if (status == COMMAND_OK)
		faults_render(&registry_current(look.registry)->faults, &look.out);
	return end(&look, status);
}
