/* The name by which a tool's `run` was started, for messages that are read, and pasted into a shell. */
#ifndef PEGFS_TOOLS_PROGRAM_H
#define PEGFS_TOOLS_PROGRAM_H

#define PROGRAM_NAME_MAX 1024 /* a longer one is not shown */

/* "NAME/run" and "NAME" as a shell takes them; both are owned by the caller. */
void program_of_tool(const char *tool_name, char **program, char **dir);

/*
 * Puts given and its directory in their place (and frees those), as a shell takes them. given comes
 * from anybody: one that is no path, or that would not show well, changes nothing.
 */
void program_replace(const char *given, char **program, char **dir);

#endif
