/* The server: everything of one mount, wired together. One thread, one loop. */
#ifndef PEGFS_FS_SERVER_H
#define PEGFS_FS_SERVER_H

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/loop.h"
#include "core/running/calls.h"
#include "core/running/executor.h"
#include "core/running/quota.h"
#include "core/tools/registry.h"
#include "core/tools/watch.h"
#include "fs/file.h"
#include "fs/handle.h"
#include "fs/node.h"
#include "fs/view.h"

struct session;
struct mount_options;

struct server {
	const struct mount_options *options; /* borrowed */
	struct loop *loop;
	struct registry *registry;
	struct watch *watch;
	struct snapshot *snapshot; /* a reference: what the tree shows now */
	struct executor *executor;
	struct calls *calls;
	struct session *session;
	struct views views;
	struct files files;
	struct handles handles;
	struct map readable;      /* node number -> struct callfile, of those that can be read */
	struct quota gathering;   /* bytes of requests that are not complete yet */
	struct stat integrations; /* as that file was when it was read */
	uint64_t call_serial;     /* of the next look-up of `call` */
	uint32_t tree_digest;     /* of all tools and faults: what the root's texts are made from */
	bool has_epoch;           /* the kernel can drop all cached names at once (Linux 6.16) */
	bool is_disconnected;     /* the kernel has ended the session */
	struct timespec started;  /* CLOCK_REALTIME */
	struct timespec changed;  /* CLOCK_REALTIME; when the set of tools changed last */
	int state_fd;             /* the private directory */
	uid_t uid;                /* of the daemon; another may only call where that is root */
};

/*
 * To be called before each call: where the file of integrations has changed, hosts that have read it
 * are replaced. What is wrong with the new file is logged, and the old one counts.
 */
void server_refresh_environment(struct server *server);

/*
 * Serves an existing mount on fuse_fd (becomes the server's) until it is unmounted or a signal ends
 * it. covered_fd is the directory that lies below the mount; borrowed. on_ready(arg) is called once,
 * when the tree can be used. 0 or *why.
 */
int server_run(const struct mount_options *options, int fuse_fd, int covered_fd,
	void (*on_ready)(void *arg), void *arg, struct fail *why);

#endif
