#include "core/cmd/look.h"

#include <getopt.h>

#include "core/cmd/cmdline.h"

int look_run(const struct command *command, int argc, char **argv, int least, int most,
	look_render *render)
{
	struct tree tree = { .command = command->name };
	int option;
	cmdline_begin();
	while ((option = cmdline_next(command, argc, argv)) != CMDLINE_END)
		if (option == CMDLINE_WRONG || !tree_take_option(&tree, option, optarg))
			return COMMAND_USAGE;
	if (argc - optind < least)
		return command_misuse(
			command->name, command->takes == COMMAND_TAKES_TOOLS
					       ? "name a tool; 'pegfs list' shows them"
					       : "an argument is missing");
	if (argc - optind > most)
		return command_misuse(command->name, "too many arguments");
	auto_buf struct buf out = BUF_INIT(TREE_TEXT_MAX);
	struct fail why = FAIL_INIT;
	int status = tree_open(&tree);
	if (status == COMMAND_OK) {
		render(&tree, argv + optind, &out, &why);
		status = tree_print(&tree, &out, &why);
	}
	tree_close(&tree);
	return status;
}
