/* list, schema, prompt, errors: what tool directories hold, straight from them. */
#ifndef PEGFS_CMD_CMD_TOOLS_H
#define PEGFS_CMD_CMD_TOOLS_H

int cmd_list(int argc, char **argv);
int cmd_schema(int argc, char **argv);
int cmd_prompt(int argc, char **argv);
int cmd_errors(int argc, char **argv);

#endif
