#include "tests/bench/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_MAX 1000000

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
} commands[] = {
	{ "stat", probe_stat, "PATH: driver" },
	{ "cat", probe_cat, "PATH: driver; open, read to the end, close" },
	{ "list", probe_list, "DIR: driver; its entries, and stat of each" },
	{ "walk", probe_walk, "DIR: lists each directory in it, reads its TOOL.md; nanoseconds" },
	{ "noticed", probe_noticed, "DIR: driver; from a rename in it to inotify's event" },
	{ "call", probe_call, "PATH REQUEST: driver; write and read on one descriptor" },
	{ "open-call", probe_open_call, "PATH REQUEST: driver; opened and closed each time" },
	{ "write-call", probe_write_call, "CALL RESULT REQUEST: driver; write-only, then RESULT" },
	{ "pipe", probe_pipe, "REQUEST COMMAND...: driver; a line there, a line back" },
	{ "many", probe_many,
		"THREADS PATH REQUEST: driver; N calls by all together, and how long" },
	{ "hold", probe_hold, "COUNT PATH REQUEST: starts them, waits for its input to end" },
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

int64_t probe_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void probe_die(const char *what, const char *on)
{
	fprintf(stderr, "probe: %s %s: %s\n", what, on, strerror(errno));
	exit(1);
}

int probe_drive(probe_step *step, void *arg)
{
	char line[32];
	while (fgets(line, sizeof(line), stdin)) {
		long count = strtol(line, NULL, 10);
		if (count < 1 || count > COUNT_MAX)
			return 2;
		int64_t *taken = calloc((size_t)count, sizeof(*taken));
		if (!taken)
			probe_die("memory for", line);
		for (long i = 0; i < count; i++) {
			int64_t start = probe_now_ns();
			step(arg);
			taken[i] = probe_now_ns() - start;
		}
		for (long i = 0; i < count; i++)
			printf("%s%lld", i ? " " : "", (long long)taken[i]);
		putchar('\n');
		fflush(stdout);
		free(taken);
	}
	return 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < COMMANDS; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 2, argv + 2);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(stderr, "probe %s %s\n", commands[i].name, commands[i].usage);
	return 2;
}
