/* Drivers that call: through a `call` file, and through a pipe to a process that answers lines. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/bench/probe.h"

#define ANSWER_MAX ((size_t)40 << 20)
#define THREADS_MAX 1024

struct calling {
	const char *path, *result, *request;
	int in, out; /* of a pipe; of a call file the same descriptor */
	char *answer;
};

static char *new_answer(size_t size)
{
	char *answer = malloc(size);
	if (!answer)
		probe_die("memory for", "an answer");
	return answer;
}

static int open_call(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		probe_die("opening", path);
	return fd;
}

static void send_all(int fd, const char *text, const char *path)
{
	size_t len = strlen(text);
	while (len > 0) {
		ssize_t done = write(fd, text, len);
		if (done <= 0)
			probe_die("writing", path);
		text += done;
		len -= (size_t)done;
	}
}

/* Up to the end of a line: both a result and a pipe's answer are one. */
static void take_line(int fd, char *answer, size_t size, const char *path)
{
	size_t len = 0;
	do {
		ssize_t got = read(fd, answer + len, size - len);
		if (got <= 0)
			probe_die("reading the answer of", path);
		len += (size_t)got;
	} while (answer[len - 1] != '\n' && len < size);
}

static void must_succeed(const char *answer, const char *path)
{
	if (strncmp(answer, "{\"isError\":true", 15) == 0 || strstr(answer, "\"isError\":true}")) {
		fprintf(stderr, "probe: %s answered %.400s\n", path, answer);
		exit(1);
	}
}

/* ---- one call after the other */

static void exchange_step(void *arg)
{
	struct calling *calling = arg;
	send_all(calling->out, calling->request, calling->path);
	take_line(calling->in, calling->answer, ANSWER_MAX, calling->path);
}

int probe_call(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	int fd = open_call(argv[0], O_RDWR);
	struct calling calling = { .path = argv[0],
		.request = argv[1],
		.in = fd,
		.out = fd,
		.answer = new_answer(ANSWER_MAX) };
	exchange_step(&calling);
	must_succeed(calling.answer, argv[0]);
	return probe_drive(exchange_step, &calling);
}

static void open_call_step(void *arg)
{
	struct calling *calling = arg;
	calling->in = calling->out = open_call(calling->path, O_RDWR);
	exchange_step(calling);
	close(calling->in);
}

int probe_open_call(int argc, char **argv)
{
	struct calling calling = { .answer = new_answer(ANSWER_MAX) };
	if (argc != 2)
		return 2;
	calling.path = argv[0];
	calling.request = argv[1];
	return probe_drive(open_call_step, &calling);
}

static void write_call_step(void *arg)
{
	struct calling *calling = arg;
	int fd = open_call(calling->path, O_WRONLY);
	send_all(fd, calling->request, calling->path);
	close(fd);
	fd = open_call(calling->result, O_RDONLY);
	take_line(fd, calling->answer, ANSWER_MAX, calling->result);
	close(fd);
}

int probe_write_call(int argc, char **argv)
{
	struct calling calling = { .answer = new_answer(ANSWER_MAX) };
	if (argc != 3)
		return 2;
	calling.path = argv[0];
	calling.result = argv[1];
	calling.request = argv[2];
	return probe_drive(write_call_step, &calling);
}

static void start_child(struct calling *calling, char **argv)
{
	int to[2], from[2];
	if (pipe(to) < 0 || pipe(from) < 0)
		probe_die("a pipe for", argv[0]);
	pid_t pid = fork();
	if (pid < 0)
		probe_die("starting", argv[0]);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		close(to[0]);
		close(to[1]);
		close(from[0]);
		close(from[1]);
		execvp(argv[0], argv);
		probe_die("starting", argv[0]);
	}
	close(to[0]);
	close(from[1]);
	calling->out = to[1];
	calling->in = from[0];
}

int probe_pipe(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	struct calling calling = { .path = argv[1], .answer = new_answer(ANSWER_MAX) };
	size_t len = strlen(argv[0]);
	char *line = new_answer(len + 2);
	memcpy(line, argv[0], len);
	memcpy(line + len, "\n", 2);
	calling.request = line;
	start_child(&calling, argv + 1);
	int status = probe_drive(exchange_step, &calling);
	free(line);
	return status;
}

/* ---- many callers at once */

struct callers {
	pthread_mutex_t lock;
	const char *path, *request;
	long count, left;
	int64_t *taken;
};

static long next_call(struct callers *callers)
{
	pthread_mutex_lock(&callers->lock);
	long number = callers->left > 0 ? --callers->left : -1;
	pthread_mutex_unlock(&callers->lock);
	return number;
}

static void *call_until_done(void *arg)
{
	struct callers *callers = arg;
	char answer[4096];
	int fd = open_call(callers->path, O_RDWR);
	long number;
	while ((number = next_call(callers)) >= 0) {
		int64_t start = probe_now_ns();
		send_all(fd, callers->request, callers->path);
		take_line(fd, answer, sizeof(answer), callers->path);
		callers->taken[number] = probe_now_ns() - start;
	}
	close(fd);
	return NULL;
}

static void run_callers(struct callers *callers, int threads)
{
	pthread_t ids[THREADS_MAX];
	int64_t start = probe_now_ns();
	for (int i = 0; i < threads; i++) {
		errno = pthread_create(&ids[i], NULL, call_until_done, callers);
		if (errno)
			probe_die("starting", "a thread");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%lld", (long long)(probe_now_ns() - start));
	for (long i = 0; i < callers->count; i++)
		printf(" %lld", (long long)callers->taken[i]);
	putchar('\n');
	fflush(stdout);
}

/* The answer to `N`: how long all took, and then each of them. */
int probe_many(int argc, char **argv)
{
	int threads = argc == 3 ? atoi(argv[0]) : 0;
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	struct callers callers = { .path = argv[1], .request = argv[2] };
	char line[32];
	pthread_mutex_init(&callers.lock, NULL);
	while (fgets(line, sizeof(line), stdin)) {
		callers.count = callers.left = strtol(line, NULL, 10);
		callers.taken = calloc((size_t)callers.count, sizeof(*callers.taken));
		if (!callers.taken)
			probe_die("memory for", line);
		run_callers(&callers, threads);
		free(callers.taken);
	}
	return 0;
}

/* ---- calls that wait */

int probe_hold(int argc, char **argv)
{
	long count = argc == 3 ? strtol(argv[0], NULL, 10) : 0;
	const struct rlimit files = { (rlim_t)count + 64, (rlim_t)count + 64 };
	if (count < 1)
		return 2;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		probe_die("more open files for", argv[0]);
	for (long i = 0; i < count; i++) {
		int64_t start = probe_now_ns();
		send_all(open_call(argv[1], O_RDWR), argv[2], argv[1]);
		printf("%s%lld", i ? " " : "", (long long)(probe_now_ns() - start));
	}
	putchar('\n');
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	return 0;
}
