/*
 * The warden of one tool host: its parent, and the parent of everything it starts.
 *
 *     warden PID MEMORY PROCESSES WRAPPERS      descriptor 3 is the control socket
 *
 * Whatever a tool's process forks, in a session of its own or not, becomes the warden's child when
 * its parent ends (PR_SET_CHILD_SUBREAPER, set before this program was executed): so nothing that a
 * call started can hide from the end of the call. As a process of its own, the warden outlives a
 * tool that crashes, runs as pegfs does and not as the tool does (where pegfs is root, the tool can
 * neither signal nor trace it), and needs no particular parent: who holds the other end of the
 * control socket is in charge, and when nobody does, everything ends.
 *
 * The control socket carries records (SOCK_SEQPACKET), core/running/warden.h defines them.
 */
#include "core/running/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS_MAX 200 /* of looking for processes to kill; each finds those forked meanwhile */
#define ROUND_PAUSE_NS 1000000
#define WATCH_MS 200
#define WRAPPERS_MAX 2

struct pids {
	pid_t *items; /* owned */
	size_t count, capacity;
};

struct warden {
	struct pids below; /* what list_all has found last */
	pid_t host;
	bool host_ended;
	int host_status;
	int signal_fd;
	unsigned long memory_kib, processes; /* limits; 0: none */
	unsigned wrappers;                   /* around the host proper; the first one is `host` */
	bool is_watching;
	enum warden_limit limit; /* for which everything was ended */
};

static void add(struct pids *pids, pid_t pid)
{
	if (pids->count == pids->capacity) {
		size_t capacity = pids->capacity ? pids->capacity * 2 : 64;
		pid_t *items = realloc(pids->items, capacity * sizeof(*items));
		if (!items)
			abort();
		pids->items = items;
		pids->capacity = capacity;
	}
	pids->items[pids->count++] = pid;
}

/* Reads a small file, or as much of it as fits, as text. Whether there was anything. */
static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t got = 1;
	while (fd >= 0 && got > 0 && len < size - 1) {
		got = read(fd, text + len, size - 1 - len);
		len += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	text[len] = '\0';
	return len > 0;
}

/* The number at *at, and behind it; -1 where there is none. */
static long take_number(const char **at)
{
	char *end;
	errno = 0;
	long number = strtol(*at, &end, 10);
	if (end == *at || errno != 0 || number < 0)
		return -1;
	*at = end;
	return number;
}

/* ---- who is below a process */

/* What does not fit is found in a later round. A number counts only when its blank has come too. */
static void add_children_of_thread(struct pids *pids, const char *path)
{
	static char text[64 * 1024];
	const char *at = text;
	long pid;
	if (read_file(path, text, sizeof(text)))
		while ((pid = take_number(&at)) > 0 && *at == ' ')
			add(pids, (pid_t)pid);
}

