#include "core/running/sandbox.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/running/program.h"

/* The system: what programs need to run. */
static const char *const system_dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/libx32", "/etc", "/opt" };

/*
 * A user namespace also for root: with the namespace alone its capabilities end at the border. The
 * first process of the pid namespace is the host itself (--as-pid-1), so that whatever a tool starts
 * stays below it, and dies with it.
 */
static const char *const first_words[] = { "--unshare-user", "--unshare-ipc", "--unshare-pid",
	"--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--cap-drop",
	"ALL" };

static const char *const mount_words[] = { "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
	"--tmpfs", "/run", "--tmpfs", "/var/tmp", "--setenv", "TMPDIR", "/tmp" };

static void put(struct sandbox *sandbox, const char *word)
{
	assert(sandbox->count < SANDBOX_WORDS_MAX - 1);
	sandbox->words[sandbox->count++] = word;
}

static void put_all(struct sandbox *sandbox, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(sandbox, words[i]);
}

/* Shows a path in there as it is here. */
static void show(struct sandbox *sandbox, const char *how, const char *path)
{
	put(sandbox, how);
	put(sandbox, path);
	put(sandbox, path);
}

/* The user's data, to be read and written; "/" is where nobody has said where they are. */
static void show_data(struct sandbox *sandbox, const char *const *env)
{
	const char *root = program_get_env(env, "OFFICER_USER_ROOT");
	const char *mails = program_get_env(env, "OFFICER_EMAIL_DB");
	if (mails && *mails == '/')
		show(sandbox, "--ro-bind-try", mails);
	if (root && *root == '/' && root[strspn(root, "/")] != '\0')
		show(sandbox, "--bind-try", root);
}

void sandbox_make(struct sandbox *sandbox, const struct sandbox_setup *setup)
{
	*sandbox = (struct sandbox){ .count = 0 };
	put(sandbox, setup->bwrap);
	put_all(sandbox, first_words, sizeof(first_words) / sizeof(*first_words));
	if (setup->kind == SANDBOX_BWRAP_OFFLINE)
		put(sandbox, "--unshare-net");
	for (size_t i = 0; i < sizeof(system_dirs) / sizeof(*system_dirs); i++)
		show(sandbox, "--ro-bind-try", system_dirs[i]);
	put_all(sandbox, mount_words, sizeof(mount_words) / sizeof(*mount_words));
	/* Where links lead, since only that is in there. */
	char *program = realpath(setup->program, NULL);
	if (program) {
		sandbox->owned[sandbox->owned_count++] = program;
		put(sandbox, "--ro-bind");
		put(sandbox, program);
		put(sandbox, program);
	}
	show(sandbox, "--ro-bind", setup->lib_dir);
	show_data(sandbox, setup->env);
	show(sandbox, "--ro-bind", setup->tool_dir);
	if (setup->cache_dir)
		show(sandbox, "--bind", setup->cache_dir);
	put(sandbox, "--chdir");
	put(sandbox, "/");
	put(sandbox, "--");
	put(sandbox, program ? program : setup->argv[0]);
	for (const char *const *at = setup->argv + 1; *at; at++)
		put(sandbox, *at);
	sandbox->words[sandbox->count] = NULL;
}

void sandbox_release(struct sandbox *sandbox)
{
	while (sandbox->owned_count > 0)
		free(sandbox->owned[--sandbox->owned_count]);
}
