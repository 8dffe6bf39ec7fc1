#include "fs/cmd_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/log.h"
#include "fs/options.h"
#include "fs/server.h"
#include "fs/state.h"
#include "fs/supervisor.h"

/* The supervisor's end is this one's: nobody else has the mount's descriptor then. */
static bool has_supervisor(void)
{
	int type = 0;
	socklen_t len = sizeof(type);
	if (getsockopt(SUPERVISOR_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 ||
		type != SOCK_SEQPACKET)
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return true;
}

static void hide_descriptors(void)
{
	for (int fd = SUPERVISOR_FUSE_FD; fd < SUPERVISOR_FDS_END; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Until its very end: the next supervisor waits for that. So the descriptor is never closed. */
static void hold_lock(void)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", SUPERVISOR_STATE_FD);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH) < 0)
		log_errno(
			LOG_LEVEL_WARNING, "a supervisor that takes over would not wait for this");
}

static int serve(int argc, char **argv)
{
	struct mount_options options;
	struct fail why = FAIL_INIT;
	(void)argv;
	if (argc != 2 || !has_supervisor())
		return command_misuse("serve", "it is started by 'pegfs mount' only");
	hide_descriptors();
	prctl(PR_SET_NAME, "pegfs");
	int status = COMMAND_FAILED;
	struct state *state = state_map(SUPERVISOR_STATE_FD, &why);
	if (state)
		state_make_resident(state);
	else
		status = why.code == -EPROTO ? SUPERVISOR_EXIT_REFUSED : COMMAND_FAILED;
	int loaded = options_load(&options, SUPERVISOR_OPTIONS_FD, &why);
	/* It may have died between the fork and here. */
	if (state && (pid_t)state->supervisor_pid != getppid())
		raise(SIGKILL);
	hold_lock();
	if (loaded == 0 && state) {
		log_set_level(options.log_level);
		if (!options.foreground)
			log_to_syslog();
		status = server_run(&options, state, &why);
	}
	if (why.code)
		command_failed("mount", why.text);
	state_unmap(state);
	options_release(&options);
	return status;
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "serve a mount, started by its supervisor",
	.is_hidden = true,
	.run = serve,
};
