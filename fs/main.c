/* pegfs: the commands that mount, and all of core's. */
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cmd/command.h"
#include "fs/cmd_mount.h"
#include "fs/cmd_serve.h"
#include "fs/options.h"

/*
 * mount(8) runs /sbin/mount.fuse.pegfs SOURCE MOUNTPOINT -o OPTIONS, or, where that is missing and
 * mount.fuse3 is there, pegfs SOURCE MOUNTPOINT -o OPTIONS.
 */
static bool is_mount_helper(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	if (strcmp(slash ? slash + 1 : argv[0], "mount.fuse.pegfs") == 0)
		return true;
	return argc >= 3 && argv[2][0] == '/' && argv[1][0] != '-' && strchr(argv[1], '/');
}

/* Where 0 to 2 are closed, the next open would take their place and get what is printed. */
static void hold_standard_fds(void)
{
	int fd = 0;
	while (fd >= 0 && fd <= STDERR_FILENO)
		fd = open("/dev/null", O_RDWR);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	hold_standard_fds();
	if (argc > 0 && is_mount_helper(argc, argv))
		return cmd_mount_helper(argc, argv);
	struct command mount = cmd_mount;
	mount.options = options_table();
	const struct command *const commands[] = { &mount, &cmd_umount, &cmd_reload, &cmd_serve,
		NULL };
	char libraries[64];
	snprintf(libraries, sizeof(libraries), ", libfuse %s", fuse_pkgversion());
	const struct program program = { .commands = commands, .libraries = libraries };
	return command_main(&program, argc, argv);
}
