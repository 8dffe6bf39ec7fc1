/* One job of the executor: what is to be run, how far it is, and what is to happen next. */
#ifndef PEGFS_RUNNING_JOB_H
#define PEGFS_RUNNING_JOB_H

#include <stdbool.h>

#include "core/running/executor.h"
#include "core/running/scrub.h"

enum job_state {
	JOB_WAITING,     /* in its pool's queue */
	JOB_RUNNING,     /* given to a host */
	JOB_ABORTING,    /* its AbortSignal has fired */
	JOB_TERMINATING, /* its host has got SIGTERM */
	JOB_KILLING,     /* and SIGKILL */
	JOB_OVER,        /* its end has been, or is about to be, reported */
};
#define JOB_STATES (JOB_OVER + 1)

enum job_event {
	JOB_ON_GIVE,   /* a host takes it */
	JOB_ON_CANCEL, /* nobody wants it any more */
	JOB_ON_EXPIRY, /* its time, or the grace of the last measure, is over */
	JOB_ON_ANSWER, /* the host has sent a result or a failure */
	JOB_ON_LOST,   /* the host has ended without one */
	JOB_ON_RETRY,  /* the host has not begun with it, and will not */
};
#define JOB_EVENTS (JOB_ON_RETRY + 1)

enum job_action {
	JOB_DO_NOTHING,
	JOB_DO_START,
	JOB_DO_ABORT,
	JOB_DO_TERMINATE,
	JOB_DO_KILL,
	JOB_DO_REQUEUE,
	JOB_DO_END,
};

struct job_step {
	enum job_state next;
	enum job_action action;
};

/* The table: what an event means in a state. */
struct job_step job_step(enum job_state state, enum job_event event);

struct pool;
struct worker;

struct job {
	struct executor *executor; /* borrowed */
	struct pool *pool;         /* borrowed from the executor; NULL once it is over */
	struct worker *worker;     /* borrowed; NULL while it waits and once it is over */
	struct job *next;          /* in the pool's queue, or among those that have ended */
	enum job_state state;
	struct tool *tool;   /* a reference */
	char *id;            /* owned */
	char *params;        /* owned, JSON on one line; gone once a host has begun */
	char *secrets;       /* owned, JSON: the sensitive ones; NULL: there are none */
	struct scrub *scrub; /* owned; NULL: it has no sensitive values */
	const struct job_events *events;
	void *arg;
	struct loop_timer timer;
	uint64_t serial;           /* order of submission */
	uint64_t tag;              /* of job_request */
	pid_t tid;                 /* the same */
	uint64_t waiting_since_ms; /* by the loop's clock */
	unsigned timeout_ms;
	bool nested;
	bool started;      /* the host has begun with it: from here on it is never run again */
	unsigned retries;  /* how often a host ended before it had begun */
	bool stop_is_late; /* stopped because its time was over, not because it was cancelled */
	size_t progress_left;
	enum job_end end; /* valid in JOB_OVER */
	struct result result;
};

/* A job that waits. NULL and *why (-ENOMEM). */
struct job *job_new(const struct job_request *request, const struct job_events *events, void *arg,
	struct fail *why);
void job_free(struct job *job);

/* Hands on what its tool printed, without sensitive values; flush: and what was held back of it. */
void job_output(struct job *job, const char *bytes, size_t len);
void job_flush_output(struct job *job);

/* Its parameters are needed no longer; they may hold secrets, so they are wiped. */
void job_forget_params(struct job *job);

#endif