/* Children belong to the thread that forked them. */
static void add_children(struct pids *pids, pid_t parent)
{
	char path[64 + NAME_MAX];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	DIR *tasks = opendir(path);
	if (!tasks)
		return;
	const struct dirent *task;
	while ((task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		snprintf(
			path, sizeof(path), "/proc/%d/task/%s/children", (int)parent, task->d_name);
		add_children_of_thread(pids, path);
	}
	closedir(tasks);
}

/* The state of a process ('Z': it has ended), its parent and its start; 0 where there is none. */
static char read_stat(pid_t pid, long *parent, unsigned long long *start)
{
	char path[64], text[512];
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_file(path, text, sizeof(text)))
		return 0;
	const char *end = strrchr(text, ')'); /* the name before it may hold anything */
	if (!end || strlen(end) < 5)
		return 0;
	const char *at = end + 3;
	*parent = take_number(&at);
	for (int field = 5; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	*start = at ? strtoull(at, NULL, 10) : 0;
	return end[2];
}

/* Without CONFIG_PROC_CHILDREN: every process is asked for its parent. */
static void add_children_by_scan(struct pids *pids, pid_t parent)
{
	DIR *proc = opendir("/proc");
	if (!proc)
		return;
	const struct dirent *entry;
	while ((entry = readdir(proc))) {
		const char *at = entry->d_name;
		long its_parent, pid = take_number(&at);
		unsigned long long start;
		if (pid > 0 && read_stat((pid_t)pid, &its_parent, &start) && its_parent == parent)
			add(pids, (pid_t)pid);
	}
	closedir(proc);
}

static bool has_children_files(void)
{
	return access("/proc/thread-self/children", R_OK) == 0;
}

/* All below the warden, the host included; parents before their children. */
static const struct pids *list_all(struct warden *warden)
{
	struct pids *pids = &warden->below;
	bool quick = has_children_files();
	pids->count = 0;
	pid_t parent = getpid();
	for (size_t at = 0;; parent = pids->items[at++]) {
		if (quick)
			add_children(pids, parent);
		else
			add_children_by_scan(pids, parent);
		if (at == pids->count)
			return pids;
	}
}

/* ---- signals and ends */

/* Returns whether there are children left. */
static bool reap(struct warden *warden)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == warden->host) {
			warden->host_ended = true;
			warden->host_status = status;
		}
	}
	return pid == 0;
}

static void signal_all(struct warden *warden, int signal)
{
	const struct pids *pids = list_all(warden);
	for (size_t i = 0; i < pids->count; i++)
		kill(pids->items[i], signal);
}

static void pause_round(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = ROUND_PAUSE_NS }, NULL);
}

/* The oldest child of a process among those below; 0: none. What it adopts is younger. */
static pid_t oldest_child(const struct pids *pids, pid_t parent)
{
	pid_t oldest = 0;
	unsigned long long oldest_start = 0;
	for (size_t i = 0; i < pids->count; i++) {
		long its_parent = 0;
		unsigned long long start = 0;
		if (read_stat(pids->items[i], &its_parent, &start) && its_parent == (long)parent &&
			(oldest == 0 || start < oldest_start)) {
			oldest = pids->items[i];
			oldest_start = start;
		}
	}
	return oldest;
}

/* The host and what it is wrapped around, outermost first; 0 where there is none. */
static void find_hosts(const struct warden *warden, pid_t hosts[1 + WRAPPERS_MAX])
{
	hosts[0] = warden->host;
	for (unsigned i = 0; i < WRAPPERS_MAX; i++)
		hosts[i + 1] = i < warden->wrappers && hosts[i] > 0
				       ? oldest_child(&warden->below, hosts[i])
				       : 0;
}

static bool is_host(const pid_t hosts[1 + WRAPPERS_MAX], pid_t pid)
{
	for (unsigned i = 0; i <= WRAPPERS_MAX; i++)
		if (hosts[i] == pid)
			return true;
	return false;
}

/*
 * Kills all but the host, or all. Returns how many. Rounds, for what is forked while this looks; a
 * process that the kernel holds (a dead file server) may stay: nobody waits for it here.
 */
static unsigned kill_all(struct warden *warden, bool host_too)
{
	unsigned killed = 0;
	for (int round = 0; round < ROUNDS_MAX; round++) {
		const struct pids *pids = list_all(warden);
		pid_t hosts[1 + WRAPPERS_MAX] = { 0 };
		if (!host_too)
			find_hosts(warden, hosts);
		unsigned left = 0;
		for (size_t i = 0; i < pids->count; i++) {
			long parent = 0;
			unsigned long long start;
			char state = read_stat(pids->items[i], &parent, &start);
			/* What has ended waits for its parent to look at it, and is no harm. */
			if (state == 0 || state == 'Z' || is_host(hosts, pids->items[i]))
				continue;
			kill(pids->items[i], SIGKILL);
			left++;
		}
		if (left == 0)
			break;
		if (round == 0)
			killed = left;
		pause_round();
		reap(warden);
	}
	return killed;
}

