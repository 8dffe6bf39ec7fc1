#include "core/tools/blocktext.h"

#include <string.h>

#include "core/base/utf8.h"

#define WORD_MAX 200 /* bytes of a type, a media type or an address */

/* One piece of the line: control characters and what is beyond the limit are left out. */
static void put_word(struct buf *out, const char *word)
{
	char copy[WORD_MAX + 1];
	size_t len = 0;
	for (const char *at = word; *at && len < WORD_MAX; at++)
		if ((unsigned char)*at >= ' ' && *at != 0x7f)
			copy[len++] = *at;
	copy[len] = '\0';
	utf8_trim_partial(copy);
	buf_puts(out, copy);
}

static void put_detail(struct buf *out, const char **separator, const json_t *word)
{
	const char *text = json_string_value(word);
	if (!text || !*text)
		return;
	buf_puts(out, *separator);
	*separator = ", ";
	put_word(out, text);
}

/* How many bytes a base64 text stands for. */
static size_t decoded_len(const json_t *base64)
{
	const char *text = json_string_value(base64);
	size_t len = json_string_length(base64);
	while (len > 0 && text[len - 1] == '=')
		len--;
	return len / 4 * 3 + len % 4 * 3 / 4;
}

static void put_size(
	struct buf *out, const char **separator, const json_t *base64, const json_t *text)
{
	if (!json_is_string(base64) && !json_is_string(text))
		return;
	size_t len = json_is_string(base64) ? decoded_len(base64) : json_string_length(text);
	buf_printf(out, "%s%zu byte%s", *separator, len, len == 1 ? "" : "s");
	*separator = ", ";
}

void blocktext_append(struct buf *out, const json_t *block)
{
	const char *type = json_string_value(json_object_get(block, "type"));
	const json_t *text = json_object_get(block, "text");
	if (strcmp(type, "text") == 0) {
		buf_append(out, json_string_value(text), json_string_length(text));
		return;
	}
	const json_t *inner = json_object_get(block, "resource"); /* MCP's embedded resource */
	const json_t *source = json_is_object(inner) ? inner : block;
	const char *separator = ": ";
	buf_putc(out, '[');
	put_word(out, *type ? type : "block without a type");
	put_detail(out, &separator, json_object_get(source, "uri"));
	put_detail(out, &separator, json_object_get(source, "mimeType"));
	const json_t *data = json_object_get(source, "data");
	put_size(out, &separator, data ? data : json_object_get(source, "blob"),
		json_object_get(source, "text"));
	buf_puts(out, "; see result.json]");
}
