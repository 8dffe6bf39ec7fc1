/*
 * Tool hosts of a command's own, where there is no mount: an executor with the limits that a mount
 * has unless it is told others. Its caches lie in a private directory that goes with it.
 */
#ifndef PEGFS_CMD_OWNHOSTS_H
#define PEGFS_CMD_OWNHOSTS_H

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/running/executor.h"

struct ownhosts {
	struct executor *executor; /* owned */
	char *lib_dir, *state_dir; /* owned */
};

/*
 * tools: the directories, for the tools' environment; command: whose it is. loop is borrowed and
 * must outlive it. 0 or *why; released in both cases.
 */
int ownhosts_start(struct ownhosts *hosts, struct loop *loop, const char *command,
	const char *tools, struct fail *why);
void ownhosts_release(struct ownhosts *hosts);

#endif
