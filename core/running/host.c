#include "core/running/host.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/log.h"
#include "core/base/xalloc.h"
#include "core/running/printed.h"
#include "core/running/warden.h"

/* Bytes taken from the socket in one turn. */
#ifdef PEGFS_TINY
#define READ_STEP ((size_t)509)
#else
#define READ_STEP ((size_t)64 * 1024)
#endif
#define SEND_MAX ((size_t)1 << 30) /* the request's own limit is far below */

/* More than a socket holds. */
#define LAST_WORDS_MAX ((size_t)16 * 1024 * 1024)

/* A host that has not come to rest by then after a call is killed. */
#define SETTLE_MS 2000

/* A host is told what has been heard with its next call, for to tell it wakes it. */
#define ACK_MS 100
#define ACK_AT_ONCE ((size_t)64 * 1024) /* the host keeps what is not acknowledged */

struct host {
	struct loop *loop;                /* borrowed */
	const struct host_events *events; /* borrowed */
	void *arg;
	enum host_state state;
	bool booted;
	struct spawn_child child; /* its descriptors are owned */
	struct loop_child *watch;
	struct loop_fd *socket_entry, *control_entry;
	const struct keeper *keeper; /* borrowed; NULL: not kept */
	size_t slot;                 /* at the keeper's */
	struct kept_host *kept;      /* borrowed from the keeper; NULL: not kept */
	bool rested, swept; /* in HOST_SETTLING: what the host and what the warden has found */
	struct loop_timer kill_timer; /* while it settles, and after a dismissal */
	struct loop_timer ack_timer;  /* while something has been heard that is not acknowledged */
	struct printed printed;
	struct wire_reader reader;
	uint64_t acked;
	size_t unacked; /* bytes read since */
	struct buf sending;
	size_t sent; /* of sending */
	unsigned grace_ms;
	uint64_t memory_max, processes_max;
	enum warden_limit limit; /* for which it was ended */
	bool ended;              /* the warden has told wait_status */
	int wait_status;         /* as from waitpid(2) */
	struct fail fault;       /* what was wrong with its messages */
};

enum host_state host_step(enum host_state state, enum host_event event)
{
	/* An event that cannot come in a state leaves it as it is; HOST_ENDING and HOST_GONE stay. */
	/* clang-format off */
	enum { BOOT = HOST_BOOTING, IDLE = HOST_IDLE, BUSY = HOST_BUSY, SETT = HOST_SETTLING,
	       ENDI = HOST_ENDING, GONE = HOST_GONE };
	static const unsigned char table[HOST_STATES][HOST_EVENTS] = {
		/*                 READY  GIVE  ANSWER CLEAN DIRTY DISMISS EXIT */
		[HOST_BOOTING]  = { IDLE, BUSY, BOOT,  BOOT, ENDI, ENDI,   GONE },
		[HOST_IDLE]     = { IDLE, BUSY, IDLE,  IDLE, ENDI, ENDI,   GONE },
		[HOST_BUSY]     = { BUSY, BUSY, SETT,  BUSY, ENDI, ENDI,   GONE },
		[HOST_SETTLING] = { SETT, SETT, SETT,  IDLE, ENDI, ENDI,   GONE },
		[HOST_ENDING]   = { ENDI, ENDI, ENDI,  ENDI, ENDI, ENDI,   GONE },
		[HOST_GONE]     = { GONE, GONE, GONE,  GONE, GONE, GONE,   GONE },
	};
	/* clang-format on */
	_Static_assert(sizeof(table) / sizeof(table[0]) == HOST_STATES, "a row for each state");
	_Static_assert(sizeof(table[0]) / sizeof(table[0][0]) == 7, "a column for each event");
	return (enum host_state)table[state][event];
}

static void unkeep(struct host *host);

static void post(struct host *host, enum host_event event)
{
	host->state = host_step(host->state, event);
	if (host->kept)
		host->kept->state = (uint32_t)host->state;
}

/* ---- output */

static void on_printed(void *arg, const char *bytes, size_t len)
{
	struct host *host = arg;
	if (host->kept)
		host->kept->output_left = host->printed.left;
	host->events->on_output(host->arg, bytes, len);
}

/* ---- socket, outwards */

