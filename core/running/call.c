#include "core/running/call.h"

#include <errno.h>
#include <string.h>

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
