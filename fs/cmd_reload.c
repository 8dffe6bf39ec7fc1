#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/auto.h"
#include "core/cmd/cmdline.h"
#include "core/running/statedir.h"
#include "fs/cmd_mount.h"
#include "fs/mount.h"

#define RELOAD_LIMIT_MS 30000
#define LOOK_EVERY_MS 10

/* Waits until another server serves, or it is said that none could. */
static int wait_for_next(const char *point, const struct statedir_news *before)
{
	for (unsigned waited = 0; waited < RELOAD_LIMIT_MS; waited += LOOK_EVERY_MS) {
		struct statedir_news now;
		if (statedir_ask(point, &now) < 0)
			return command_failed("reload", "the mount has ended meanwhile");
		if (now.failed_reloads != before->failed_reloads)
			return command_failed("reload",
				"the new server could not take over, and the old one goes on; its log says "
				"why");
		if (now.generation != before->generation)
			return COMMAND_OK;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_EVERY_MS * 1000000L }, NULL);
	}
	return command_failed("reload", "there is no new server yet");
}

static int reload(const char *path)
{
	struct fail why = FAIL_INIT;
	struct statedir_news before;
	auto_free char *real = mount_real_path(path);
	const char *point = real ? real : path;
	if (!mount_is_ours(point) || statedir_ask(point, &before) < 0) {
		fail_set(&why, -EINVAL, "no pegfs of this user serves '%s'", path);
		return command_failed("reload", why.text);
	}
	if (kill(before.holder, SIGUSR1) < 0)
		return command_failed("reload", strerror(errno));
	return wait_for_next(point, &before);
}

static int reload_command(int argc, char **argv)
{
	cmdline_begin();
	if (cmdline_next(&cmd_reload, argc, argv) != CMDLINE_END)
		return COMMAND_USAGE;
	if (optind + 1 != argc)
		return command_misuse("reload", "name one mount point");
	return reload(argv[optind]);
}

const struct command cmd_reload = { .name = "reload",
	.summary = "replace the running server, also by a newer one",
	.arguments = "MOUNTPOINT",
	.about =
		"Replaces the server of a mount by a new one, of the program as it is installed now.\n"
		"Nobody who uses the tree notices: open files, waiting calls and tools that run go on.\n"
		"Where the new one cannot take over, the old one stays.\n",
	.takes = COMMAND_TAKES_DIRS,
	.run = reload_command };
