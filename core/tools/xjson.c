#include "core/tools/xjson.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

static json_t *check(json_t *json)
{
	if (!json)
		abort();
	return json;
}

json_t *xjson_object(void)
{
	return check(json_object());
}

json_t *xjson_array(void)
{
	return check(json_array());
}

int xjson_append_clean(struct buf *out, const char *bytes, size_t len)
{
	int result = 0;
	while (len > 0 && result == 0) {
		size_t good = utf8_valid_len(bytes, len);
		result = buf_append(out, bytes, good);
		bytes += good;
		len -= good;
		if (len > 0 && result == 0) {
			result = buf_puts(out, REPLACEMENT);
			bytes++;
			len--;
		}
	}
	return result;
}

/* A copy in which every byte is fit for JSON; the caller frees it. */
static char *clean_copy(const char *text)
{
	size_t len = strlen(text);
	struct buf clean = BUF_INIT(len * strlen(REPLACEMENT));
	xjson_append_clean(&clean, text, len);
	char *copy = buf_take(&clean);
	if (!copy)
		abort();
	return copy;
}

static int is_clean(const char *text)
{
	size_t len = strlen(text);
	return utf8_valid_len(text, len) == len;
}

json_t *xjson_string(const char *text)
{
	if (is_clean(text))
		return check(json_string(text));
	char *copy = clean_copy(text);
	json_t *string = check(json_string(copy));
	free(copy);
	return string;
}

void xjson_set(json_t *object, const char *key, json_t *value)
{
	char *copy = is_clean(key) ? NULL : clean_copy(key);
	if (json_object_set_new(object, copy ? copy : key, check(value)) < 0)
		abort();
	free(copy);
}

void xjson_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, check(value)) < 0)
		abort();
}
