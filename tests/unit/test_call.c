/* One call: what each state means to those who look at it and to its writer; ids; status. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <string.h>

#include "core/running/call.h"

static void each_state_has_a_name_an_end_and_an_outcome(void **state)
{
	(void)state;
	static const struct {
		enum call_state state;
		const char *name;
		bool final;
		int outcome;
	} rows[] = {
		{ CALL_RESERVED, "reserved", false, -EAGAIN },
		{ CALL_QUEUED, "queued", false, -EAGAIN },
		{ CALL_RUNNING, "running", false, -EAGAIN },
		{ CALL_DONE, "done", true, 0 },
		{ CALL_FAILED, "failed", true, -EIO },
		{ CALL_CANCELLED, "cancelled", true, -ECANCELED },
		{ CALL_TIMED_OUT, "timed out", true, -ETIMEDOUT },
		{ CALL_REFUSED, "refused", true, -EINVAL },
	};
	assert_int_equal(sizeof(rows) / sizeof(*rows), CALL_STATES);
	for (size_t i = 0; i < CALL_STATES; i++) {
		const struct call call = { .state = rows[i].state };
		assert_int_equal(rows[i].state, i);
		assert_string_equal(call_state_name(rows[i].state), rows[i].name);
		assert_int_equal(call_state_is_final(rows[i].state), rows[i].final);
		assert_int_equal(call_outcome(&call), rows[i].outcome);
	}
}

static void ids_are_safe_file_names(void **state)
{
	(void)state;
	static const char *const good[] = { "a", "0", "job-1", "A.b_c-9", "call.json",
		"0123456789012345678901234567890123456789012345678901234567890123" };
	static const char *const bad[] = { "", ".", "..", ".hidden", "-x", "_x", "a/b", "a b",
		"a\n", "\xc3\xa4", "a\xff", "a:b", "a~",
		"01234567890123456789012345678901234567890123456789012345678901234" };
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_true(call_id_is_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(call_id_is_valid(bad[i]));
}

static void check_status(const struct call *call, const char *wanted)
{
	struct buf out = BUF_INIT(4096);
	assert_int_equal(call_render_status(call, &out), 0);
	assert_string_equal(buf_str(&out), wanted);
	buf_release(&out);
}

static void status_shows_what_is_known_and_nothing_else(void **state)
{
	(void)state;
	char name[] = "hello";
	struct tool tool = { .name = name };
	struct call call = { .tool = &tool,
		.id = "job-1",
		.state = CALL_RUNNING,
		.created_ms = 1000,
		.started_ms = 1700000000123,
		.changed_ms = 1700000001000 };
	check_status(&call, "state: running\nid: job-1\ntool: hello\n"
			    "created: 1970-01-01T00:00:01.000Z\n"
			    "started: 2023-11-14T22:13:20.123Z\n");
	call.state = CALL_TIMED_OUT;
	strcpy(call.reason, "too late");
	check_status(&call, "state: timed out\nid: job-1\ntool: hello\n"
			    "created: 1970-01-01T00:00:01.000Z\n"
			    "started: 2023-11-14T22:13:20.123Z\n"
			    "ended: 2023-11-14T22:13:21.000Z\nreason: too late\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_has_a_name_an_end_and_an_outcome),
		cmocka_unit_test(ids_are_safe_file_names),
		cmocka_unit_test(status_shows_what_is_known_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
