/*
 * The daemon's own log: one line a record on standard error, or to syslog once the daemon has left
 * its terminal. A tool's output never comes here, nor does a parameter's value. Control characters
 * in a record are shown as \xNN, so that a tool's file name cannot forge a record.
 */
#ifndef PEGFS_BASE_LOG_H
#define PEGFS_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Records above this level are dropped. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

/* "error", "warning", "info", "debug" -> level. Returns 0 or -EINVAL. */
int log_parse_level(const char *name, enum log_level *level);

/* From here on records go to syslog (facility daemon) instead of standard error. */
void log_to_syslog(void);

/* Both preserve errno; log_errno adds ": strerror(errno)". */
void log_msg(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_errno(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
