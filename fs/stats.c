#include "fs/stats.h"

#include <inttypes.h>
#include <unistd.h>

#include "fs/server.h"

static void head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP pegfs_%s %s\n# TYPE pegfs_%s %s\n", name, help, name, type);
}

static void gauge(struct buf *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, "gauge", help);
	buf_printf(out, "pegfs_%s %" PRIu64 "\n", name, value);
}

static void counter(struct buf *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, "counter", help);
	buf_printf(out, "pegfs_%s %" PRIu64 "\n", name, value);
}

static void render_calls(const struct server *server, struct buf *out)
{
	struct calls_stats calls;
	calls_get_stats(server->calls, &calls);
	head(out, "calls_total", "counter", "Calls that have ended, by how.");
	for (int state = 0; state < CALL_STATES; state++)
		if (call_state_is_final((enum call_state)state))
			buf_printf(out, "pegfs_calls_total{state=\"%s\"} %" PRIu64 "\n",
				call_state_name((enum call_state)state), calls.ended[state]);
	gauge(out, "calls_kept", "Calls in the table, finished ones included.", calls.kept);
}

static void render_hosts(const struct server *server, struct buf *out)
{
	struct executor_stats stats;
	executor_get_stats(server->executor, &stats);
	gauge(out, "calls_running", "Calls that a host is working on.", stats.jobs_running);
	gauge(out, "calls_waiting", "Calls that wait for a host.", stats.jobs_waiting);
	gauge(out, "hosts", "Tool host processes.", stats.hosts);
	gauge(out, "hosts_idle", "Warm hosts without a call.", stats.hosts_idle);
	gauge(out, "hosts_spare", "Booted hosts that wait for a tool.", stats.spares);
	counter(out, "hosts_started_total", "Hosts started.", stats.hosts_started);
	counter(out, "hosts_crashed_total", "Hosts that died in a call.", stats.hosts_crashed);
}

static void render_survival(const struct state_counters *counters, struct buf *out)
{
	counter(out, "restarts_total", "Servers started because one had died.", counters->restarts);
	counter(out, "reloads_total", "Servers started by pegfs reload.", counters->reloads);
	counter(out, "hangs_total", "Servers killed by the watchdog.", counters->hangs);
	counter(out, "resends_total", "Requests served again by another server.",
		counters->resends);
	counter(out, "quarantined_total", "Requests answered with EIO since servers died of them.",
		counters->quarantined);
	counter(out, "calls_resumed_total", "Calls that went on while the server was replaced.",
		counters->resumed);
	counter(out, "calls_unknown_total", "Calls whose outcome cannot be known.",
		counters->unknown);
}

int stats_render(const struct server *server, struct buf *out)
{
	gauge(out, "server_pid", "Process id of the server.", (uint64_t)getpid());
	gauge(out, "supervisor_pid", "Process id of the process that keeps the mount.",
		(uint64_t)server->state->supervisor_pid);
	render_survival(&server->state->counters, out);
	gauge(out, "start_time_seconds", "When the server started, in seconds since 1970.",
		(uint64_t)server->started.tv_sec);
	gauge(out, "tools", "Tools in the tree.", server->snapshot->count);
	gauge(out, "faults", "Lines in .pegfs/errors.", server->snapshot->faults.count);
	gauge(out, "open_handles", "Open files of the tree.", server->handles.by_fh.count);
	render_calls(server, out);
	render_hosts(server, out);
	return out->failed;
}
