/*
 * Very many calls through one executor, in proportion: does anything grow? Not part of `make check`.
 *
 *     build/tests/stress/executor [CALLS [PARALLEL]]      100000 and 1000, unless given
 *
 * Nine of ten calls go to warm hosts; the rest throw, exit, print a lot, leave processes behind, or
 * are cancelled. Afterwards there may be no process, no descriptor and hardly any memory more than
 * after the first tenth. It prints figures and fails (exit status 1) where something has grown.
 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "tests/unit/jobs.h"

#define GROWTH_MAX_KIB 4096

static const struct {
	const char *name, *params;
	unsigned share; /* of 1000 calls */
	bool is_cancelled;
} kinds[] = {
	{ "hello", "{\"name\":\"Ann\"}", 900, false },
	{ "values", "{\"value\":\"isError\"}", 40, false },
	{ "throws", "{\"how\":\"error\"}", 36, false },
	{ "updates", "{\"how\":\"odd\"}", 10, false },
	{ "slow", "{\"ms\":2000}", 5, true },
	{ "throws", "{\"how\":\"exit\"}", 2, false },
	{ "prints", "{\"how\":\"flood\"}", 2, false },
	{ "py_hello", "{\"name\":\"Ann\"}", 2, false },
	{ "sh_tool", "{\"how\":\"background\"}", 2, false },
	{ "state", "{\"how\":\"interval\"}", 1, false },
};

static size_t count_entries(const char *path)
{
	auto_closedir DIR *dir = opendir(path);
	size_t count = 0;
	while (dir && readdir(dir))
		count++;
	return count;
}

/* What this process uses: what has been allocated and not freed, which no allocator's habits blur. */
static size_t used_kib(void)
{
	return (mallinfo2().uordblks + mallinfo2().hblkhd) / 1024;
}

static size_t kind_of(unsigned number)
{
	unsigned at = number * 619 % 1000; /* spreads the kinds evenly */
	size_t kind = 0;
	for (unsigned sum = kinds[0].share; at >= sum; sum += kinds[kind].share)
		kind++;
	return kind;
}

struct slot {
	struct outcome outcome;
	struct loop_timer timer;
};

static void run_calls(struct world *world, unsigned calls, unsigned parallel, unsigned *ends)
{
	struct slot *slots = xcalloc(parallel, sizeof(*slots));
	for (unsigned done = 0; done < calls; done += parallel) {
		for (unsigned i = 0; i < parallel; i++) {
			size_t kind = kind_of(done + i);
			submit(world, &slots[i].outcome, kinds[kind].name, kinds[kind].params);
			if (kinds[kind].is_cancelled)
				loop_arm_timer(world->loop, &slots[i].timer, 50, cancel,
					&slots[i].outcome);
		}
		run_until_done(world);
		for (unsigned i = 0; i < parallel; i++) {
			loop_cancel_timer(&slots[i].timer);
			ends[slots[i].outcome.end]++;
			release(&slots[i].outcome);
		}
	}
	free(slots);
}

int main(int argc, char **argv)
{
	unsigned calls = argc > 1 ? (unsigned)atoi(argv[1]) : 100000;
	unsigned parallel = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	signal(SIGPIPE, SIG_IGN);
	struct world *world = new_world();
	struct executor_config config;
	executor_config_defaults(&config);
	config.grace_ms = 200;
	make_world(world, &config);
	unsigned ends[JOB_CANCELLED + 1] = { 0 };
	run_calls(world, calls / 10, parallel, ends);
	size_t kib = used_kib(), fds = count_entries("/proc/self/fd");
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	run_calls(world, calls - calls / 10, parallel, ends);
	clock_gettime(CLOCK_MONOTONIC, &to);
	double seconds =
		(double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	size_t kib_after = used_kib(), fds_after = count_entries("/proc/self/fd");
	struct executor_stats stats;
	executor_get_stats(world->executor, &stats);
	printf("%u calls: %u done, %u failed, %u crashed, %u timed out, %u cancelled\n", calls,
		ends[JOB_DONE], ends[JOB_FAILED], ends[JOB_CRASHED], ends[JOB_TIMED_OUT],
		ends[JOB_CANCELLED]);
	printf("%.0f calls/s; hosts started: %llu; memory: %zu -> %zu KiB; descriptors: %zu -> %zu\n",
		(calls - calls / 10) / seconds, (unsigned long long)stats.hosts_started, kib,
		kib_after, fds, fds_after);
	free_world(world);
	bool left = waitpid(-1, NULL, WNOHANG) != -1;
	bool grown = kib_after > kib + GROWTH_MAX_KIB || fds_after > fds + 5 * 20;
	if (left || grown)
		printf("FAILED:%s%s\n", left ? " processes are left" : "",
			grown ? " something has grown" : "");
	return left || grown;
}
