/* pegfs-core: the commands that need no mount. That it links without libfuse proves the layers. */
#include "core/cmd/command.h"

int main(int argc, char **argv)
{
	return command_main(NULL, argc, argv);
}
