#include "core/running/integrations.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/buf.h"
#include "core/base/io.h"
#include "core/base/xalloc.h"

static const struct {
	const char *variable, *resource, *keys[2];
} derived[] = {
	{ "PI_SEARXNG_URL", "searxng", { "url", "base_url" } },
	{ "OFFICER_APIFY_TOKEN", "apify", { "token", "api_token" } },
	{ "OFFICER_BROWSER_RELAY_PORT", "browser-relay", { "port", NULL } },
	{ "OFFICER_BROWSER_RELAY_TOKEN", "browser-relay", { "token", NULL } },
};

/* Environments are strings without NUL: a value is a text or a whole number. */
static char *as_text(const json_t *value)
{
	if (json_is_string(value) && json_string_length(value) > 0)
		return xstrdup(json_string_value(value));
	if (json_is_integer(value))
		return xasprintf("%lld", (long long)json_integer_value(value));
	return NULL;
}

static int put(
	struct environment *environment, const char *name, const char *value, struct fail *why)
{
	auto_free char *assignment = xasprintf("%s=%s", name, value);
	return environment_put(environment, assignment, why);
}

static int derive(struct environment *environment, const json_t *resources, struct fail *why)
{
	for (size_t i = 0; i < sizeof(derived) / sizeof(*derived); i++) {
		const json_t *resource = json_object_get(resources, derived[i].resource);
		auto_free char *value = NULL;
		for (size_t k = 0; k < 2 && derived[i].keys[k] && !value; k++)
			value = as_text(json_object_get(resource, derived[i].keys[k]));
		if (value && put(environment, derived[i].variable, value, why) < 0)
			return why->code;
	}
	return 0;
}

int integrations_load(struct environment *environment, const char *path, struct fail *why)
{
	auto_buf struct buf text = BUF_INIT(INTEGRATIONS_SIZE_MAX);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 ? -errno : io_read_all(fd, &text);
	if (result < 0)
		return fail_set(why, result, "integrations '%s': %s", path, strerror(-result));
	/* jansson's own words quote what it stumbled over, which may be a token: place only. */
	json_error_t error;
	auto_json json_t *resources =
		json_loadb(buf_str(&text), text.len, JSON_REJECT_DUPLICATES, &error);
	if (!resources)
		return fail_set(why, -EINVAL, "integrations '%s':%d:%d: no valid JSON", path,
			error.line, error.column);
	if (!json_is_object(resources))
		return fail_set(why, -EINVAL,
			"integrations '%s': expected one JSON object of resources", path);
	auto_free char *compact = json_dumps(resources, JSON_COMPACT);
	if (!compact)
		return fail_set(why, -ENOMEM, "no memory for the integrations");
	if (put(environment, "OFFICER_RESOURCES", compact, why) < 0)
		return why->code;
	return derive(environment, resources, why);
}
