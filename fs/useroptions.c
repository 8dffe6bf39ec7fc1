#include "fs/useroptions.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/integrations.h"
#include "core/tools/users.h"
#include "fs/options.h"

/* The text with the name in each place that is kept for it; the caller's. */
static char *expand(const char *text, const char *name)
{
	const char *place;
	auto_free char *done = xstrdup("");
	while ((place = strstr(text, USEROPTIONS_NAME))) {
		char *more = xasprintf("%s%.*s%s", done, (int)(place - text), text, name);
		free(done);
		done = more;
		text = place + strlen(USEROPTIONS_NAME);
	}
	return xasprintf("%s%s", done, text);
}

char *useroptions_integrations(const struct mount_options *options, const char *name)
{
	return options->integrations ? expand(options->integrations, name) : NULL;
}

static void put(struct environment *environment, const char *variable, const char *format,
	const char *data, const char *name)
{
	struct fail none = FAIL_INIT; /* it has a name and a value */
	auto_free char *value = xasprintf("%s/%s%s", data, name, format);
	auto_free char *assignment = xasprintf("%s=%s", variable, value);
	environment_put(environment, assignment, &none);
}

static char *tools_dirs(const struct mount_options *options, const char *name)
{
	return xasprintf("%s:%s/%s/" USERS_TOOLS, options->tools, options->data, name);
}

/* Who has no file of integrations has none. */
static int add_integrations(const struct mount_options *options, const char *name,
	struct environment *environment, struct fail *why)
{
	auto_free char *path = useroptions_integrations(options, name);
	if (!path || (access(path, F_OK) < 0 && errno == ENOENT))
		return 0;
	return integrations_load(environment, path, why);
}

static void add_asked(
	const struct mount_options *options, const char *name, struct environment *environment)
{
	for (size_t i = 0; i < options->asked.count; i++) {
		struct fail none = FAIL_INIT; /* it was checked when it was given */
		auto_free char *assignment = expand(options->asked.items[i], name);
		environment_put(environment, assignment, &none);
	}
}

int useroptions_load(const struct mount_options *options, const char *name,
	struct environment *here, struct environment *there, struct fail *why)
{
	auto_free char *dirs = tools_dirs(options, name);
	environment_load(here, dirs);
	put(here, "OFFICER_USER_ROOT", "", options->data, name);
	put(here, "HOME", "", options->data, name);
	put(here, "OFFICER_EMAIL_DB", "/data/emails.db", options->data, name);
	environment_load(there, options->shown_at);
	if (add_integrations(options, name, here, why) == 0)
		add_integrations(options, name, there, why);
	add_asked(options, name, here);
	add_asked(options, name, there);
	return why->code;
}

int useroptions_render(const struct mount_options *options, const char *name, struct buf *out)
{
	auto_free char *dirs = tools_dirs(options, name);
	return buf_printf(out, "at=%s\nuser=%s\ntools=%s\n", options->shown_at, name, dirs);
}
