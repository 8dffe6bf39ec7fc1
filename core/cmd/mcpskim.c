#include "core/cmd/mcpskim.h"

#include <stdbool.h>
#include <string.h>

#define ID_MAX 1024 /* bytes; a longer one is none */

struct skim {
	const char *at, *end;
	int depth; /* 1: in the outermost object */
};

static bool is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void pass_blanks(struct skim *skim)
{
	while (skim->at < skim->end && is_blank(*skim->at))
		skim->at++;
}

/* From its opening quote to behind the closing one, or to the end. */
static void pass_string(struct skim *skim)
{
	for (skim->at++; skim->at < skim->end && *skim->at != '"'; skim->at++)
		if (*skim->at == '\\' && skim->end - skim->at > 1)
			skim->at++;
	if (skim->at < skim->end)
		skim->at++;
}

static json_t *read_value(const struct skim *skim)
{
	struct skim value = *skim;
	pass_blanks(&value);
	const char *start = value.at;
	if (value.at < value.end && *value.at == '"')
		pass_string(&value);
	else
		while (value.at < value.end && strchr("+-.0123456789eE", *value.at))
			value.at++;
	size_t len = (size_t)(value.at - start);
	json_t *id = len > ID_MAX ? NULL : json_loadb(start, len, JSON_DECODE_ANY, NULL);
	if (json_is_string(id) || json_is_integer(id))
		return id;
	json_decref(id);
	return NULL;
}

/* At a string that may be a key: whether "id" and a colon stand there; they are passed. */
static bool take_key(struct skim *skim)
{
	static const char key[] = "\"id\"";
	const char *start = skim->at;
	pass_string(skim);
	size_t len = (size_t)(skim->at - start);
	if (len != strlen(key) || memcmp(start, key, len) != 0)
		return false;
	pass_blanks(skim);
	if (skim->at == skim->end || *skim->at != ':')
		return false;
	skim->at++;
	return true;
}

json_t *mcpskim_id(const char *line, size_t len)
{
	struct skim skim = { .at = line, .end = line + len };
	pass_blanks(&skim);
	if (skim.at == skim.end || *skim.at != '{')
		return NULL;
	while (skim.at < skim.end) {
		char byte = *skim.at;
		if (byte == '"') {
			if (take_key(&skim) && skim.depth == 1)
				return read_value(&skim);
			continue;
		}
		skim.depth += byte == '{' || byte == '[';
		skim.depth -= byte == '}' || byte == ']';
		skim.at++;
	}
	return NULL;
}
