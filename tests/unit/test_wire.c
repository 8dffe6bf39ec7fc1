/* The reader of what hosts send: whole lines, other people's lines, limits; and what is written. */
/* cmocka wants these before it: */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"
#include "core/running/wire.h"

#define KEY "0123456789abcdef"
#define OURS "{\"key\":\"" KEY "\","

/* Feeds text in pieces of `step` bytes and returns how many messages came, or the error. */
static int feed(struct wire_reader *reader, const char *text, size_t step,
	struct wire_message *last, struct fail *why)
{
	int count = 0;
	for (size_t at = 0, len = strlen(text); at < len; at += step) {
		size_t part = len - at < step ? len - at : step;
		assert_int_equal(wire_reader_reserve(reader, part), 0);
		memcpy(reader->bytes.data + reader->bytes.len, text + at, part);
		reader->bytes.len += part;
		struct wire_message message;
		int got;
		while ((got = wire_next(reader, &message, why)) > 0) {
			wire_message_release(last);
			*last = message;
			count++;
		}
		if (got < 0)
			return got;
	}
	return count;
}

struct fixture {
	struct wire_reader reader;
	struct wire_message last;
	struct fail why;
};

static int setup(void **state)
{
	struct fixture *fixture = xcalloc(1, sizeof(*fixture));
	wire_reader_init(&fixture->reader, KEY, 0, 1000);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	wire_message_release(&fixture->last);
	wire_reader_release(&fixture->reader);
	free(fixture);
	return 0;
}

static void messages_come_in_pieces_of_any_size(void **state)
{
	(void)state;
	static const char text[] = "\n" OURS "\"seq\":1,\"type\":\"ready\"}\n"
				   "\n" OURS "\"seq\":2,\"type\":\"started\",\"id\":\"a\"}\n" OURS
				   "\"seq\":3,\"type\":\"result\",\"id\":\"a\",\"value\":[1,2]}\n";
	for (size_t step = 1; step < sizeof(text); step++) {
		struct wire_message last = { .body = NULL };
		struct wire_reader reader;
		struct fail why = FAIL_INIT;
		wire_reader_init(&reader, KEY, 0, 1000);
		assert_int_equal(feed(&reader, text, step, &last, &why), 3);
		assert_int_equal(last.type, WIRE_RESULT);
		assert_string_equal(last.id, "a");
		assert_int_equal(json_array_size(last.value), 2);
		assert_int_equal(reader.seen, 3);
		wire_message_release(&last);
		wire_reader_release(&reader);
	}
}

static void a_repeated_message_is_dropped(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(feed(&f->reader,
				 OURS "\"seq\":1,\"type\":\"ready\"}\n" OURS
				      "\"seq\":1,\"type\":\"ready\"}\n",
				 7, &f->last, &f->why),
		1);
}

static void t12_what_does_not_bear_the_key_means_nothing(void **state)
{
	struct fixture *f = *state;
	static const char junk[] = "{\"seq\":1,\"type\":\"ready\"}\n"
				   "{\"key\":\"0123456789abcdeX\",\"seq\":1,\"type\":\"ready\"}\n"
				   "{\"seq\":1,\"key\":\"" KEY "\",\"type\":\"ready\"}\n"
				   "half a line of an old server\"}}\n\n\n"
				   "\n" OURS "\"seq\":4,\"type\":\"ready\"}\n";
	assert_int_equal(feed(&f->reader, junk, 5, &f->last, &f->why), 1);
	assert_int_equal(f->reader.seen, 4);
}

static void t12_junk_longer_than_the_limit_is_passed_over(void **state)
{
	struct fixture *f = *state;
	auto_free char *junk = xcalloc(1, 300001);
	memset(junk, 'x', 300000);
	assert_int_equal(feed(&f->reader, junk, 60000, &f->last, &f->why), 0);
	assert_true(f->reader.bytes.size < 200000);
	assert_int_equal(
		feed(&f->reader, "\n" OURS "\"seq\":1,\"type\":\"ready\"}\n", 9, &f->last, &f->why),
		1);
}

static void a_message_over_the_limit_is_refused(void **state)
{
	struct fixture *f = *state;
	auto_free char *text = xcalloc(1, 100000);
	strcpy(text, OURS);
	memset(text + strlen(text), ' ', 90000);
	assert_int_equal(feed(&f->reader, text, 60000, &f->last, &f->why), -EFBIG);
}