static void stop_socket(struct host *host)
{
	loop_remove_fd(&host->socket_entry);
	loop_cancel_timer(&host->ack_timer);
	buf_release(&host->sending);
	host->sent = 0;
}

static void send_queued(struct host *host)
{
	while (host->sent < host->sending.len) {
		ssize_t done = send(host->child.socket_fd, host->sending.data + host->sent,
			host->sending.len - host->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN)
			break;
		if (done < 0)
			host->sent = host->sending.len; /* it is gone; its exit is told elsewhere */
		else
			host->sent += (size_t)done;
	}
	bool all = host->sent == host->sending.len;
	if (all) {
		buf_release(&host->sending);
		host->sent = 0;
		if (host->kept)
			host->kept->delivered = 1;
	}
	if (host->socket_entry)
		loop_set_events(host->socket_entry, all ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

static void put_ack(struct host *host)
{
	loop_cancel_timer(&host->ack_timer);
	host->unacked = 0;
	if (host->reader.seen == host->acked)
		return;
	host->acked = host->reader.seen;
	wire_put_ack(&host->sending, host->acked);
}

static void on_ack_timer(void *arg)
{
	put_ack(arg);
	send_queued(arg);
}

static void acknowledge(struct host *host)
{
	if (host->reader.seen == host->acked)
		return;
	if (host->unacked >= ACK_AT_ONCE)
		on_ack_timer(host);
	else if (host->ack_timer.slot == 0)
		loop_arm_timer(host->loop, &host->ack_timer, ACK_MS, on_ack_timer, host);
}

/* ---- socket, inwards */

/* It does not keep to the protocol: nothing it says can be trusted any more. */
static void on_fault(struct host *host, const struct fail *why)
{
	host->fault = *why;
	stop_socket(host);
	host_signal(host, SIGKILL);
}

static void on_kill_timer(void *arg)
{
	host_signal(arg, SIGKILL);
}

/* Both have answered: the host is as it was before the call. */
static void check_settled(struct host *host)
{
	if (host->state != HOST_SETTLING || !host->rested || !host->swept)
		return;
	loop_cancel_timer(&host->kill_timer);
	post(host, HOST_ON_CLEAN);
	host->events->on_idle(host->arg);
}

static void order(struct host *host, enum warden_order_type type, int signal)
{
	struct warden_order record = { .type = (int)type, .signal = signal };
	/* Where it cannot be sent, the warden is gone, and the host with it. */
	if (send(host->child.control_fd, &record, sizeof(record), MSG_NOSIGNAL | MSG_DONTWAIT) <
			0 &&
		errno != EPIPE && errno != ECONNRESET)
		log_errno(LOG_LEVEL_ERROR, "cannot reach the warden of host %d",
			(int)host->child.pid);
}

/* The call has ended, and so does what it started. */
static void settle(struct host *host)
{
	host->rested = host->swept = false;
	if (host->kept)
		host->kept->rested = 0;
	post(host, HOST_ON_ANSWER);
	order(host, WARDEN_SWEEP, 0);
	/* What the call left may keep it from ever answering. */
	loop_arm_timer(host->loop, &host->kill_timer, SETTLE_MS, on_kill_timer, host);
}

static void on_message(struct host *host, const struct wire_message *message)
{
	switch (message->type) {
	case WIRE_READY:
		host->booted = true;
		if (host->kept)
			host->kept->booted = 1;
		if (host->state == HOST_BOOTING) {
			post(host, HOST_ON_READY);
			host->events->on_idle(host->arg);
		}
		break;
	case WIRE_IDLE:
		if (host->state != HOST_SETTLING)
			break;
		if (!message->clean) {
			host_dismiss(host);
			break;
		}
		host->rested = true;
		if (host->kept)
			host->kept->rested = 1;
		check_settled(host);
		break;
	case WIRE_STALE:
		host->events->on_message(host->arg, message);
		host_dismiss(host);
		break;
	case WIRE_RESULT:
	case WIRE_FAILED:
		printed_end(&host->printed);
		settle(host);
		host->events->on_message(host->arg, message);
		break;
	case WIRE_STARTED:
	case WIRE_PROGRESS:
	case WIRE_PREPARED:
		host->events->on_message(host->arg, message);
		break;
	}
}

/* The host may be gone afterwards, but only with its process, which is told elsewhere. */
static void hear(struct host *host, const struct wire_message *message)
{
	if (!host->kept) {
		on_message(host, message);
		return;
	}
	host->keeper->hear(host->keeper->arg, host->slot, false);
	on_message(host, message);
	if (host->kept)
		host->kept->seen = message->seq;
	host->keeper->hear(host->keeper->arg, host->slot, true);
}

static void handle_messages(struct host *host)
{
	for (;;) {
		struct wire_message message;
		struct fail why = FAIL_INIT;
		int got = wire_next(&host->reader, &message, &why);
		if (got < 0)
			on_fault(host, &why);
		if (got <= 0)
			return;
		hear(host, &message);
		wire_message_release(&message);
	}
}

/* Reads one step. Returns whether there may be more. */
static bool read_socket(struct host *host)
{
	struct buf *bytes = &host->reader.bytes;
	if (!host->socket_entry || wire_reader_reserve(&host->reader, READ_STEP) < 0)
		return false;
	ssize_t got = read(host->child.socket_fd, bytes->data + bytes->len, READ_STEP);
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0) {
		if (got == 0 || errno != EAGAIN)
			stop_socket(host);
		return false;
	}
	bytes->len += (size_t)got;
	host->unacked += (size_t)got;
	handle_messages(host);
	return true;
}

static void on_socket_event(void *arg, uint32_t events)
{
	struct host *host = arg;
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		read_socket(host);
	if (!host->socket_entry)
		return;
	acknowledge(host);
	if (events & EPOLLOUT)
		send_queued(host);
}

/* ---- the warden */

static void read_control(struct host *host)
{
	struct warden_report report;
	while (recv(host->child.control_fd, &report, sizeof(report), MSG_DONTWAIT) ==
		(ssize_t)sizeof(report)) {
		if (report.type == WARDEN_ENDED) {
			host->ended = true;
			host->wait_status = report.status;
			host->limit = (enum warden_limit)report.limit;
		} else if (report.type == WARDEN_SWEPT) {
			host->swept = true;
		}
	}
}

static void on_exit_event(void *arg, pid_t pid, int status);

static void on_control_event(void *arg, uint32_t events)
{
	struct host *host = arg;
	read_control(host);
	if (!(events & (EPOLLHUP | EPOLLERR))) {
		check_settled(host);
		return;
	}
	/* The warden's exit follows, and is what counts, where it is a child of this process. */
	loop_remove_fd(&host->control_entry);
	if (host->watch)
		check_settled(host);
	else
		on_exit_event(host, host->child.warden_pid, LOOP_EXIT_UNKNOWN);
}

/* The warden ends last, after the host and all that it started. */
static void on_exit_event(void *arg, pid_t pid, int status)
{
	struct host *host = arg;
	(void)pid;
	(void)status;
	host->watch = NULL;
	read_control(host);
	loop_remove_fd(&host->control_entry);
	/* Its last words are still in the socket and in the pipe. */
	for (size_t left = LAST_WORDS_MAX / READ_STEP; left > 0 && read_socket(host);)
		left--;
	printed_end(&host->printed);
	printed_stop(&host->printed);
	stop_socket(host);
	loop_cancel_timer(&host->kill_timer);
	post(host, HOST_ON_EXIT);
	/* Kept until it is freed: by then what became of its call is on record. */
	host->events->on_gone(host->arg);
}

static int watch(struct host *host, size_t output_max, struct fail *why)
{
	host->socket_entry =
		loop_add_fd(host->loop, host->child.socket_fd, EPOLLIN, on_socket_event, host, why);
	host->control_entry = loop_add_fd(
		host->loop, host->child.control_fd, EPOLLIN, on_control_event, host, why);
	printed_watch(&host->printed, host->loop, host->child.output_fd, output_max, on_printed,
		host, why);
	return why->code;
}

/* ---- kept for the next process */

static void unkeep(struct host *host)
{
	if (host->kept)
		host->keeper->drop(host->keeper->arg, host->slot);
	host->kept = NULL;
}

/* Where there is no place left, it dies with this process. */
static void keep(struct host *host, const struct spawn_request *spawn)
{
	const struct keeper *keeper = host->keeper;
	bool used = true;
	struct kept_host *kept = NULL;
	for (host->slot = 0; keeper && used && host->slot < keeper->count; host->slot++)
		kept = keeper->get(keeper->arg, host->slot, &used);
	if (used || !kept)
		return;
	host->slot--;
	const int fds[KEEPER_FDS] = { host->child.socket_fd, host->child.output_fd,
		host->child.control_fd };
	*kept = (struct kept_host){ .pid = host->child.pid,
		.warden_pid = host->child.warden_pid,
		.who = *spawn->who,
		.state = HOST_BOOTING };
	int result = keeper->keep(keeper->arg, host->slot, fds);
	if (result < 0)
		log_msg(LOG_LEVEL_WARNING, "a tool host will not outlive the server: %s",
			strerror(-result));
	else
		host->kept = kept;
}

static struct host *make(const struct host_setup *setup, uint64_t seen)
{
	struct host *host = xcalloc(1, sizeof(*host));
	host->loop = setup->loop;
	host->events = setup->events;
	host->arg = setup->arg;
	host->grace_ms = setup->grace_ms;
	host->keeper = setup->keeper;
	host->memory_max = setup->spawn.memory_max;
	host->processes_max = setup->spawn.processes_max;
	host->child = (struct spawn_child)SPAWN_CHILD_INIT;
	buf_init(&host->sending, SEND_MAX);
	char key[WIRE_KEY_LEN + 1];
	wire_make_key(key);
	wire_reader_init(&host->reader, key, seen, setup->message_max + WIRE_ENVELOPE_MAX);
	host->acked = seen;
	wire_put_attach(&host->sending, key, seen, setup->settings);
	return host;
}

struct host *host_start(const struct host_setup *setup, struct fail *why)
{
	struct host *host = make(setup, 0);
	if (spawn_child(&setup->spawn, &host->child, why) < 0 ||
		watch(host, setup->output_max, why) < 0) {
		host_free(host);
		return NULL;
	}
	host->watch =
		loop_watch_child(host->loop, host->child.warden_pid, on_exit_event, host, why);
	if (!host->watch) {
		host_free(host);
		return NULL;
	}
	keep(host, &setup->spawn);
	send_queued(host);
	return host;
}

/* Where it was: what cannot be gone on with is ended. */
static void resume(struct host *host)
{
	const struct kept_host *kept = host->kept;
	host->state = (enum host_state)kept->state;
	host->booted = kept->booted;
	host->rested = kept->rested;
	if (host->state == HOST_BUSY) {
		printed_resume(&host->printed, (size_t)kept->output_left);
		order(host, WARDEN_WATCH, 0);
	}
	send_queued(host);
	if (host->state != HOST_SETTLING)
		return;
	/* Once more, for the answer to the first time may have been read already. */
	order(host, WARDEN_SWEEP, 0);
	loop_arm_timer(host->loop, &host->kill_timer, SETTLE_MS, on_kill_timer, host);
}

struct host *host_adopt(const struct host_setup *setup, size_t slot, struct fail *why)
{
	const struct keeper *keeper = setup->keeper;
	int fds[KEEPER_FDS];
	bool used;
	struct kept_host *kept = keeper->get(keeper->arg, slot, &used);
	int result = keeper->take(keeper->arg, slot, fds);
	if (result < 0) {
		fail_set(why, result, "its descriptors are gone");
		keeper->drop(keeper->arg, slot);
		return NULL;
	}
	struct host *host = make(setup, kept->seen);
	host->slot = slot;
	host->kept = kept;
	host->child = (struct spawn_child){ .pid = kept->pid,
		.warden_pid = kept->warden_pid,
		.socket_fd = fds[0],
		.output_fd = fds[1],
		.control_fd = fds[2] };
	bool is_over = kept->state >= HOST_ENDING || (kept->tag && !kept->delivered);
	if (is_over)
		fail_set(why, -ECANCELED, "it was being ended");
	if (is_over || watch(host, setup->output_max, why) < 0) {
		host_free(host);
		return NULL;
	}
	resume(host);
	return host;
}

struct kept_host *host_kept(const struct host *host)
{
	return host->kept;
}

void host_free(struct host *host)
{
	if (!host)
		return;
	loop_unwatch_child(&host->watch);
	loop_remove_fd(&host->control_entry);
	/* At which the warden ends everything, whoever else has a copy of it. */
	if (host->child.control_fd >= 0)
		shutdown(host->child.control_fd, SHUT_RDWR);
	auto_close_fd(&host->child.control_fd);
	unkeep(host);
	/* It looks for processes and kills them: some milliseconds. Not one's own is not awaited. */
	while (host->child.warden_pid > 0 && host->state != HOST_GONE &&
		waitpid(host->child.warden_pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	loop_remove_fd(&host->socket_entry);
	printed_stop(&host->printed);
	loop_cancel_timer(&host->kill_timer);
	loop_cancel_timer(&host->ack_timer);
	wire_reader_release(&host->reader);
	buf_release(&host->sending);
	auto_close_fd(&host->child.socket_fd);
	auto_close_fd(&host->child.output_fd);
	free(host);
}

enum host_state host_get_state(const struct host *host)
{
	return host->state;
}

bool host_has_ended(const struct host *host)
{
	return host->ended;
}

pid_t host_get_pid(const struct host *host)
{
	return host->child.pid;
}

bool host_has_booted(const struct host *host)
{
	return host->booted;
}

int host_give(struct host *host, const struct wire_call *call)
{
	printed_begin(&host->printed, !host->booted);
	post(host, HOST_ON_GIVE);
	if (host->kept) {
		host->kept->output_left = host->printed.left;
		host->kept->delivered = 0;
	}
	order(host, WARDEN_WATCH, 0);
	put_ack(host);
	int result = wire_put_call(&host->sending, call);
	if (result == 0)
		send_queued(host);
	return result;
}

void host_prepare(struct host *host, const char *dir, const char *entry)
{
	if (wire_put_prepare(&host->sending, dir, entry) == 0)
		send_queued(host);
}

void host_abort(struct host *host, const char *id, const char *reason)
{
	if (wire_put_abort(&host->sending, id, reason) == 0)
		send_queued(host);
}

void host_signal(struct host *host, int signal)
{
	if (host->state != HOST_GONE)
		order(host, WARDEN_SIGNAL, signal);
}

void host_dismiss(struct host *host)
{
	if (host->state == HOST_ENDING || host->state == HOST_GONE)
		return;
	post(host, HOST_ON_DISMISS);
	if (wire_put_exit(&host->sending) == 0)
		send_queued(host);
	loop_arm_timer(host->loop, &host->kill_timer, host->grace_ms, on_kill_timer, host);
}

/* ---- how it ended */

/* V8 says so when its heap is full, and aborts. */
static bool ran_out_of_memory(const struct host *host)
{
	return host->limit == WARDEN_OVER_MEMORY ||
	       (host->ended && WIFSIGNALED(host->wait_status) &&
		       printed_says(&host->printed, "out of memory"));
}

static void describe_memory(const struct host *host, struct buf *out)
{
	buf_printf(out,
		"The tool ran out of memory: it and what it starts may use %llu MiB. Ask for less "
		"in one call",
		(unsigned long long)(host->memory_max >> 20));
}

void host_describe_end(const struct host *host, struct buf *out)
{
	int status = host->wait_status;
	if (ran_out_of_memory(host)) {
		describe_memory(host, out);
		return;
	}
	if (host->limit == WARDEN_OVER_PROCESSES)
		buf_printf(out, "The tool was stopped: it had started more than %llu processes",
			(unsigned long long)host->processes_max);
	else if (host->fault.code < 0)
		buf_printf(out, "The tool's process was stopped: %s", host->fault.text);
	else if (!host->ended)
		buf_puts(out, "The tool's process was lost: its warden was killed");
	else if (WIFSIGNALED(status))
		buf_printf(out,
			"The tool's process was ended by signal %d (%s) before it answered%s",
			WTERMSIG(status), strsignal(WTERMSIG(status)),
			WTERMSIG(status) == SIGKILL
				? "; the system does that when it is out of memory"
				: "");
	else
		buf_printf(out, "The tool's process ended with exit status %d before it answered",
			WEXITSTATUS(status));
	printed_describe(&host->printed, out);
}
