#include "core/running/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/log.h"
#include "core/running/caller.h"
#include "core/tools/xjson.h"

#define NEWER "events"
#define OLDER "events.old"
#define RECORD_MAX 4096

/* A file of its owner's alone, never a pipe or a device that could make the loop wait. */
static int open_path(const char *path, struct fail *why)
{
	int fd =
		open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0600);
	struct stat st;
	bool is_pipe = fd < 0 && errno == ENXIO; /* that nobody reads */
	if (!is_pipe && (fd < 0 || fstat(fd, &st) < 0))
		fail_errno(why, "cannot open the audit trail '%s'", path);
	else if (is_pipe || !S_ISREG(st.st_mode))
		fail_set(why, -EINVAL,
			"the audit trail '%s' is no regular file; use '-' for standard error",
			path);
	if (why->code && fd >= 0)
		close(take_fd(&fd));
	return fd;
}

/* What one who was killed at that moment has left: nothing may be written behind it. */
static void drop_half_line(int fd)
{
	struct stat st;
	char last;
	off_t end = fstat(fd, &st) == 0 ? st.st_size : 0;
	off_t whole = end;
	while (whole > 0 && pread(fd, &last, 1, whole - 1) == 1 && last != '\n')
		whole--;
	if (whole < end && ftruncate(fd, whole) < 0)
		log_errno(LOG_LEVEL_WARNING, "half a record is in the audit trail");
}

int audit_open(struct audit *audit, int dir_fd, size_t size_max, const char *path, struct fail *why)
{
	*audit = (struct audit){
		.dir_fd = dir_fd, .size_max = size_max, .path = path, .path_fd = -1
	};
	audit->pid_ns = caller_pid_namespace(getpid());
	audit->fd = openat(dir_fd, NEWER, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (audit->fd < 0)
		return fail_errno(why, "cannot open the audit trail in the state directory");
	drop_half_line(audit->fd);
	if (path && strcmp(path, AUDIT_STDERR) == 0)
		audit->path_fd = STDERR_FILENO;
	else if (path)
		audit->path_fd = open_path(path, why);
	return why->code;
}

void audit_release(struct audit *audit)
{
	if (audit->fd >= 0)
		close(audit->fd);
	if (audit->path_fd > STDERR_FILENO)
		close(audit->path_fd);
	*audit = (struct audit)AUDIT_INIT;
}

/* ---- writing */

static void complain(struct audit *audit, const char *where, int error)
{
	if (!audit->complained)
		log_msg(LOG_LEVEL_ERROR,
			"the audit trail cannot be written to '%s', and has a gap: %s", where,
			strerror(-error));
	audit->complained = true;
}

static int rotate(struct audit *audit)
{
	if (renameat(audit->dir_fd, NEWER, audit->dir_fd, OLDER) < 0)
		return -errno;
	int fd = openat(audit->dir_fd, NEWER, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(audit->fd);
	audit->fd = fd;
	return 0;
}

/* A line that has no room is taken back: what follows must not be behind half of one. */
static int append(int fd, const struct buf *line, off_t end)
{
	int result = io_write_all(fd, line->data, line->len);
	if (result < 0 && ftruncate(fd, end) < 0)
		return -errno;
	return result;
}

static int keep(struct audit *audit, const struct buf *line)
{
	struct stat st;
	if (fstat(audit->fd, &st) < 0)
		return -errno;
	if (st.st_size > 0 && (size_t)st.st_size + line->len > audit->size_max / 2) {
		int result = rotate(audit);
		if (result < 0)
			return result;
		st.st_size = 0;
	}
	return append(audit->fd, line, st.st_size);
}

/* Whether the open file is still the one of that path. */
static bool is_in_place(const struct audit *audit)
{
	struct stat open_one, named;
	return audit->path_fd >= 0 && fstat(audit->path_fd, &open_one) == 0 &&
	       stat(audit->path, &named) == 0 && open_one.st_dev == named.st_dev &&
	       open_one.st_ino == named.st_ino;
}

static int copy(struct audit *audit, const struct buf *line)
{
	struct fail why = FAIL_INIT;
	if (audit->path_fd != STDERR_FILENO && !is_in_place(audit)) {
		if (audit->path_fd >= 0)
			close(take_fd(&audit->path_fd));
		audit->path_fd = open_path(audit->path, &why);
		if (audit->path_fd < 0)
			return why.code;
	}
	return io_write_all(audit->path_fd, line->data, line->len);
}

/* Takes the rest of a record. */
static void put(struct audit *audit, uid_t uid, uint64_t pid_ns, const char *event, json_t *rest)
{
	struct timespec now;
	struct tm parts;
	char date[32];
	auto_buf struct buf line = BUF_INIT(RECORD_MAX);
	auto_json json_t *fields = rest;
	auto_free char *text = json_dumps(fields, JSON_COMPACT);
	clock_gettime(CLOCK_REALTIME, &now);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &parts));
	buf_printf(&line,
		"{\"time\":\"%s.%03dZ\",\"uid\":%u,\"pid_ns\":%" PRIu64 ",\"event\":\"%s\",", date,
		(int)(now.tv_nsec / 1000000), (unsigned)uid, pid_ns, event);
	buf_puts(&line, text ? text + 1 : "}"); /* behind its brace */
	buf_putc(&line, '\n');
	int kept = line.failed ? line.failed : keep(audit, &line);
	int copied = audit->path && !line.failed ? copy(audit, &line) : 0;
	if (kept < 0)
		complain(audit, "the state directory", kept);
	else if (copied < 0)
		complain(audit, audit->path, copied);
	else
		audit->complained = false;
}

