/*
 * Tools as `pegfs mcp` sees them, in either of two ways: directories, with an executor of our own
 * (mcpdirect.c), or a mounted tree (mcpmount.c).
 */
#ifndef PEGFS_CMD_MCPRUNNER_H
#define PEGFS_CMD_MCPRUNNER_H

#include <jansson.h>

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/cmd/tree.h"
#include "core/tools/result.h"

struct mcprunner;
struct mcprun;

struct mcprun_events {
	void (*on_progress)(void *arg, const char *json, size_t len);
	void (*on_output)(void *arg, const char *bytes, size_t len);
	/* Once, never from within start(); *result becomes the callee's, the run is gone. */
	void (*on_end)(void *arg, struct result *result);
};

struct mcprunner_kind {
	/* tree is borrowed, its registry becomes this one's. NULL and *why. */
	struct mcprunner *(*make)(struct loop *loop, struct tree *tree,
		void (*on_change)(void *arg), void *arg, struct fail *why);
	/* Runs end without a callback. NULL is allowed. */
	void (*release)(struct mcprunner *runner);
	/* tools.json as it is now: a new reference; or NULL and *why. */
	json_t *(*list)(struct mcprunner *runner, struct fail *why);
	/*
	 * Starts a call with a request of one JSON object. NULL and *why: -ENOENT where there is no such
	 * tool, -EINVAL where the request is wrong, others.
	 */
	struct mcprun *(*start)(struct mcprunner *runner, const char *tool,
		const struct buf *request, const struct mcprun_events *events, void *arg,
		struct fail *why);
	/* on_end follows. */
	void (*cancel)(struct mcprun *run);
};

extern const struct mcprunner_kind mcpdirect, mcpmount;

#endif
