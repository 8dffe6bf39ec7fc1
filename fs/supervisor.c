#include "fs/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/fdtake.h"
#include "core/base/log.h"

#define TICK_MS 250
#define QUICK_MS 1000 /* a server that lived shorter has died at once */
#define QUICK_FREE 5  /* this many may, one after the other, before there are pauses */
#define QUICK_MAX 20  /* and this many before all is given up */
#define PAUSE_MAX_MS 1000
#define END_LIMIT_MS 8000 /* for a server to release everything */
#define REAP_LIMIT_MS 3000
#define ORPHAN_LIMIT_MS 5000

struct server_process {
	pid_t pid; /* 0: none */
	int control_fd;
	uint64_t born_ms;
	bool prepared, ready, told_to_go;
};

struct supervisor {
	const struct supervisor_setup *setup;
	struct state *state;
	int signal_fd;
	int exe_fd;                          /* the program that served last */
	int next_fd;                         /* a newer one that is being tried; -1: none */
	struct server_process current, next; /* next: of a reload, until the current one is gone */
	int hosts[STATE_HOSTS][SUPERVISOR_HOST_FDS];     /* -1: not held */
	bool stored[STATE_HOSTS], unstored[STATE_HOSTS]; /* the store has them; is to be told */
	bool has_unstored;
	unsigned quick;      /* servers in a row that died at once */
	uint64_t restart_ms; /* when the next one is due; 0: none is */
	bool was_ready, ending, is_disconnected;
	struct supervisor_news news;
	int status;
};

/* ---- starting a server: between fork and exec, async-signal-safe calls only */

/* Puts descriptors at their places; they are moved aside first, for each may lie where another goes. */
static int set_descriptors(const struct supervisor *supervisor, int control_fd)
{
	const struct supervisor_setup *setup = supervisor->setup;
	int fds[] = { setup->fuse_fd, setup->state_fd, setup->options_fd, setup->covered_fd,
		setup->put_by_fd, control_fd };
	_Static_assert(sizeof(fds) / sizeof(*fds) == SUPERVISOR_FDS_END - SUPERVISOR_FUSE_FD,
		"one for each place");
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, SUPERVISOR_FDS_END);
		if (fds[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (dup3(fds[i], SUPERVISOR_FUSE_FD + (int)i, 0) < 0)
			return -1;
	return 0;
}

/* The last to go when memory is short; a server is like any other process. Only root may ask for it. */
static void set_oom_score(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, score, strlen(score)) < 0)
		errno = 0;
	if (fd >= 0)
		close(fd);
}

static _Noreturn void run_server(const struct supervisor *supervisor, int exe_fd, int control_fd)
{
	sigset_t none;
	sigemptyset(&none);
	set_oom_score("0");
	/* Beyond the places of all others, so that it is not overwritten. */
	int program = fcntl(exe_fd, F_DUPFD_CLOEXEC, SUPERVISOR_FDS_END);
	if (program >= 0 && set_descriptors(supervisor, control_fd) == 0 &&
		sigprocmask(SIG_SETMASK, &none, NULL) == 0)
		syscall(SYS_execveat, program, "", supervisor->setup->argv, environ, AT_EMPTY_PATH);
	_exit(127);
}

static bool start_server(struct supervisor *supervisor, struct server_process *server, int exe_fd)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		log_errno(LOG_LEVEL_ERROR, "cannot make a socket for a server");
		return false;
	}
	pid_t pid = fork();
	if (pid == 0)
		run_server(supervisor, exe_fd, pair[1]);
	if (pid < 0)
		log_errno(LOG_LEVEL_ERROR, "cannot fork a server");
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return false;
	}
	*server = (struct server_process){
		.pid = pid, .control_fd = pair[0], .born_ms = state_now_ms()
	};
	return true;
}

/* ---- descriptors of hosts */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(take_fd(fd));
}

static void close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* Where the manager is slow to listen it is told later. */
static void store_host(struct supervisor *supervisor, uint32_t slot)
{
	const int *fds = supervisor->hosts[slot];
	bool had = supervisor->stored[slot];
	supervisor->unstored[slot] =
		(had || fds[0] >= 0) &&
		store_set_host(supervisor->setup->store, slot, fds, had) == -EAGAIN;
	supervisor->stored[slot] = fds[0] >= 0 || supervisor->unstored[slot];
	supervisor->has_unstored = supervisor->has_unstored || supervisor->unstored[slot];
}

