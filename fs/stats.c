#include "fs/stats.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
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

/* The value of a label: backslash, quote and line feed are escaped. */
static void put_label(struct buf *out, const char *value)
{
	for (; *value; value++)
		if (*value == '\n') {
			buf_puts(out, "\\n");
		} else {
			if (*value == '\\' || *value == '"')
				buf_putc(out, '\\');
			buf_putc(out, *value);
		}
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

/* ---- of each tool: those that have been called since the server started */

static void put_ended(struct buf *out, const struct meter_tool *tool)
{
	for (int state = 0; state < CALL_STATES; state++) {
		if (!call_state_is_final((enum call_state)state))
			continue;
		buf_puts(out, "pegfs_tool_calls_total{tool=\"");
		put_label(out, tool->name);
		buf_printf(out, "\",state=\"%s\"} %" PRIu64 "\n",
			call_state_name((enum call_state)state), tool->ended[state]);
	}
}

/* One line of a histogram: its name and its tool, if it has one, then what else labels it. */
static void put_series(struct buf *out, const char *name, const char *suffix,
	const struct meter_tool *tool, const char *further)
{
	buf_printf(out, "pegfs_%s%s", name, suffix);
	if (tool || *further)
		buf_putc(out, '{');
	if (tool) {
		buf_puts(out, "tool=\"");
		put_label(out, tool->name);
		buf_puts(out, *further ? "\"," : "\"");
	}
	buf_puts(out, further);
	buf_puts(out, tool || *further ? "} " : " ");
}

static void put_seconds(struct buf *out, uint64_t ms)
{
	buf_printf(out, "%" PRIu64 ".%03u", ms / 1000, (unsigned)(ms % 1000));
}

static void put_histogram(struct buf *out, const char *name, const struct meter_tool *tool,
	const struct meter_times *times)
{
	uint64_t up_to = 0;
	for (size_t i = 0; i < METER_CLASSES; i++) {
		auto_buf struct buf bound = BUF_INIT(64);
		buf_printf(&bound, "le=\"%g\"", meter_bounds_ms[i] / 1000.0);
		up_to += times->in_class[i];
		put_series(out, name, "_bucket", tool, buf_str(&bound));
		buf_printf(out, "%" PRIu64 "\n", up_to);
	}
	put_series(out, name, "_bucket", tool, "le=\"+Inf\"");
	buf_printf(out, "%" PRIu64 "\n", times->count);
	put_series(out, name, "_sum", tool, "");
	put_seconds(out, times->sum_ms);
	buf_putc(out, '\n');
	put_series(out, name, "_count", tool, "");
	buf_printf(out, "%" PRIu64 "\n", times->count);
}

static void render_tools(const struct meter *meter, struct buf *out)
{
	const struct meter_tool *tool;
	head(out, "tool_calls_total", "counter",
		"Calls of each tool that have ended, by how; of tools that were called.");
	for (size_t at = 0; (tool = meter_next(meter, &at));)
		put_ended(out, tool);
	head(out, "call_duration_seconds", "histogram",
		"Time from a request to the end of its call, of calls that ran.");
	for (size_t at = 0; (tool = meter_next(meter, &at));)
		put_histogram(out, "call_duration_seconds", tool, &tool->took);
	head(out, "call_wait_seconds", "histogram",
		"Time for which calls waited for a host, of calls that ran.");
	put_histogram(out, "call_wait_seconds", NULL, &meter->waited);
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
	counter(out, "supervisor_restarts_total", "Supervisors started because one had died.",
		counters->supervisor_restarts);
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

/* The second number of proc_pid_statm(5), in bytes; 0 where it cannot be read. */
static uint64_t resident_bytes(void)
{
	auto_buf struct buf text = BUF_INIT(256);
	auto_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || io_read_all(fd, &text) < 0)
		return 0;
	char *at = text.data;
	strtoull(at, &at, 10);
	return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void render_process(const struct server *server, struct buf *out)
{
	head(out, "build_info", "gauge", "1, with the version of pegfs.");
	buf_puts(out, "pegfs_build_info{version=\"" PEGFS_VERSION "\"} 1\n");
	gauge(out, "server_pid", "Process id of the server.", (uint64_t)getpid());
	gauge(out, "supervisor_pid", "Process id of the process that keeps the mount.",
		(uint64_t)server->state->supervisor_pid);
	gauge(out, "resident_memory_bytes", "Memory of the server, without hosts.",
		resident_bytes());
	gauge(out, "start_time_seconds", "When the server started, in seconds since 1970.",
		(uint64_t)server->started.tv_sec);
}

int stats_render_of_tree(
	const struct server *server, const struct forest_tree *tree, struct buf *out)
{
	render_process(server, out);
	gauge(out, "tools", "Tools in the tree.", tree->snapshot->count);
	gauge(out, "faults", "Lines in .pegfs/errors.", tree->snapshot->faults.count);
	return out->failed;
}

int stats_render(const struct server *server, struct buf *out)
{
	render_process(server, out);
	render_survival(&server->state->counters, out);
	const struct forest *forest = server->forest;
	const struct snapshot *snapshot = forest->only.snapshot;
	if (forest->has_users)
		gauge(out, "users", "Users that have a tree.", forest->count);
	gauge(out, "tools", forest->has_users ? "Tools that all users have." : "Tools in the tree.",
		snapshot->count);
	gauge(out, "faults", "Lines in .pegfs/errors.",
		snapshot->faults.count + forest->faults.count);
	gauge(out, "open_handles", "Open files of the tree.", server->handles.by_fh.count);
	render_calls(server, out);
	render_tools(&server->meter, out);
	render_hosts(server, out);
	return out->failed;
}
