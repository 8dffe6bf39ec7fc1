#include "core/cmd/callrequest.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/base/auto.h"
#include "core/base/io.h"
#include "core/base/utf8.h"
#include "core/tools/faults.h"
#include "core/tools/jsontext.h"
#include "core/tools/params.h"
#include "core/tools/xjson.h"

static bool is_json(const char *word)
{
	return word[strspn(word, " \t\r\n")] == '{';
}

/* It is looked at here already: half an object that was sent would wait for the rest of it. */
static int check_json(const struct buf *text, struct fail *why)
{
	auto_json json_t *object = params_parse(buf_str(text), text->len, why);
	return object ? 0 : why->code;
}

static int read_stdin(struct buf *out, struct fail *why)
{
	int result = io_read_all(STDIN_FILENO, out);
	if (result < 0)
		return fail_set(why, result, "cannot read standard input: %s", strerror(-result));
	return check_json(out, why);
}

static int fail_word(int number, const char *word, struct fail *why)
{
	return fail_set(why, -EINVAL,
		"word %d behind the tool is no KEY=VALUE%s; give inputs as KEY=VALUE, or all of them "
		"as one word of JSON",
		number, is_json(word) ? ", and JSON must be the only one" : "");
}

static int put(json_t *request, const char *word, int number, struct fail *why)
{
	const char *equals = strchr(word, '=');
	if (!equals || equals == word || is_json(word))
		return fail_word(number, word, why);
	size_t key_len = (size_t)(equals - word), len = strlen(word);
	if (utf8_valid_len(word, len) < len)
		return fail_set(why, -EINVAL,
			"word %d behind the tool is not UTF-8 from its byte %zu on", number,
			utf8_valid_len(word, len) + 1);
	auto_buf struct buf key = BUF_INIT(len + 1);
	buf_append(&key, word, key_len);
	if (json_object_get(request, buf_str(&key)))
		return fail_set(
			why, -EINVAL, "'%s' is given twice", faults_excerpt(buf_str(&key)).text);
	xjson_set(request, buf_str(&key), xjson_string(equals + 1));
	return 0;
}

int callrequest_read(char *const *words, int count, struct buf *out, struct fail *why)
{
	if (count == 1 && strcmp(words[0], "-") == 0)
		return read_stdin(out, why);
	if (count == 1 && is_json(words[0])) {
		buf_puts(out, words[0]);
		return out->failed ? fail_set(why, out->failed, "the request is too long")
				   : check_json(out, why);
	}
	auto_json json_t *request = xjson_object();
	for (int i = 0; i < count; i++)
		if (put(request, words[i], i + 1, why) < 0)
			return why->code;
	int result = jsontext_append(out, request, JSONTEXT_COMPACT);
	return result < 0 ? fail_set(why, result, "the request is too long") : 0;
}
