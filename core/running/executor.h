/*
 * Runs calls in tool hosts: a queue of jobs and a pool of host processes. A host belongs to one
 * tool and one identity, runs one job at a time and stays warm for the next; a spare one, already
 * booted, waits for the first call of any tool. The executor knows nothing of FUSE, of call files
 * or of what becomes of a result: it reports through callbacks.
 */
#ifndef PEGFS_RUNNING_EXECUTOR_H
#define PEGFS_RUNNING_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/fail.h"
#include "core/base/loop.h"
#include "core/running/identity.h"
#include "core/running/sandbox.h"
#include "core/tools/result.h"
#include "core/tools/tool.h"

struct executor;
struct job;
struct keeper;

/* Everything is copied. Zero in a number means its default (executor_config_defaults). */
struct executor_config {
	const char *lib_dir;   /* holds host/ (the host scripts) and node_modules/ (jiti) */
	const char *state_dir; /* private, on tmpfs; caches lie below it, one for each uid */
	const char
		*shown_at; /* where callers elsewhere see the tools' directories; NULL: nowhere */
	const char *const *env;  /* NULL-terminated NAME=VALUE: the whole environment of a tool that
	                            has no owner with one of his own */
	unsigned hosts_max;      /* host processes at once */
	unsigned hosts_per_tool; /* of one tool and identity */
	unsigned queue_max;      /* jobs that wait, in all */
	unsigned queue_per_uid;  /* jobs that wait or run, of one uid */
	unsigned spares;         /* booted hosts that wait for a tool */
	unsigned timeout_ms;     /* of a job, from its start; a tool's own may be lower */
	unsigned grace_ms;       /* from the abort signal to SIGTERM, and from that to SIGKILL */
	unsigned idle_ms;        /* after which a warm host goes */
	uint64_t memory_max;     /* bytes, of one host with all that it starts; 0: no limit */
	unsigned processes_max;  /* of the same; 0: no limit */
	unsigned files_max;      /* open files of one process */
	size_t result_max;       /* bytes of JSON that a host may send as one result */
	size_t output_max;       /* bytes of what a tool prints that are handed on, for each job */
	size_t progress_max;     /* bytes of progress that are handed on, for each job */
	enum sandbox_kind sandbox;   /* around each host; without spares then */
	struct identity_rules rules; /* as whom calls are run */
	const struct keeper *keeper; /* borrowed, keeper.h; NULL: hosts die with this process */
};

void executor_config_defaults(struct executor_config *config);

/* Owned by the caller. loop is borrowed and must outlive it. NULL and *why where it cannot be. */
struct executor *executor_new(
	struct loop *loop, const struct executor_config *config, struct fail *why);

/*
 * Another environment for tools, copied: hosts that have the old one go as soon as they are idle, and
 * no further call is given to them.
 */
void executor_set_env(struct executor *executor, const char *const *env);

/*
 * An owner's environment is another one, or nobody wants his hosts any more: the same for those of
 * his tools. Tools of an owner run in that one's environment and never in a host of another's.
 */
void executor_outdate(struct executor *executor, const struct owner *owner);

/* Kills every host and its children, waits for none; jobs end without a callback. */
void executor_free(struct executor *executor);

/* How a job ended; each has one result that says so to the caller. */
enum job_end {
	JOB_DONE,    /* a ToolResult that is no error */
	JOB_FAILED,  /* isError, a throw, no ToolResult, a missing export */
	JOB_CRASHED, /* the host died, was killed for memory, or broke the protocol */
	JOB_TIMED_OUT,
	JOB_CANCELLED,
};

struct job_events {
	/* The job has been given to a host. */
	void (*on_start)(void *arg, pid_t host_pid);
	/* One onUpdate: its partial as JSON on one line, without a newline. */
	void (*on_progress)(void *arg, const char *json, size_t len);
	/* What the tool printed; all of it comes before on_end. */
	void (*on_output)(void *arg, const char *bytes, size_t len);
	/* Exactly once, last; never from within executor_submit. *result becomes the callee's. */
	void (*on_end)(void *arg, enum job_end end, struct result *result);
};

struct job_request {
	const char *call_id;        /* toolCallId; copied */
	struct tool *tool;          /* a reference is taken */
	const json_t *params;       /* complete and checked; copied */
	const struct identity *who; /* copied */
	pid_t tid;                  /* the thread that called, and waits; 0: none does */
	unsigned timeout_ms;        /* 0: the tool's; never more than the executor's */
	uint64_t tag;               /* by which the keeper's next process finds it; not 0 */
	bool nested;                /* made by a call that runs: never waits for a free host,
	                                   or the two would wait for each other */
};

/*
 * Makes a tool quick for its first call, some time soon: its files are translated and kept in the
 * cache of this process's uid, from which others' caches begin. Nothing of the tool runs. To be
 * called for every tool of a new snapshot: one that was there before costs nothing. References are
 * taken.
 */
void executor_prepare(struct executor *executor, struct tool *tool);

/*
 * Queues or starts a job. events is borrowed for the job's life (make it static). Returns the job,
 * owned by the executor, valid until on_end returns; or NULL and *why: -EBUSY when too many wait,
 * -EACCES when this process may not run anything as that identity.
 */
struct job *executor_submit(struct executor *executor, const struct job_request *request,
	const struct job_events *events, void *arg, struct fail *why);

/* Who gets what an earlier process has left with the keeper. */
struct executor_heirs {
	/* The tool of that tool_key() now, borrowed; NULL where there is none. */
	struct tool *(*find_tool)(void *arg, const char *key);
	/* The job that has the tag goes on: who hears of it. False: nobody wants it any more. */
	bool (*find_job)(void *arg, uint64_t tag, const struct job_events **events, void **job_arg);
	/* It was found: from here on as if it had been submitted. */
	void (*on_job)(void *job_arg, struct job *job);
	/* It was being handed to a host, which may have begun with it, and which is ended. */
	void (*on_lost)(void *arg, uint64_t tag);
};

/* Takes up the hosts that the keeper has, with their jobs. To be called once, before the loop runs. */
void executor_recover(struct executor *executor, const struct executor_heirs *heirs, void *arg);

/*
 * Submits again what was waiting in an earlier process under that tag; as executor_submit(). NULL
 * and *why: -ENOENT where the keeper has nothing of it.
 */
struct job *executor_resubmit(struct executor *executor, uint64_t tag, struct tool *tool,
	const char *call_id, const struct job_events *events, void *arg, struct fail *why);

/* Aborts a job: AbortSignal first, then SIGTERM, then SIGKILL to its whole process tree. */
void executor_cancel(struct job *job);

/* Whether pid is one of the hosts. */
bool executor_owns_pid(const struct executor *executor, pid_t pid);

struct executor_stats {
	unsigned hosts, hosts_idle, spares, jobs_running, jobs_waiting;
	uint64_t hosts_started, hosts_crashed;
};
void executor_get_stats(const struct executor *executor, struct executor_stats *stats);

#endif
