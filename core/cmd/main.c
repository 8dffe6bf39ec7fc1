/* pegfs-core: the commands that need no mount. That it links without libfuse proves the layers. */
#include "core/cmd/command.h"

int main(int argc, char **argv)
{
	static const struct program program = { .commands = NULL, .libraries = "" };
	return command_main(&program, argc, argv);
}
