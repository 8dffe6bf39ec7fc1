#include "core/running/call.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* State by state: its name, whether it is an end, and what the waiting writer gets. */
static const struct {
	const char *name;
	bool final;
	int outcome;
} states[] = {
	[CALL_RESERVED] = { "reserved", false, -EAGAIN },
	[CALL_QUEUED] = { "queued", false, -EAGAIN },
	[CALL_RUNNING] = { "running", false, -EAGAIN },
	[CALL_DONE] = { "done", true, 0 },
	[CALL_FAILED] = { "failed", true, -EIO },
	[CALL_CANCELLED] = { "cancelled", true, -ECANCELED },
	[CALL_TIMED_OUT] = { "timed out", true, -ETIMEDOUT },
	[CALL_REFUSED] = { "refused", true, -EINVAL },
};
_Static_assert(sizeof(states) / sizeof(*states) == CALL_STATES, "each state has a row");

bool call_state_is_final(enum call_state state)
{
	return states[state].final;
}

const char *call_state_name(enum call_state state)
{
	return states[state].name;
}

int call_outcome(const struct call *call)
{
	return states[call->state].outcome;
}

static void render_time(struct buf *out, const char *key, int64_t ms)
{
	if (ms == 0)
		return;
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;
	char text[32];
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &parts));
	buf_printf(out, "%s: %s.%03dZ\n", key, text, (int)(ms % 1000));
}

int call_render_status(const struct call *call, struct buf *out)
{
	buf_printf(out, "state: %s\nid: %s\ntool: %s\n", call_state_name(call->state), call->id,
		call->tool->name);
	render_time(out, "created", call->created_ms);
	render_time(out, "started", call->started_ms);
	if (call_state_is_final(call->state))
		render_time(out, "ended", call->changed_ms);
	if (call->reason[0])
		buf_printf(out, "reason: %s\n", call->reason);
	return out->failed;
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool call_id_is_valid(const char *id)
{
	size_t len = strlen(id);
	if (len == 0 || len > CALL_ID_MAX || !is_alnum(id[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_alnum(id[i]) && !strchr("._-", id[i]))
			return false;
	return true;
}
