/*
 * The executor's inner data, shared by its four files: executor.c (jobs: submitted, told of what
 * happens to them, ended), schedule.c (which job goes to which host), prepare.c (tools: made
 * ready for their first call) and worker.c (hosts: started,
 * bound to a pool, let go).
 *
 * A pool is a tool's entry file, its owner and an identity: its jobs that wait, and its hosts. A worker is a
 * host with what the executor knows of it; one without a pool is a spare.
 */
#ifndef PEGFS_RUNNING_POOL_H
#define PEGFS_RUNNING_POOL_H

#include "core/running/anchor.h"
#include "core/running/executor.h"
#include "core/running/host.h"
#include "core/running/job.h"

#define SPARE_DELAY_MS 100 /* lets the call that took a spare have the processor first */

enum runtime { RUNTIME_NODE, RUNTIME_PYTHON };
#define RUNTIMES (RUNTIME_PYTHON + 1)

struct pool {
	struct executor *executor; /* borrowed */
	struct tool *tool;         /* a reference; its dir, entry and owner name the pool */
	struct identity who;
	struct anchor
		*anchor; /* a reference; NULL: its hosts run here, or its place is not held (yet) */
	enum runtime runtime;
	struct job *first, **last; /* that wait, owned */
	size_t waiting;            /* of them */
	size_t worker_count;
	uint64_t round; /* of schedule_run in which there was no host for it */
	struct pool *next;
};

struct worker {
	struct executor *executor; /* borrowed */
	struct host *host;         /* owned */
	struct pool *pool;         /* borrowed; NULL: a spare */
	struct job *job;           /* borrowed from the executor; NULL: none runs */
	struct identity who;
	enum runtime runtime;
	bool has_env;  /* that of its tool; else it is told with the first call */
	bool outdated; /* it has an environment that is no more: goes when it is idle */
	struct loop_timer idle_timer;
	uint64_t idle_since_ms;
	struct worker *next;
};

/* What one user has in the executor; a pointer to it is good until the next look-up. */
struct share {
	uid_t uid;
	uint64_t tenant; /* of its place: root of a container is not that of another */
	unsigned waiting, running;
};

struct preparer;

struct executor {
	struct loop *loop;                           /* borrowed */
	struct executor_config config;               /* its strings are these */
	char *lib_dir, *state_dir, *shown_at, **env; /* owned */
	char *programs[RUNTIMES];  /* owned; node, python3; NULL where not installed */
	char *scripts[RUNTIMES];   /* owned; below lib_dir */
	char *warden;              /* owned; below lib_dir */
	char *bwrap;               /* owned; NULL where no sandbox is wanted */
	struct pool *pools;        /* owned */
	struct preparer *preparer; /* owned; NULL until a tool is to be prepared */
	struct worker *workers;    /* owned */
	struct share *shares;      /* owned; of each user that has jobs */
	size_t share_count, share_capacity;
	unsigned waiting, running;
	uint64_t next_serial, round;
	struct job *ended, **ended_last; /* owned; their on_end is due */
	struct loop_timer end_timer, schedule_timer, spare_timer;
	struct identity spare_who; /* whose spares are kept */
	unsigned spare_failures;   /* in a row; spares are given up at SPARE_FAILURES_MAX */
	uint64_t hosts_started, hosts_crashed;
};

/* ---- executor.c */

struct share *executor_share(struct executor *executor, const struct identity *who);

/*
 * The environment in which a tool runs for who; tool NULL: a host of no tool yet. Borrowed from the
 * tool's owner or the executor.
 */
const char *const *executor_env_of(
	const struct executor *executor, const struct tool *tool, const struct identity *who);

/* Tells a job of an event and does what its table says. The job may be gone afterwards. */
void executor_post(struct job *job, enum job_event event);

/* The tool begins, and so does its time: what its host took to boot is not taken from it. */
void executor_begin(struct job *job);

/* Makes the text of how it ends (RESULT_INIT until then), unless it is being stopped. */
void executor_set_failure(struct job *job, enum job_end end, const char *text);

