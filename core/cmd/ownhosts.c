#include "core/cmd/ownhosts.h"

#include <fcntl.h>
#include <stdlib.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"
#include "core/running/environment.h"
#include "core/running/libdir.h"

static int make_state_dir(struct ownhosts *hosts, const char *command, struct fail *why)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
	const char *parent = runtime && *runtime       ? runtime
			     : temporary && *temporary ? temporary
						       : "/tmp";
	auto_free char *path = xasprintf("%s/pegfs-%s-XXXXXX", parent, command);
	if (!mkdtemp(path))
		return fail_errno(why, "cannot make a directory in '%s'", parent);
	hosts->state_dir = take_ptr(&path);
	return 0;
}

int ownhosts_start(struct ownhosts *hosts, struct loop *loop, const char *command,
	const char *tools, struct fail *why)
{
	auto_environment struct environment environment = ENVIRONMENT_INIT;
	environment_load(&environment, tools);
	*hosts = (struct ownhosts){ .lib_dir = libdir_find(why) };
	if (!hosts->lib_dir || make_state_dir(hosts, command, why) < 0)
		return why->code;
	struct executor_config config;
	executor_config_defaults(&config);
	config.lib_dir = hosts->lib_dir;
	config.state_dir = hosts->state_dir;
	config.env = (const char *const *)environment.items;
	hosts->executor = executor_new(loop, &config, why);
	return why->code;
}

void ownhosts_release(struct ownhosts *hosts)
{
	executor_free(hosts->executor);
	if (hosts->state_dir)
		io_remove_tree(AT_FDCWD, hosts->state_dir);
	free(hosts->state_dir);
	free(hosts->lib_dir);
	*hosts = (struct ownhosts){ .executor = NULL };
}
