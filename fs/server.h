/* The server: everything of one mount, wired together. One thread, one loop. */
#ifndef PEGFS_FS_SERVER_H
#define PEGFS_FS_SERVER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/loop.h"
#include "core/running/audit.h"
#include "core/running/calls.h"
#include "core/running/executor.h"
#include "core/running/meter.h"
#include "core/running/quota.h"
#include "core/tools/registry.h"
#include "core/tools/watch.h"
#include "fs/file.h"
#include "fs/forest.h"
#include "fs/handle.h"
#include "fs/link.h"
#include "fs/node.h"
#include "fs/opened.h"
#include "fs/view.h"

struct session;
struct mount_options;

struct server {
	const struct mount_options *options; /* borrowed */
	struct loop *loop;
	struct forest *forest; /* owned: the tree, or those of all users */
	struct watch *watch;
	struct executor *executor;
	struct calls *calls;
	struct audit audit;
	struct meter meter;
	struct session *session;
	struct views views;
	struct files files;
	struct handles handles;
	struct opened opened;     /* what is open, for the next server */
	struct map readable;      /* node number -> struct callfile, of those that can be read */
	struct quota open_calls;  /* call files that are open for writing */
	struct quota gathering;   /* bytes of requests that are not complete yet */
	struct stat integrations; /* as that file was when it was read */
	struct state *state;      /* borrowed: what survives this process */
	struct link link;         /* to the supervisor */
	struct loop_fd *link_entry;
	struct loop_timer prepare_timer; /* when tools are made ready for their first call */
	bool has_epoch;          /* the kernel can drop all cached names at once (Linux 6.16) */
	struct timespec started; /* CLOCK_REALTIME */
	int state_fd;            /* the private directory */
	uid_t uid;               /* of the daemon; another may only call where that is root */
};

/*
 * To be called before each call of a tool: where the file of integrations has changed, hosts that have
 * read it are replaced. What is wrong with the new file is logged, and the old one counts.
 */
void server_refresh_environment(struct server *server, const struct tool *tool);

/* To be called once with each call that has begun, for the audit trail. */
void server_note_start(struct server *server, uint64_t seq);

/*
 * Serves the mount that the supervisor (supervisor.h) has handed over, from the first request or
 * from where an earlier server was, until the mount has ended or another server is to take over. The
 * exit status: one of enum supervisor_exit, or another number where *why says what went wrong.
 */
int server_run(const struct mount_options *options, struct state *state, struct fail *why);

#endif