static void store_what_is_left(struct supervisor *supervisor)
{
	if (!supervisor->has_unstored)
		return;
	supervisor->has_unstored = false;
	for (uint32_t slot = 0; slot < STATE_HOSTS; slot++)
		if (supervisor->unstored[slot])
			store_host(supervisor, slot);
}

static void close_host(struct supervisor *supervisor, uint32_t slot)
{
	/* The manager may be slow to close its copy, and the warden waits for the last one. */
	if (supervisor->hosts[slot][SUPERVISOR_HOST_CONTROL] >= 0)
		shutdown(supervisor->hosts[slot][SUPERVISOR_HOST_CONTROL], SHUT_RDWR);
	for (size_t i = 0; i < SUPERVISOR_HOST_FDS; i++)
		close_fd(&supervisor->hosts[slot][i]);
}

static void drop_host(struct supervisor *supervisor, uint32_t slot)
{
	close_host(supervisor, slot);
	store_host(supervisor, slot);
}

/* What no server will ask for: of a host that was not noted, or with which servers crash. */
static void drop_lost_hosts(struct supervisor *supervisor)
{
	for (uint32_t slot = 0; slot < STATE_HOSTS; slot++) {
		const struct state_host *host = &supervisor->state->hosts[slot];
		if (supervisor->hosts[slot][0] >= 0 &&
			(!host->used || host->crashes >= STATE_QUARANTINE_AFTER))
			drop_host(supervisor, slot);
	}
}

union fd_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int) * SUPERVISOR_HOST_FDS)];
};

static void send_word(const struct server_process *server, enum supervisor_word word)
{
	const struct supervisor_message message = { .word = (uint32_t)word };
	/* Where it has died meanwhile, that will be noticed. */
	if (server->pid > 0)
		send(server->control_fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_host(
	const struct supervisor *supervisor, const struct server_process *server, uint32_t slot)
{
	struct supervisor_message message = { .word = SUPERVISOR_KEPT, .slot = slot };
	struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
	union fd_control control;
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	memset(&control, 0, sizeof(control));
	if (supervisor->hosts[slot][0] >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int) * SUPERVISOR_HOST_FDS) };
		memcpy(CMSG_DATA(&control.header), supervisor->hosts[slot],
			sizeof(int) * SUPERVISOR_HOST_FDS);
	}
	if (sendmsg(server->control_fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE)
		log_errno(LOG_LEVEL_ERROR, "cannot hand a tool host over");
}

static void keep_host(struct supervisor *supervisor, uint32_t slot, const int *fds, size_t count)
{
	if (slot >= STATE_HOSTS || count != SUPERVISOR_HOST_FDS) {
		close_all(fds, count);
		return;
	}
	close_host(supervisor, slot);
	memcpy(supervisor->hosts[slot], fds, sizeof(supervisor->hosts[slot]));
	store_host(supervisor, slot);
}

/* ---- what servers say */

static void tell_news(struct supervisor *supervisor)
{
	supervisor->news.generation = supervisor->state->generation;
	supervisor->setup->on_news(supervisor->setup->arg, &supervisor->news);
}

static void let_go(struct supervisor *supervisor, struct server_process *server)
{
	if (server->told_to_go || !server->prepared)
		return;
	server->told_to_go = true;
	supervisor->state->generation++;
	supervisor->state->server_pid = (int32_t)server->pid;
	send_word(server, SUPERVISOR_GO);
}

static void on_word(struct supervisor *supervisor, struct server_process *server,
	const struct supervisor_message *message, const int *fds, size_t count)
{
	switch (message->word) {
	case SUPERVISOR_PREPARED:
		server->prepared = true;
		if (server == &supervisor->current)
			let_go(supervisor, server);
		else if (supervisor->current.pid > 0)
			kill(supervisor->current.pid, SIGTERM);
		break;
	case SUPERVISOR_READY:
		server->ready = supervisor->was_ready = true;
		tell_news(supervisor);
		break;
	case SUPERVISOR_KEEP:
		keep_host(supervisor, message->slot, fds, count);
		return;
	case SUPERVISOR_DROP:
		if (message->slot < STATE_HOSTS)
			drop_host(supervisor, message->slot);
		break;
	case SUPERVISOR_TAKE:
		if (message->slot < STATE_HOSTS)
			send_host(supervisor, server, message->slot);
		break;
	default:
		break;
	}
	close_all(fds, count);
}

