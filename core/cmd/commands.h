/* The commands that need no mount: cmd_NAME.c has each. Those that look at tools do so through tree.h. */
#ifndef PEGFS_CMD_COMMANDS_H
#define PEGFS_CMD_COMMANDS_H

#include "core/cmd/command.h"

extern const struct command cmd_call, cmd_check, cmd_completion, cmd_errors, cmd_formats,
	cmd_import, cmd_list, cmd_manual, cmd_mcp, cmd_new, cmd_prompt, cmd_schema, cmd_show,
	cmd_status, cmd_sync;

#endif
