#include "core/running/scrub.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/base/xalloc.h"

struct secret {
	char *bytes; /* owned */
	size_t len;
};

struct scrub {
	struct secret *secrets; /* owned, longest first: one may be the beginning of another */
	size_t count, capacity;
	bool begins[256]; /* whether one begins with that byte */
	struct buf held;  /* of a stream: what may be the beginning of one */
};

/* ---- what is to be hidden */

static void add(struct scrub *scrub, const char *bytes, size_t len)
{
	if (len < SCRUB_LEN_MIN)
		return;
	scrub->secrets =
		xgrow(scrub->secrets, scrub->count, &scrub->capacity, sizeof(*scrub->secrets));
	size_t at = scrub->count++;
	for (; at > 0 && scrub->secrets[at - 1].len < len; at--)
		scrub->secrets[at] = scrub->secrets[at - 1];
	scrub->secrets[at] = (struct secret){ .bytes = xcalloc(len + 1, 1), .len = len };
	memcpy(scrub->secrets[at].bytes, bytes, len);
	scrub->begins[(unsigned char)bytes[0]] = true;
}

/* As it is, and as it stands in JSON. */
static void add_value(struct scrub *scrub, const json_t *value)
{
	if (json_is_null(value) || json_is_boolean(value))
		return;
	const char *text = json_string_value(value);
	if (text)
		add(scrub, text, json_string_length(value));
	char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!json)
		return;
	size_t len = strlen(json);
	if (!text)
		add(scrub, json, len);
	else if (len - 2 != json_string_length(value)) /* it has escapes in it */
		add(scrub, json + 1, len - 2);
	explicit_bzero(json, len);
	free(json);
}

struct scrub *scrub_new(const struct tool *tool, const json_t *params)
{
	struct scrub *scrub = xcalloc(1, sizeof(*scrub));
	buf_init(&scrub->held, (size_t)-1 / 2);
	for (size_t i = 0; i < tool->input_count; i++) {
		const json_t *value = json_object_get(params, tool->inputs[i].name);
		if (tool->inputs[i].sensitive && value)
			add_value(scrub, value);
	}
	if (scrub->count > 0)
		return scrub;
	scrub_free(scrub);
	return NULL;
}

void scrub_free(struct scrub *scrub)
{
	if (!scrub)
		return;
	for (size_t i = 0; i < scrub->count; i++) {
		explicit_bzero(scrub->secrets[i].bytes, scrub->secrets[i].len);
		free(scrub->secrets[i].bytes);
	}
	free(scrub->secrets);
	buf_release(&scrub->held);
	free(scrub);
}

/* ---- hiding it */

/* The secret that lies at the start of bytes, or NULL. */
static const struct secret *find_at(const struct scrub *scrub, const char *bytes, size_t len)
{
	for (size_t i = 0; i < scrub->count; i++)
		if (scrub->secrets[i].len <= len &&
			memcmp(bytes, scrub->secrets[i].bytes, scrub->secrets[i].len) == 0)
			return &scrub->secrets[i];
	return NULL;
}

/* Whether all of bytes is the beginning of a longer secret. */
static bool is_beginning(const struct scrub *scrub, const char *bytes, size_t len)
{
	for (size_t i = 0; i < scrub->count; i++)
		if (scrub->secrets[i].len > len && memcmp(bytes, scrub->secrets[i].bytes, len) == 0)
			return true;
	return false;
}

/*
 * Appends bytes, each secret replaced, as far as it is known; returns how many were taken. `more`
 * says that others follow, so that an end which may be the beginning of a secret is left.
 */
static size_t take(
	const struct scrub *scrub, const char *bytes, size_t len, bool more, struct buf *out)
{
	size_t at = 0, plain = 0; /* bytes from plain to at are as they should be */
	while (at < len) {
		if (!scrub->begins[(unsigned char)bytes[at]]) {
			at++;
			continue;
		}
		if (more && is_beginning(scrub, bytes + at, len - at))
			break;
		const struct secret *secret = find_at(scrub, bytes + at, len - at);
		if (!secret) {
			at++;
			continue;
		}
		buf_append(out, bytes + plain, at - plain);
		buf_puts(out, SCRUB_MARK);
		at += secret->len;
		plain = at;
	}
	buf_append(out, bytes + plain, at - plain);
	return at;
}

int scrub_text(const struct scrub *scrub, const char *bytes, size_t len, struct buf *out)
{
	if (!scrub)
		return buf_append(out, bytes, len);
	take(scrub, bytes, len, false, out);
	return out->failed;
}

static json_t *scrub_string(const struct scrub *scrub, const char *bytes, size_t len)
{
	auto_buf struct buf out = BUF_INIT((size_t)-1 / 2);
	return scrub_text(scrub, bytes, len, &out) < 0 ? NULL
						       : json_stringn(buf_str(&out), out.len);
}

static json_t *scrub_number(const struct scrub *scrub, json_t *value)
{
	auto_free char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (!text)
		return NULL;
	return find_at(scrub, text, strlen(text)) ? json_string(SCRUB_MARK) : json_incref(value);
}

static json_t *scrub_array(const struct scrub *scrub, const json_t *value)
{
	auto_json json_t *copy = json_array();
	for (size_t i = 0; i < json_array_size(value); i++)
		if (json_array_append_new(copy, scrub_value(scrub, json_array_get(value, i))) < 0)
			return NULL;
	return take_ptr(&copy);
}

static json_t *scrub_object(const struct scrub *scrub, json_t *value)
{
	auto_json json_t *copy = json_object();
	const char *key;
	json_t *member;
	json_object_foreach(value, key, member)
	{
		auto_buf struct buf name = BUF_INIT((size_t)-1 / 2);
		if (scrub_text(scrub, key, strlen(key), &name) < 0 ||
			json_object_set_new(copy, buf_str(&name), scrub_value(scrub, member)) < 0)
			return NULL;
	}
	return take_ptr(&copy);
}

json_t *scrub_value(const struct scrub *scrub, const json_t *given)
{
	/* jansson counts references in the value itself, and so wants it without const. */
	union {
		const json_t *given;
		json_t *counted;
	} value = { .given = given };
	switch (scrub ? json_typeof(given) : JSON_NULL) {
	case JSON_STRING:
		return scrub_string(scrub, json_string_value(given), json_string_length(given));
	case JSON_INTEGER:
	case JSON_REAL:
		return scrub_number(scrub, value.counted);
	case JSON_ARRAY:
		return scrub_array(scrub, given);
	case JSON_OBJECT:
		return scrub_object(scrub, value.counted);
	default:
		return json_incref(value.counted);
	}
}

int scrub_stream(struct scrub *scrub, const char *bytes, size_t len, struct buf *out)
{
	if (!scrub)
		return buf_append(out, bytes, len);
	if (scrub->held.len == 0) {
		size_t taken = take(scrub, bytes, len, true, out);
		return taken == len ? out->failed
				    : buf_append(&scrub->held, bytes + taken, len - taken);
	}
	if (buf_append(&scrub->held, bytes, len) < 0)
		return scrub->held.failed;
	buf_consume(&scrub->held, take(scrub, scrub->held.data, scrub->held.len, true, out));
	return out->failed;
}

int scrub_flush(struct scrub *scrub, struct buf *out)
{
	if (!scrub || scrub->held.len == 0)
		return 0;
	take(scrub, scrub->held.data, scrub->held.len, false, out);
	explicit_bzero(scrub->held.data, scrub->held.len);
	buf_reset(&scrub->held);
	return out->failed;
}