static json_t *fields_of(const struct call *call)
{
	json_t *fields = xjson_object();
	xjson_set(fields, "id", xjson_string(call->id));
	xjson_set(fields, "tool", xjson_string(call->tool->name));
	xjson_set(fields, "version", json_integer(call->tool->version));
	xjson_set(fields, "gid", json_integer(call->gid));
	if (call->chain.count > 0)
		xjson_set(fields, "pid", json_integer(call->chain.links[0].pid));
	return fields;
}

void audit_call(struct audit *audit, const struct call *call)
{
	put(audit, call->uid, call->pid_ns, "call", fields_of(call));
}

static json_int_t span(int64_t from_ms, int64_t to_ms)
{
	return to_ms > from_ms ? to_ms - from_ms : 0;
}

void audit_end(struct audit *audit, const struct call *call)
{
	json_t *fields = fields_of(call);
	bool ran = call->started_ms != 0;
	xjson_set(fields, "state", xjson_string(call_state_name(call->state)));
	xjson_set(fields, "waited_ms",
		json_integer(span(call->created_ms, ran ? call->started_ms : call->changed_ms)));
	xjson_set(
		fields, "ran_ms", json_integer(ran ? span(call->started_ms, call->changed_ms) : 0));
	put(audit, call->uid, call->pid_ns, "end", fields);
}

void audit_server(struct audit *audit, uint64_t generation)
{
	json_t *fields = xjson_object();
	xjson_set(fields, "pid", json_integer(getpid()));
	xjson_set(fields, "generation", json_integer((json_int_t)generation));
	put(audit, geteuid(), audit->pid_ns, "server", fields);
}

void audit_tools(struct audit *audit, size_t count, size_t faults)
{
	json_t *fields = xjson_object();
	xjson_set(fields, "count", json_integer((json_int_t)count));
	xjson_set(fields, "faults", json_integer((json_int_t)faults));
	put(audit, geteuid(), audit->pid_ns, "tools", fields);
}

/* ---- reading */

/* The number behind a key; the first of a line is ours, whatever the names in it are. */
static uint64_t number_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool may_see(const struct audit_reader *reader, const char *line)
{
	if (reader->all)
		return true;
	uint64_t pid_ns = number_of(line, "\"pid_ns\":");
	return number_of(line, "\"uid\":") == reader->uid &&
	       (pid_ns == reader->pid_ns || pid_ns == 0 || reader->pid_ns == 0);
}

static int render_file(const struct audit *audit, const char *name,
	const struct audit_reader *reader, struct buf *out)
{
	auto_buf struct buf text = BUF_INIT(audit->size_max);
	auto_close int fd = openat(audit->dir_fd, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	int result = io_read_all(fd, &text);
	if (result < 0)
		return result;
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (may_see(reader, line)) {
			buf_puts(out, line);
			buf_putc(out, '\n');
		}
	}
	return out->failed;
}

int audit_render(const struct audit *audit, const struct audit_reader *reader, struct buf *out)
{
	int result = render_file(audit, OLDER, reader, out);
	return result < 0 ? result : render_file(audit, NEWER, reader, out);
}