static _Noreturn void end(struct warden *warden)
{
	unsigned killed = kill_all(warden, true);
	/* Whoever would inherit them may not look after them (a container's first process). */
	for (int round = 0; reap(warden) && round < ROUNDS_MAX; round++)
		pause_round();
	struct warden_report report = { .type = WARDEN_ENDED,
		.limit = (int)warden->limit,
		.status = warden->host_status,
		.count = killed };
	send(WARDEN_FD, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
	exit(0);
}

/* ---- limits */

/* Resident memory that is its own: what is shared with others would be counted many times. */
static unsigned long memory_of(pid_t pid)
{
	char path[64], text[128];
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	const char *at = text;
	if (!read_file(path, text, sizeof(text)) || take_number(&at) < 0)
		return 0;
	long resident = take_number(&at), shared = take_number(&at);
	if (shared < 0 || resident < shared)
		return 0;
	return (unsigned long)(resident - shared) * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static void check_limits(struct warden *warden)
{
	const struct pids *pids = list_all(warden);
	unsigned long kib = 0;
	for (size_t i = 0; i < pids->count && warden->memory_kib > 0; i++)
		kib += memory_of(pids->items[i]);
	if (warden->processes > 0 && pids->count > warden->processes)
		warden->limit = WARDEN_OVER_PROCESSES;
	else if (kib > warden->memory_kib)
		warden->limit = WARDEN_OVER_MEMORY;
	if (warden->limit != WARDEN_WITHIN)
		end(warden);
}

static void obey(struct warden *warden)
{
	struct warden_order order;
	ssize_t got = recv(WARDEN_FD, &order, sizeof(order), MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != (ssize_t)sizeof(order))
		end(warden); /* nobody is in charge any more */
	if (order.type == WARDEN_SIGNAL && order.signal != SIGKILL) {
		signal_all(warden, order.signal);
	} else if (order.type == WARDEN_SIGNAL) {
		kill_all(warden, true);
	} else if (order.type == WARDEN_WATCH) {
		warden->is_watching = warden->memory_kib > 0 || warden->processes > 0;
	} else if (order.type == WARDEN_SWEEP) {
		warden->is_watching = false;
		struct warden_report report = { .type = WARDEN_SWEPT,
			.count = kill_all(warden, false) };
		send(WARDEN_FD, &report, sizeof(report), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

int main(int argc, char **argv)
{
	long numbers[4] = { -1, -1, -1, 0 };
	/* The last one is missing where a daemon from before an update starts this program. */
	for (int i = 1; i < argc && (argc == 4 || argc == 5); i++) {
		const char *at = argv[i];
		numbers[i - 1] = take_number(&at);
	}
	if (numbers[0] <= 0 || numbers[1] < 0 || numbers[2] < 0 || numbers[3] < 0 ||
		numbers[3] > WRAPPERS_MAX) {
		fprintf(stderr, "warden: started by pegfs only\n");
		return 2;
	}
	struct warden warden = { .host = (pid_t)numbers[0],
		.memory_kib = (unsigned long)numbers[1],
		.processes = (unsigned long)numbers[2],
		.wrappers = (unsigned)numbers[3] };
	sigset_t signals;
	sigfillset(&signals);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	warden.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (warden.signal_fd < 0)
		return 1;
	for (;;) {
		reap(&warden);
		if (warden.host_ended)
			end(&warden);
		struct pollfd fds[] = { { .fd = WARDEN_FD, .events = POLLIN },
			{ .fd = warden.signal_fd, .events = POLLIN } };
		int ready = poll(fds, 2, warden.is_watching ? WATCH_MS : -1);
		if (ready < 0 && errno != EINTR)
			end(&warden);
		if (ready == 0)
			check_limits(&warden);
		struct signalfd_siginfo info;
		while (read(warden.signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			continue;
		if (fds[0].revents)
			obey(&warden);
	}
}
