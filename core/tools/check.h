/*
 * The linter for tool directories: what the scan itself finds (faults.h), and the rules beyond it
 * for TOOL.md (checkdoc.h), the code (codecheck.h) and further files (checkfiles.h). It judges and
 * changes nothing, and runs nothing of a tool. checkcodes.h lists all codes.
 */
#ifndef PEGFS_TOOLS_CHECK_H
#define PEGFS_TOOLS_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/tools/faults.h"

#define CHECK_ENTRY_MAX (4 * 1024 * 1024) /* bytes of an entry file that are looked at */

struct check_options {
	/* An earlier state of the same tools, each by its directory's name; NULL: none (R104). */
	const char *against;
	const char *const *ignored; /* codes, NULL-terminated, or NULL; borrowed */
};

struct check_report {
	struct faults faults; /* each with its file, in order of file, line and column */
	size_t tools;         /* directories that were looked at */
};

/*
 * Looks at path and adds to *report: a tool's directory (or a file in it: TOOL.md, the entry), or a
 * directory of tools. Files are named as path names them. A path that holds no tool is a fault.
 */
void check_path(const char *path, const struct check_options *options, struct check_report *report);

/* Puts all faults in order, and takes out those that are ignored or doubled. Call it once. */
void check_finish(const struct check_options *options, struct check_report *report);
void check_report_release(struct check_report *report);

size_t check_count(const struct check_report *report, enum fault_level level);

#endif