/* Reads what there is; a dead server's last words too. */
static void hear(struct supervisor *supervisor, struct server_process *server)
{
	while (server->pid > 0) {
		struct supervisor_message message;
		struct iovec iov = { .iov_base = &message, .iov_len = sizeof(message) };
		union fd_control control;
		struct msghdr header = { .msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(server->control_fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		int fds[SUPERVISOR_HOST_FDS];
		size_t count = fdtake(&header, fds, SUPERVISOR_HOST_FDS);
		if (got == (ssize_t)sizeof(message))
			on_word(supervisor, server, &message, fds, count);
		else
			close_all(fds, count);
	}
}

/* ---- their ends */

static void restart_after(struct supervisor *supervisor, bool was_killed, uint64_t lived_ms)
{
	uint64_t pause_ms = 0;
	if (was_killed)
		supervisor->quick = 0;
	else
		supervisor->quick = lived_ms > QUICK_MS ? 1 : supervisor->quick + 1;
	if (supervisor->quick > QUICK_MAX) {
		log_msg(LOG_LEVEL_ERROR,
			"%u servers have died at once, one after the other: the mount is given up",
			supervisor->quick);
		supervisor->ending = true;
		supervisor->status = 1;
		return;
	}
	if (supervisor->quick > QUICK_FREE)
		pause_ms = (uint64_t)10 << (supervisor->quick - QUICK_FREE);
	supervisor->state->counters.restarts++;
	supervisor->restart_ms =
		state_now_ms() + (pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
}

static void describe_end(const struct supervisor *supervisor, pid_t pid, int status)
{
	const struct state_current *current = &supervisor->state->current;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		log_msg(LOG_LEVEL_WARNING, "server %d was killed; the next one takes over",
			(int)pid);
	else
		log_msg(LOG_LEVEL_WARNING,
			"server %d has crashed (%s %d) in request %llu (opcode %u), host %u; the next "
			"one takes over",
			(int)pid, WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			(unsigned long long)current->unique, current->opcode, current->host);
}

static void forget_server(struct server_process *server)
{
	close(server->control_fd);
	*server = (struct server_process){ .pid = 0, .control_fd = -1 };
}

/* A newer program has prepared itself: it is the server from now on. */
static void promote(struct supervisor *supervisor)
{
	supervisor->current = supervisor->next;
	supervisor->next = (struct server_process){ .pid = 0, .control_fd = -1 };
	if (supervisor->next_fd >= 0) {
		close(supervisor->exe_fd);
		supervisor->exe_fd = take_fd(&supervisor->next_fd);
	}
	let_go(supervisor, &supervisor->current);
}

static void on_current_end(struct supervisor *supervisor, int status)
{
	struct server_process ended = supervisor->current;
	bool exited = WIFEXITED(status);
	hear(supervisor, &supervisor->current);
	forget_server(&supervisor->current);
	drop_lost_hosts(supervisor);
	if (supervisor->ending)
		return;
	if (exited && WEXITSTATUS(status) == SUPERVISOR_EXIT_UNMOUNTED) {
		supervisor->ending = supervisor->is_disconnected = true;
		return;
	}
	if (!supervisor->was_ready) {
		/* It has said why. */
		supervisor->ending = true;
		supervisor->status = exited && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1;
		return;
	}
	bool handed_over = exited && WEXITSTATUS(status) == SUPERVISOR_EXIT_HANDED_OVER;
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (!handed_over)
		describe_end(supervisor, ended.pid, status);
	if (!handed_over && !killed)
		state_blame(supervisor->state);
	supervisor->state->current = (struct state_current){ .unique = 0 };
	drop_lost_hosts(supervisor);
	if (supervisor->next.prepared) {
		supervisor->state->counters.reloads++;
		promote(supervisor);
		return;
	}
	restart_after(supervisor, killed || handed_over, state_now_ms() - ended.born_ms);
}

static void on_next_end(struct supervisor *supervisor)
{
	forget_server(&supervisor->next);
	close_fd(&supervisor->next_fd);
	if (supervisor->ending)
		return;
	log_msg(LOG_LEVEL_ERROR, "the new server could not take over; the old one goes on");
	supervisor->news.failed_reloads++;
	tell_news(supervisor);
}

static void reap(struct supervisor *supervisor)
{
	int status;
	pid_t pid;
	/* Wardens of hosts that a dead server has started are children too. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == supervisor->current.pid)
			on_current_end(supervisor, status);
		else if (pid == supervisor->next.pid)
			on_next_end(supervisor);
	}
}

/* ---- signals, time */

static void reload(struct supervisor *supervisor)
{
	if (supervisor->next.pid > 0 || supervisor->current.pid == 0)
		return;
	/* The program of that name now; where there is none, the one that runs. */
	supervisor->next_fd = open(supervisor->setup->argv[0], O_PATH | O_CLOEXEC);
	if (!start_server(supervisor, &supervisor->next,
		    supervisor->next_fd >= 0 ? supervisor->next_fd : supervisor->exe_fd))
		close_fd(&supervisor->next_fd);
}

static void on_signals(struct supervisor *supervisor)
{
	struct signalfd_siginfo info;
	while (read(supervisor->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue; /* reap() looks in any case */
		if (info.ssi_signo == SIGUSR1) {
			reload(supervisor);
			continue;
		}
		log_msg(LOG_LEVEL_INFO, "ended by signal %u (%s)", info.ssi_signo,
			strsignal((int)info.ssi_signo));
		supervisor->ending = true;
	}
}

static void watch_for_hang(struct supervisor *supervisor)
{
	const struct state_current *current = &supervisor->state->current;
	uint64_t since_ms = current->since_ms, now_ms = state_now_ms();
	unsigned limit_ms = supervisor->setup->watchdog_ms;
	if (limit_ms == 0 || since_ms == 0 || now_ms < since_ms + limit_ms ||
		supervisor->current.pid == 0 || (!current->unique && !current->host))
		return;
	log_msg(LOG_LEVEL_ERROR,
		"server %d has been in request %llu (opcode %u), host %u for %u ms and is killed",
		(int)supervisor->current.pid, (unsigned long long)current->unique, current->opcode,
		current->host, limit_ms);
	supervisor->state->counters.hangs++;
	state_blame(supervisor->state);
	kill(supervisor->current.pid, SIGKILL);
}

static void start_if_due(struct supervisor *supervisor)
{
	if (supervisor->restart_ms == 0 || state_now_ms() < supervisor->restart_ms)
		return;
	supervisor->restart_ms = 0;
	if (!start_server(supervisor, &supervisor->current, supervisor->exe_fd))
		supervisor->restart_ms = state_now_ms() + PAUSE_MAX_MS;
}

static int wait_ms(const struct supervisor *supervisor)
{
	uint64_t now_ms = state_now_ms();
	if (supervisor->restart_ms == 0)
		return TICK_MS;
	if (supervisor->restart_ms <= now_ms)
		return 0;
	return supervisor->restart_ms - now_ms < TICK_MS ? (int)(supervisor->restart_ms - now_ms)
							 : TICK_MS;
}

static void step(struct supervisor *supervisor)
{
	struct pollfd fds[] = { { .fd = supervisor->signal_fd, .events = POLLIN },
		{ .fd = supervisor->current.control_fd, .events = POLLIN },
		{ .fd = supervisor->next.control_fd, .events = POLLIN } };
	/* A server's end is told by a signal; its closed socket is not looked at again and again. */
	poll(fds, 3, wait_ms(supervisor));
	on_signals(supervisor);
	if (fds[1].revents & POLLIN)
		hear(supervisor, &supervisor->current);
	if (fds[2].revents & POLLIN)
		hear(supervisor, &supervisor->next);
	reap(supervisor);
	store_what_is_left(supervisor);
	if (!supervisor->ending) {
		start_if_due(supervisor);
		watch_for_hang(supervisor);
	}
}

/* ---- the end */

static void kill_server(struct server_process *server)
{
	if (server->pid <= 0)
		return;
	kill(server->pid, SIGKILL);
	while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	forget_server(server);
}

static void end_servers(struct supervisor *supervisor)
{
	uint64_t limit_ms = state_now_ms() + END_LIMIT_MS;
	kill_server(&supervisor->next);
	/* One that does not serve yet hears END instead of GO. */
	send_word(&supervisor->current, SUPERVISOR_END);
	while (supervisor->current.pid > 0 && state_now_ms() < limit_ms)
		step(supervisor);
	kill_server(&supervisor->current);
}

/* Wardens end when nobody holds their hosts any more, and are to be gone when this ends. */
static void end_hosts(struct supervisor *supervisor)
{
	for (uint32_t slot = 0; slot < STATE_HOSTS; slot++)
		drop_host(supervisor, slot);
	uint64_t limit_ms = state_now_ms() + REAP_LIMIT_MS;
	while (state_now_ms() < limit_ms) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			return;
		if (pid == 0)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
}

/*
 * Servers of an earlier supervisor are killed with it, but perhaps not gone yet: one of them may take a
 * request from the kernel that nobody would answer then. Each holds a lock until its last thread ends.
 */
static bool wait_for_orphans(const struct supervisor *supervisor)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", supervisor->setup->state_fd);
	auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
	uint64_t limit_ms = state_now_ms() + ORPHAN_LIMIT_MS;
	while (fd >= 0 && state_now_ms() < limit_ms) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	log_msg(LOG_LEVEL_ERROR, "a server of the supervisor before does not end");
	return false;
}

/* What an earlier supervisor has left with the manager. */
static bool take_over(struct supervisor *supervisor)
{
	const struct supervisor_setup *setup = supervisor->setup;
	if (!setup->is_taken_over)
		return true;
	supervisor->was_ready = true;
	setup->state->counters.supervisor_restarts++;
	for (uint32_t slot = 0; slot < STATE_HOSTS; slot++) {
		memcpy(supervisor->hosts[slot], setup->store->hosts[slot],
			sizeof(supervisor->hosts[slot]));
		memset(setup->store->hosts[slot], -1, sizeof(setup->store->hosts[slot]));
		supervisor->stored[slot] = supervisor->hosts[slot][0] >= 0;
	}
	if (!wait_for_orphans(supervisor))
		return false;
	setup->state->current = (struct state_current){ .unique = 0 };
	drop_lost_hosts(supervisor);
	return true;
}

static int take_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCHLD);
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Three descriptors for each host. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool prepare(struct supervisor *supervisor)
{
	raise_file_limit();
	set_oom_score("-1000");
	supervisor->signal_fd = take_signals();
	supervisor->exe_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	/* Wardens of hosts become children of this process when their server dies. */
	if (supervisor->signal_fd < 0 || supervisor->exe_fd < 0 ||
		prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
		log_errno(LOG_LEVEL_ERROR, "cannot supervise a server");
		return false;
	}
	return true;
}

int supervisor_run(const struct supervisor_setup *setup)
{
	static struct supervisor supervisor; /* a page or two: not on the stack */
	supervisor = (struct supervisor){ .setup = setup,
		.state = setup->state,
		.signal_fd = -1,
		.exe_fd = -1,
		.next_fd = -1,
		.current.control_fd = -1,
		.next.control_fd = -1 };
	memset(supervisor.hosts, -1, sizeof(supervisor.hosts));
	setup->state->supervisor_pid = (int32_t)getpid();
	if (!prepare(&supervisor) || !take_over(&supervisor) ||
		!start_server(&supervisor, &supervisor.current, supervisor.exe_fd)) {
		supervisor.ending = true;
		supervisor.status = 1;
	}
	while (!supervisor.ending)
		step(&supervisor);
	end_servers(&supervisor);
	/* What is left of a mount then answers at once that it is dead. */
	if (supervisor.is_disconnected)
		close(setup->fuse_fd);
	setup->on_end(setup->arg, supervisor.is_disconnected);
	if (!supervisor.is_disconnected)
		close(setup->fuse_fd);
	end_hosts(&supervisor);
	return supervisor.status;
}
