#include "core/running/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

#define ENVIRONMENT_FILE_MAX (1024 * 1024)

/* Handed on as they are; those with a default are always there, others only where they are set. */
static const struct {
	const char *name, *fallback;
} variables[] = {
	{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	{ "LANG", "C.UTF-8" }, { "LC_ALL", NULL }, { "TZ", NULL }, { "TMPDIR", NULL },
	{ "HOME", "/" },                                   /* R69 */
	{ "OFFICER_USER_ROOT", "/officer/user" },          /* R71 */
	{ "OFFICER_EMAIL_DB", "/officer/data/emails.db" }, /* R73 */
	{ "OFFICER_RESOURCES", "{}" },                     /* R74 */
	{ "PI_SEARXNG_URL", NULL },                        /* R75 */
	{ "OFFICER_APIFY_TOKEN", NULL },                   /* R76 */
	{ "OFFICER_BROWSER_RELAY_PORT", NULL },            /* R77 */
	{ "OFFICER_BROWSER_RELAY_TOKEN", NULL },           /* R78 */
};

void environment_release(struct environment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->items[i]);
	free(environment->items);
	*environment = (struct environment)ENVIRONMENT_INIT;
}

static char **find(const struct environment *environment, const char *assignment, size_t name_len)
{
	for (size_t i = 0; i < environment->count; i++)
		if (strncmp(environment->items[i], assignment, name_len + 1) == 0)
			return &environment->items[i];
	return NULL;
}

static void put(struct environment *environment, const char *assignment, size_t name_len)
{
	char **slot = find(environment, assignment, name_len);
	if (!slot) {
		/* One more for the NULL at the end. */
		environment->items = xgrow(environment->items, environment->count + 1,
			&environment->capacity, sizeof(*environment->items));
		slot = &environment->items[environment->count++];
		environment->items[environment->count] = NULL;
		*slot = NULL;
	}
	free(*slot);
	*slot = xstrdup(assignment);
}

static void set(struct environment *environment, const char *name, const char *value)
{
	auto_free char *assignment = xasprintf("%s=%s", name, value);
	put(environment, assignment, strlen(name));
}

int environment_put(struct environment *environment, const char *assignment, struct fail *why)
{
	size_t name_len = strcspn(assignment, "=");
	if (name_len == 0 || assignment[name_len] == '\0')
		return fail_set(why, -EINVAL, "'%.*s' is not of the form NAME=VALUE", (int)name_len,
			assignment);
	put(environment, assignment, name_len);
	if (strncmp(assignment, "HOME=", name_len + 1) == 0)
		set(environment, "OFFICER_USER_HOME", assignment + name_len + 1); /* R70 */
	return 0;
}

void environment_load(struct environment *environment, const char *tools_dirs)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i].name);
		/* What is set to nothing is not configured (R76 to R78: absent, not empty). */
		if (!value || !*value)
			value = variables[i].fallback;
		if (value)
			set(environment, variables[i].name, value);
	}
	const char *home = getenv("HOME");
	set(environment, "OFFICER_USER_HOME", home && *home ? home : "/"); /* R70 */
	set(environment, "PI_TOOLS_DIRS", tools_dirs);                     /* R72 */
}

/* NAME="VALUE" and NAME='VALUE' lose their quotes, in place. */
static void unquote(char *line)
{
	char *value = strchr(line, '=');
	if (!value++)
		return;
	size_t len = strlen(value);
	if (len < 2 || (*value != '"' && *value != '\'') || value[len - 1] != *value)
		return;
	value[len - 1] = '\0';
	memmove(value, value + 1, len - 1);
}

int environment_load_file(struct environment *environment, const char *path, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(ENVIRONMENT_FILE_MAX);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : io_read_all(fd, &text);
	if (result < 0)
		return fail_set(why, result, "environment file '%s': %s", path, strerror(-result));
	size_t number = 0;
	char *rest = text.data;
	for (char *line; (line = strsep(&rest, "\n"));) {
		number++;
		line += strspn(line, " \t");
		line[strcspn(line, "\r")] = '\0';
		if (*line == '\0' || *line == '#')
			continue;
		unquote(line);
		/* The line itself may be a secret: it is not quoted. */
		if (line[strcspn(line, "=")] != '=' || *line == '=')
			return fail_set(why, -EINVAL,
				"%s:%zu: the line is not of the form NAME=VALUE", path, number);
		environment_put(environment, line, why);
	}
	return why->code;
}
