#include "core/running/verdict.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"

#define STATUS_SIZE_MAX (1024 * 1024) /* 65536 groups stand before the signals */

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Their default action leaves a process alive, or only stops it. */
#define HARMLESS                                                                                   \
	(BIT(SIGCHLD) | BIT(SIGURG) | BIT(SIGWINCH) | BIT(SIGCONT) | BIT(SIGSTOP) | BIT(SIGTSTP) | \
		BIT(SIGTTIN) | BIT(SIGTTOU))
#define STOPPERS (BIT(SIGINT) | BIT(SIGQUIT))
#define SOFT_ONES (BIT(SIGTERM) | BIT(SIGHUP) | BIT(SIGALRM) | BIT(SIGVTALRM))

enum verdict verdict_of(const struct signal_state *state)
{
	uint64_t active = state->pending & ~state->blocked;
	if (state->pending & BIT(SIGKILL))
		return VERDICT_FATAL;
	if (active & ~state->ignored & ~state->caught & ~HARMLESS)
		return VERDICT_FATAL;
	if (active & state->caught & STOPPERS)
		return VERDICT_CANCEL;
	if (active & state->caught & SOFT_ONES)
		return VERDICT_SOFT;
	return VERDICT_NONE;
}

static bool read_set(const char *status, const char *name, uint64_t *set)
{
	const char *line = strstr(status, name);
	if (line)
		*set |= strtoull(line + strlen(name), NULL, 16);
	return line != NULL;
}

enum verdict verdict_load(pid_t tid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	auto_buf struct buf text = BUF_INIT(STATUS_SIZE_MAX);
	auto_close int fd = tid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || io_read_all(fd, &text) < 0)
		return VERDICT_UNKNOWN;
	const char *status = buf_str(&text);
	struct signal_state state = { 0, 0, 0, 0 };
	if (!read_set(status, "\nSigPnd:", &state.pending) ||
		!read_set(status, "\nShdPnd:", &state.pending) ||
		!read_set(status, "\nSigBlk:", &state.blocked) ||
		!read_set(status, "\nSigIgn:", &state.ignored) ||
		!read_set(status, "\nSigCgt:", &state.caught))
		return VERDICT_UNKNOWN;
	return verdict_of(&state);
}