/* A job that an earlier process has given to job->worker runs on, for job->timeout_ms. */
void executor_resume(struct job *job);

/* Tells of jobs that have ended now, not in the next turn. Not from within executor_submit(). */
void executor_report_ends(struct executor *executor);

/* ---- elsewhere.c: hosts where the caller lives */

/* Whether calls of who run where it lives, and not here. */
bool elsewhere_is_for(const struct executor *executor, const struct identity *who);

/*
 * Holds the place of a pool whose calls run elsewhere, for the hosts that may be started; tid is a
 * thread that lives there and waits for us. 0 or *why.
 */
int elsewhere_hold(struct pool *pool, pid_t tid, struct fail *why);

/*
 * Whether the container of a pool has half of all hosts already: then its calls wait for those, so
 * that one whose calls do not end keeps nobody else from having any. Never where calls run here.
 */
bool elsewhere_has_its_share(const struct pool *pool);

/* What a tool's directory is called there. The caller's. */
char *elsewhere_tool_dir(const struct executor *executor, const struct tool *tool);

/* The names in it that are no files of the tool. The caller's. */
json_t *elsewhere_generated(void);

/* Starts a host of a pool there. NULL and *why. */
struct host *elsewhere_start_host(
	const struct pool *pool, struct host_setup *setup, const char *heap, struct fail *why);

/* ---- recover.c */

/* A digest of a tool's place and of the executor's environment: a host with another one is old. */
uint64_t recover_code_of(
	const struct executor *executor, const struct tool *tool, const struct identity *who);

/* Puts a waiting job by for the next process; let it go again. */
void recover_put_by(const struct job *job);
void recover_let_go(const struct job *job);

/* ---- schedule.c */

/* The pool of a tool and identity; made where there is none. */
struct pool *schedule_pool(
	struct executor *executor, struct tool *tool, const struct identity *who);

/* Puts a job at the end of its pool's queue, or at the front. */
void schedule_push(struct job *job, bool at_front);

/* Takes a waiting job out of its pool's queue. */
void schedule_remove(struct job *job);

/* Gives jobs to hosts, as far as hosts and limits go. Ends those for which no host can be started. */
void schedule_run(struct executor *executor);

/* The same in the next turn of the loop. */
void schedule_soon(struct executor *executor);

/* Frees pools that have neither jobs nor hosts. */
void schedule_drop_empty(struct executor *executor);

/* ---- prepare.c */

void prepare_free(struct preparer *preparer); /* NULL is allowed */

/* ---- worker.c */

/*
 * A host process for who with the executor's limits and settings, in a sandbox where there is to be
 * one; pool: for whose tool, and where its calls run; NULL: it runs none. The caller's. NULL and *why.
 */
struct host *worker_start_host(struct executor *executor, const struct identity *who,
	enum runtime runtime, const struct pool *pool, const struct host_events *events, void *arg,
	struct fail *why);

/* Starts a host for who; pool: for this one only, NULL: a spare. NULL and *why. */
struct worker *worker_start(struct executor *executor, const struct identity *who,
	enum runtime runtime, const struct pool *pool, struct fail *why);

/* Takes up the host of a keeper's slot. NULL and *why. */
struct worker *worker_adopt(struct executor *executor, size_t slot, struct fail *why);

/* Its call is over, or was never begun: the next process need not know of it. */
void worker_forget_call(struct worker *worker);

/* From now on it belongs to a pool; its host has not loaded anything yet. */
void worker_bind(struct worker *worker, struct pool *pool);

/* Hands it a job; 0 or a negative errno. */
int worker_give(struct worker *worker, struct job *job);

/* Lets an idle one go. */
void worker_dismiss(struct worker *worker);

/* Whether it can be given a job now. */
bool worker_is_free(const struct worker *worker);

/* Whether it counts for limits: not one that is on its way out. */
bool worker_counts(const struct worker *worker);
unsigned worker_count(const struct executor *executor);

/* Sees to it, a little later, that as many spares wait as are wanted. */
void worker_keep_spares(struct executor *executor, unsigned delay_ms);

void worker_free(struct worker *worker);

#endif
