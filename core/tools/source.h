/*
 * One tool directory of PI_TOOLS_DIRS, and the files of its tools. Who writes tools is not trusted:
 * everything below the source directory is opened beneath it, and a tool's files beneath the tool.
 */
#ifndef PEGFS_TOOLS_SOURCE_H
#define PEGFS_TOOLS_SOURCE_H

#include "core/base/fail.h"
#include "core/tools/faults.h"
#include "core/tools/tool.h"

/* Tools found in one source, in byte order of their directories' names (A7). */
struct source_scan {
	struct tool **tools; /* owned references */
	size_t count, capacity;
	struct faults faults;
};

/*
 * Scans the subdirectories of path (absolute): those with a TOOL.md and an entry become tools (R6,
 * R96, R97, A5, A6, A9, A15); hidden ones (a leading dot, A16) and plain files are passed over.
 * Nothing of a tool is run. A missing or unreadable directory gives no tools and one fault. Equal
 * names inside it are all reported here and resolved by the registry.
 */
void source_scan(const char *path, struct source_scan *scan);
void source_scan_release(struct source_scan *scan);

/*
 * The tool's directory as an O_PATH descriptor for openat-like calls and io_open_beneath, which is
 * the caller's; or a negative errno. Reached through the source, so a link cannot lead out of it.
 */
int source_open_tool(const struct tool *tool);

#endif
