#include "core/running/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "core/base/auto.h"

#define PREFIX "{\"key\":\""
#define PREFIX_LEN (sizeof(PREFIX) - 1)

#define DECODE_FLAGS JSON_ALLOW_NUL
#define ENCODE_FLAGS (JSON_COMPACT | JSON_ENCODE_ANY)

void wire_make_key(char key[WIRE_KEY_LEN + 1])
{
	unsigned char bytes[WIRE_KEY_LEN / 2];
	/* 256 bytes and less are given whole, and never wait once the system has booted. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		memset(bytes, 0, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(key + 2 * i, 3, "%02x", bytes[i]);
}

/* ---- reading */

void wire_reader_init(struct wire_reader *reader, const char *key, uint64_t seen, size_t line_max)
{
	*reader = (struct wire_reader){ .seen = seen };
	snprintf(reader->key, sizeof(reader->key), "%s", key);
	/* Lines already handled are dropped only when room is needed: hence the slack. */
	buf_init(&reader->bytes, line_max + WIRE_ENVELOPE_MAX);
}

void wire_reader_release(struct wire_reader *reader)
{
	buf_release(&reader->bytes);
}

void wire_message_release(struct wire_message *message)
{
	json_decref(message->body);
	message->body = NULL;
}

static bool is_ours(const struct wire_reader *reader, const char *line, size_t len)
{
	return len > PREFIX_LEN + WIRE_KEY_LEN && memcmp(line, PREFIX, PREFIX_LEN) == 0 &&
	       memcmp(line + PREFIX_LEN, reader->key, WIRE_KEY_LEN) == 0;
}

/* Drops what has been handled, and the memory of a large message once it is gone. */
static void drop_handled(struct wire_reader *reader)
{
	if (reader->at == 0)
		return;
	buf_consume(&reader->bytes, reader->at);
	reader->scanned -= reader->at;
	reader->at = 0;
	if (reader->bytes.len == 0 && reader->bytes.size > WIRE_ENVELOPE_MAX) {
		size_t max = reader->bytes.max;
		buf_release(&reader->bytes);
		buf_init(&reader->bytes, max);
	}
}

int wire_reader_reserve(struct wire_reader *reader, size_t more)
{
	drop_handled(reader);
	if (reader->skipping) {
		buf_reset(&reader->bytes);
		reader->scanned = 0;
	}
	return buf_reserve(&reader->bytes, more);
}

static int parse_type(const char *name, enum wire_type *type)
{
	static const char *const names[] = { "ready", "started", "stale", "progress", "result",
		"failed", "idle", "prepared" };
	_Static_assert(sizeof(names) / sizeof(names[0]) == WIRE_TYPES, "a name for each type");
	for (size_t i = 0; name && i < WIRE_TYPES; i++) {
		if (strcmp(name, names[i]) == 0) {
			*type = (enum wire_type)i;
			return 0;
		}
	}
	return -EPROTO;
}

static const char *get_string(const json_t *body, const char *name)
{
	const char *text = json_string_value(json_object_get(body, name));
	return text ? text : "";
}

static json_t *load(const char *line, size_t len, json_error_t *error)
{
	json_t *body = json_loadb(line, len, DECODE_FLAGS, error);
	/* Whole numbers beyond 64 bits are ordinary in JavaScript (1e20) and Python. */
	if (!body && json_error_code(error) == json_error_numeric_overflow)
		body = json_loadb(line, len, DECODE_FLAGS | JSON_DECODE_INT_AS_REAL, error);
	return body;
}

static int parse_message(
	const char *line, size_t len, struct wire_message *message, struct fail *why)
{
	json_error_t error;
	auto_json json_t *body = load(line, len, &error);
	if (!body)
		return fail_set(why, -EPROTO, "the answer cannot be read: %s", error.text);
	*message = (struct wire_message){
		.id = get_string(body, "id"),
		.kind = get_string(body, "kind"),
		.text = get_string(body, "text"),
		.clean = json_is_true(json_object_get(body, "clean")),
	};
	const json_t *seq = json_object_get(body, "seq");
	/* Decoded as a real where another number in the message was too large. */
	double number = json_number_value(seq);
	if (number < 1 || number > 9e15)
		return fail_set(why, -EPROTO, "a message without a number");
	message->seq = (uint64_t)number;
	if (parse_type(get_string(body, "type"), &message->type) < 0)
		return fail_set(why, -EPROTO, "a message of unknown type");
	if (strlen(message->id) > WIRE_ID_MAX)
		return fail_set(why, -EPROTO, "a message with an id that is too long");
	if (message->type == WIRE_RESULT)
		message->value = json_object_get(body, "value");
	if (message->type == WIRE_PROGRESS)
		message->value = json_object_get(body, "partial");
	message->body = take_ptr(&body);
	return 1;
}

/* One whole line at reader->at: 1 a message, 0 none of ours or seen before, or a negative errno. */
static int take_line(
	struct wire_reader *reader, size_t len, struct wire_message *message, struct fail *why)
{
	const char *line = reader->bytes.data + reader->at;
	if (!is_ours(reader, line, len))
		return 0;
	int result = parse_message(line, len, message, why);
	if (result <= 0)
		return result;
	if (message->seq <= reader->seen) {
		wire_message_release(message);
		return 0;
	}
	reader->seen = message->seq;
	return 1;
}

/* No newline as far as the bytes go: more may come, unless the line is too long already. */
static int await_line(struct wire_reader *reader, struct fail *why)
{
	size_t len = reader->bytes.len - reader->at;
	reader->scanned = reader->bytes.len;
	if (len < reader->bytes.max - WIRE_ENVELOPE_MAX)
		return 0;
	if (!reader->skipping && is_ours(reader, reader->bytes.data + reader->at, len))
		return fail_set(why, -EFBIG, "the answer is larger than the %zu bytes allowed",
			reader->bytes.max - WIRE_ENVELOPE_MAX);
	reader->skipping = true;
	return 0;
}

int wire_next(struct wire_reader *reader, struct wire_message *message, struct fail *why)
{
	while (reader->scanned < reader->bytes.len) {
		const char *from = reader->bytes.data + reader->scanned;
		const char *end = memchr(from, '\n', reader->bytes.len - reader->scanned);
		if (!end)
			return await_line(reader, why);
		size_t stop = (size_t)(end - reader->bytes.data);
		int result = 0;
		if (!reader->skipping)
			result = take_line(reader, stop - reader->at, message, why);
		reader->skipping = false;
		reader->at = reader->scanned = stop + 1;
		if (result != 0)
			return result;
	}
	return 0;
}

/* ---- writing */

/* The text of one message, without newlines. Takes body. */
static int put(struct buf *out, json_t *body)
{
	auto_json json_t *taken = body;
	auto_free char *text = json_dumps(taken, ENCODE_FLAGS);
	if (!text)
		return -ENOMEM;
	return buf_printf(out, "\n%s\n", text);
}

int wire_put_attach(struct buf *out, const char *key, uint64_t acked, const json_t *settings)
{
	json_t *body = json_pack(
		"{s:s,s:s,s:I}", "type", "attach", "key", key, "acked", (json_int_t)acked);
	json_t *copy = json_deep_copy(settings);
	json_object_update_missing(body, copy);
	json_decref(copy);
	return put(out, body);
}

int wire_put_call(struct buf *out, const struct wire_call *call)
{
	/* The parameters are text already, and may be large: they are put in as they are. */
	auto_json json_t *head = json_pack("{s:s,s:s,s:s,s:s,s:s,s:O}", "type", "call", "id",
		call->id, "name", call->name, "dir", call->dir, "entry", call->entry, "secrets",
		call->secrets);
	if (call->env && json_object_set(head, "env", (json_t *)(uintptr_t)call->env) < 0)
		return -ENOMEM;
	auto_free char *text = json_dumps(head, ENCODE_FLAGS);
	if (!text)
		return -ENOMEM;
	size_t open_len = strlen(text) - 1; /* without its closing brace */
	if (buf_putc(out, '\n') < 0 || buf_append(out, text, open_len) < 0 ||
		buf_puts(out, ",\"params\":") < 0 || buf_puts(out, call->params) < 0)
		return out->failed;
	return buf_puts(out, "}\n");
}

int wire_put_prepare(struct buf *out, const char *dir, const char *entry)
{
	return put(out, json_pack("{s:s,s:s,s:s}", "type", "prepare", "dir", dir, "entry", entry));
}

int wire_put_abort(struct buf *out, const char *id, const char *reason)
{
	return put(out, json_pack("{s:s,s:s,s:s}", "type", "abort", "id", id, "reason", reason));
}

int wire_put_ack(struct buf *out, uint64_t seq)
{
	return buf_printf(out, "\n{\"type\":\"ack\",\"seq\":%llu}\n", (unsigned long long)seq);
}

int wire_put_exit(struct buf *out)
{
	return buf_puts(out, "\n{\"type\":\"exit\"}\n");
}
