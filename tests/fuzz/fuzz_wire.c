/*
 * What a host may send, through the reader of messages, in pieces. The first byte says how large
 * the pieces are. "KEY" in the input stands for the key, or no input would ever bear it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/running/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char key[] = "0123456789abcdef";

#define LINE_MAX_HERE ((size_t)4096)

/* The input with each KEY replaced. */
static void expand(struct buf *text, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (size - i >= 3 && memcmp(data + i, "KEY", 3) == 0) {
			buf_puts(text, key);
			i += 2;
		} else {
			buf_putc(text, (char)data[i]);
		}
	}
}

static void check_message(const struct wire_message *message, uint64_t before)
{
	if (message->type >= WIRE_TYPES || message->seq <= before || !message->body)
		abort();
	if (strlen(message->id) > WIRE_ID_MAX || !message->kind || !message->text)
		abort();
}

/* Reads all there is: how many messages came, or -1 where one was refused. */
static int read_all(struct wire_reader *reader)
{
	int count = 0;
	for (;;) {
		struct wire_message message;
		struct fail why = FAIL_INIT;
		uint64_t before = reader->seen;
		int got = wire_next(reader, &message, &why);
		if ((got < 0) != (why.code < 0))
			abort();
		if (got < 0)
			return -1;
		if (got == 0)
			return count;
		check_message(&message, before);
		wire_message_release(&message);
		count++;
	}
}

static int feed(const struct buf *text, size_t step)
{
	struct wire_reader reader;
	wire_reader_init(&reader, key, 0, LINE_MAX_HERE);
	int total = 0;
	for (size_t at = 0; at < text->len && total >= 0; at += step) {
		size_t part = text->len - at < step ? text->len - at : step;
		if (wire_reader_reserve(&reader, part) < 0)
			abort();
		memcpy(reader.bytes.data + reader.bytes.len, text->data + at, part);
		reader.bytes.len += part;
		int count = read_all(&reader);
		total = count < 0 ? -1 : total + count;
	}
	wire_reader_release(&reader);
	return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct buf text = BUF_INIT(16UL * 1024 * 1024);
	expand(&text, data + 1, size - 1);
	/* How the bytes are cut changes nothing, but for lines at the limit. */
	int in_pieces = feed(&text, 1 + data[0]);
	int at_once = feed(&text, 60000);
	if (text.len < LINE_MAX_HERE && in_pieces != at_once)
		abort();
	buf_release(&text);
	return 0;
}
