#include "core/tools/option.h"

#include <errno.h>
#include <string.h>

bool option_is(const char *word)
{
	return strncmp(word, "--", 2) == 0 && word[2] != '\0';
}

static char fold(char byte)
{
	return byte == '-' ? '_' : byte;
}

static bool is_alike(const char *known, const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (known[i] == '\0' || fold(known[i]) != fold(name[i]))
			return false;
	return known[len] == '\0';
}

static bool is_same(const char *known, const char *name, size_t len)
{
	return strncmp(known, name, len) == 0 && known[len] == '\0';
}

/* 1 and *input, 0 where there is none, or the failure. */
static int find(const struct tool *tool, const char *name, size_t len, const struct input **input,
	struct fail *why)
{
	const struct input *alike = NULL;
	size_t count = 0;
	for (size_t i = 0; i < tool->input_count; i++) {
		const struct input *known = &tool->inputs[i];
		*input = known;
		if (is_same(known->name, name, len))
			return 1;
		if (!is_alike(known->name, name, len))
			continue;
		alike = known;
		count++;
	}
	*input = alike;
	if (count > 1)
		return fail_set(why, -EINVAL,
			"--%.*s may be any of %zu inputs whose names differ in '-' and '_' only: "
			"write the name as it is",
			(int)len, name, count);
	return count == 1;
}

static const struct {
	const char *name;
	enum option_kind kind;
} ours[] = { { "full", OPTION_FULL }, { "json", OPTION_JSON }, { "help", OPTION_HELP } };

static enum option_kind kind_of_ours(const struct option *option)
{
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (is_same(ours[i].name, option->name, option->name_len))
			return ours[i].kind;
	return OPTION_UNKNOWN;
}

/* --no-flag; an input that is no boolean has nothing that could be denied. */
static int find_denied(struct option *option, const struct tool *tool, struct fail *why)
{
	if (option->name_len <= 3 || !is_alike("no_", option->name, 3))
		return 0;
	int found = find(tool, option->name + 3, option->name_len - 3, &option->input, why);
	if (found == 1 && option->input->type != INPUT_BOOLEAN) {
		option->input = NULL;
		return 0;
	}
	return found;
}

int option_read(struct option *option, const struct tool *tool, const char *word, struct fail *why)
{
	const char *name = word + strlen("--");
	const char *equals = strchr(name, '=');
	*option = (struct option){ .kind = OPTION_UNKNOWN,
		.name = name,
		.name_len = equals ? (size_t)(equals - name) : strlen(name),
		.value = equals ? equals + 1 : NULL };
	if (option->name_len == 0)
		return fail_set(why, -EINVAL, "there is no name between '--' and '='");
	int found = find(tool, name, option->name_len, &option->input, why);
	if (found == 1)
		option->kind = OPTION_INPUT;
	if (found != 0)
		return found < 0 ? found : 0;
	option->kind = kind_of_ours(option);
	if (option->kind != OPTION_UNKNOWN)
		return 0;
	found = find_denied(option, tool, why);
	if (found == 1)
		option->kind = OPTION_NOT;
	return found < 0 ? found : 0;
}

bool option_is_ours(const struct tool *tool, const char *name)
{
	const struct input *input;
	struct fail why = FAIL_INIT;
	return find(tool, name, strlen(name), &input, &why) == 0;
}

bool option_is_needed(const struct input *input)
{
	return !input->optional && !input->default_value;
}

const struct input *option_positional(const struct tool *tool)
{
	const struct input *needed = NULL;
	size_t count = 0;
	for (size_t i = 0; i < tool->input_count; i++) {
		if (!option_is_needed(&tool->inputs[i]))
			continue;
		needed = &tool->inputs[i];
		count++;
	}
	if (count == 0 && tool->input_count == 1)
		return &tool->inputs[0];
	return count == 1 ? needed : NULL;
}
