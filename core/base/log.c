#include "core/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define LOG_RECORD_MAX 4096

static const char *const level_names[] = { "error", "warning", "info", "debug" };
static const int level_priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Settings of the process, made once at its start: the one exception from "state is passed in". */
static enum log_level max_level = LOG_LEVEL_INFO;
static bool use_syslog;

void log_set_level(enum log_level level)
{
	max_level = level;
}

int log_parse_level(const char *name, enum log_level *level)
{
	for (size_t i = 0; i < sizeof(level_names) / sizeof(*level_names); i++)
		if (strcmp(name, level_names[i]) == 0) {
			*level = (enum log_level)i;
			return 0;
		}
	return -EINVAL;
}

void log_to_syslog(void)
{
	openlog("pegfs", LOG_PID, LOG_DAEMON);
	use_syslog = true;
}

/* Copies text without control characters; returns the bytes used, NUL not counted. */
static size_t clean(char *to, size_t size, const char *text)
{
	size_t used = 0;
	for (const char *c = text; *c && used + 5 < size; c++) {
		unsigned char byte = (unsigned char)*c;
		if (byte < 0x20 || byte == 0x7f)
			used += (size_t)snprintf(to + used, size - used, "\\x%02x", byte);
		else
			to[used++] = *c;
	}
	to[used] = '\0';
	return used;
}

static void emit(enum log_level level, const char *text)
{
	char line[LOG_RECORD_MAX + 64];
	if (use_syslog) {
		clean(line, sizeof(line), text);
		syslog(level_priorities[level], "%s", line);
		return;
	}
	int head = snprintf(line, sizeof(line), "pegfs: %s%s",
		level == LOG_LEVEL_INFO ? "" : level_names[level],
		level == LOG_LEVEL_INFO ? "" : ": ");
	size_t used = (size_t)head;
	used += clean(line + used, sizeof(line) - used - 1, text);
	line[used++] = '\n';
	/* One write, so that records of several processes do not mix; nobody to tell if it fails. */
	ssize_t ignored = write(STDERR_FILENO, line, used);
	(void)ignored;
}

void log_msg(enum log_level level, const char *format, ...)
{
	if (level > max_level)
		return;
	int saved = errno;
	char text[LOG_RECORD_MAX];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	emit(level, text);
	errno = saved;
}

void log_errno(enum log_level level, const char *format, ...)
{
	if (level > max_level)
		return;
	int saved = errno;
	char text[LOG_RECORD_MAX];
	va_list args;
	va_start(args, format);
	int used = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (used >= 0 && used < (int)sizeof(text))
		snprintf(text + used, sizeof(text) - (size_t)used, ": %s", strerror(saved));
	emit(level, text);
	errno = saved;
}