static void what_bears_the_key_and_cannot_be_read_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
		OURS "\n",
		OURS "\"seq\":1}\n",
		OURS "\"seq\":1,\"type\":\"nonsense\"}\n",
		OURS "\"type\":\"ready\"}\n",
		OURS "\"seq\":-1,\"type\":\"ready\"}\n",
		OURS "\"seq\":\"1\",\"type\":\"ready\"}\n",
		OURS "\"seq\":1,\"type\":\"ready\"} trailing\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct wire_message last = { .body = NULL };
		struct wire_reader reader;
		struct fail why = FAIL_INIT;
		wire_reader_init(&reader, KEY, 0, 1000);
		assert_int_equal(feed(&reader, texts[i], 1000, &last, &why), -EPROTO);
		assert_string_not_equal(why.text, "");
		wire_reader_release(&reader);
	}
}

static void numbers_beyond_64_bits_are_read_as_reals(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(
		feed(&f->reader,
			OURS "\"seq\":1,\"type\":\"result\",\"value\":100000000000000000000}\n", 64,
			&f->last, &f->why),
		1);
	assert_int_equal(f->last.seq, 1);
	assert_true(json_is_real(f->last.value));
}

static void undefined_is_no_value(void **state)
{
	struct fixture *f = *state;
	feed(&f->reader, OURS "\"seq\":1,\"type\":\"result\",\"value\":null}\n", 64, &f->last,
		&f->why);
	assert_true(json_is_null(f->last.value));
	feed(&f->reader, OURS "\"seq\":2,\"type\":\"result\"}\n", 64, &f->last, &f->why);
	assert_null(f->last.value);
}

static void what_is_sent_is_one_line_each(void **state)
{
	(void)state;
	auto_buf struct buf out = BUF_INIT(10000);
	auto_json json_t *settings = json_pack("{s:i,s:s}", "resultMax", 5, "key", "not this one");
	assert_int_equal(wire_put_attach(&out, KEY, 7, settings), 0);
	auto_json json_t *secrets = json_pack("[s]", "token");
	struct wire_call call = { .id = "id",
		.name = "n\"1",
		.dir = "/d\n",
		.entry = "index.ts",
		.secrets = secrets,
		.params = "{\"a\":1}" };
	assert_int_equal(wire_put_call(&out, &call), 0);
	assert_int_equal(wire_put_prepare(&out, "/d", "index.ts"), 0);
	assert_int_equal(wire_put_abort(&out, "id", "why"), 0);
	assert_int_equal(wire_put_ack(&out, 12), 0);
	assert_int_equal(wire_put_exit(&out), 0);
	assert_string_equal(buf_str(&out),
		"\n{\"type\":\"attach\",\"key\":\"" KEY "\",\"acked\":7,\"resultMax\":5}\n"
		"\n{\"type\":\"call\",\"id\":\"id\",\"name\":\"n\\\"1\",\"dir\":\"/d\\n\","
		"\"entry\":\"index.ts\",\"secrets\":[\"token\"],\"params\":{\"a\":1}}\n"
		"\n{\"type\":\"prepare\",\"dir\":\"/d\",\"entry\":\"index.ts\"}\n"
		"\n{\"type\":\"abort\",\"id\":\"id\",\"reason\":\"why\"}\n"
		"\n{\"type\":\"ack\",\"seq\":12}\n"
		"\n{\"type\":\"exit\"}\n");
}

static void keys_differ(void **state)
{
	(void)state;
	char a[WIRE_KEY_LEN + 1], b[WIRE_KEY_LEN + 1];
	wire_make_key(a);
	wire_make_key(b);
	assert_int_equal(strlen(a), WIRE_KEY_LEN);
	assert_string_not_equal(a, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_in_pieces_of_any_size),
		cmocka_unit_test_setup_teardown(a_repeated_message_is_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(
			t12_what_does_not_bear_the_key_means_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			t12_junk_longer_than_the_limit_is_passed_over, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_message_over_the_limit_is_refused, setup, teardown),
		cmocka_unit_test(what_bears_the_key_and_cannot_be_read_is_refused),
		cmocka_unit_test_setup_teardown(
			numbers_beyond_64_bits_are_read_as_reals, setup, teardown),
		cmocka_unit_test_setup_teardown(undefined_is_no_value, setup, teardown),
		cmocka_unit_test(what_is_sent_is_one_line_each),
		cmocka_unit_test(keys_differ),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
