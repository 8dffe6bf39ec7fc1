#include "core/tools/manifest.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/base/xalloc.h"
#include "core/tools/field.h"
#include "core/tools/inputs.h"
#include "core/tools/mend.h"
#include "core/tools/suggest.h"
#include "core/tools/yaml.h"
#include "core/tools/yamljson.h"

#define EXACT_INTEGER_MAX 9007199254740992 /* 2^53: other readers hold versions in a double */

/* ---- YAML, strictly and then leniently */

static void warn_mended(
	struct faults *faults, const struct yaml_problem *problem, const struct mended *mended)
{
	char keys[640] = "", lines[80] = "";
	if (mended->count > 0)
		snprintf(keys, sizeof(keys), "; taken as plain text: %s%s",
			mended->keys.len ? buf_str(&mended->keys) : "a value",
			mended->count > 3 ? " and others" : "");
	if (mended->dropped > 0)
		snprintf(lines, sizeof(lines), "; lines before the first key are left out (%zu)",
			mended->dropped);
	faults_add(faults, FAULT_WARNING, problem->code, problem->line, problem->column, "%s%s%s",
		problem->text, keys, lines);
}

static void fail_name(struct field_reader *reader, size_t line)
{
	const struct yaml_node place = { .line = line };
	field_fail(reader, &place, "not-text",
		"'name' must be a string and nothing else: a word in snake_case, as in 'name: "
		"send_mail'");
}

/* Fills *root from text that is no YAML. Returns 0, or a negative errno. */
static int load_leniently(const struct frontmatter *front, const struct yaml_problem *problem,
	struct yaml_node *root, struct field_reader *reader, size_t *name_line)
{
	auto_buf struct buf text = BUF_INIT(MEND_SIZE_MAX);
	struct mended mended = MENDED_INIT;
	struct yaml_problem again;
	yaml_tree_release(root);
	int result = mend_yaml(front->yaml, front->yaml_len, &text, &mended);
	if (result == 0)
		result = yaml_tree_load(buf_str(&text), text.len, front->yaml_line, root, &again);
	if (result == 0)
		warn_mended(reader->faults, problem, &mended);
	*name_line = mended.name_line > 0 ? front->yaml_line + mended.name_line - 1 : 0;
	buf_release(&mended.keys);
	return result;
}

static int load_yaml(
	const struct frontmatter *front, struct yaml_node *root, struct field_reader *reader)
{
	struct yaml_problem problem;
	size_t name_line = 0;
	int result = yaml_tree_load(front->yaml, front->yaml_len, front->yaml_line, root, &problem);
	if (result == -EINVAL && load_leniently(front, &problem, root, reader, &name_line) == 0) {
		reader->mended = true;
		result = 0;
	}
	if (result < 0) {
		faults_add(reader->faults, FAULT_ERROR, problem.code, problem.line, problem.column,
			"%s", problem.text);
		if (name_line > 0)
			fail_name(reader, name_line);
		return -EINVAL;
	}
	if (root->kind == YAML_KIND_MAPPING)
		return 0;
	field_fail(reader, root, "not-a-mapping",
		"the front matter is no mapping; write 'name: ...' and 'description: ...' on lines "
		"of their own");
	return -EINVAL;
}

/* ---- fields */

bool manifest_name_is_safe(const char *name)
{
	static const char *const reserved[] = { "README.md", "prompt.md", "tools.json" };
	size_t len = strlen(name);
	if (len == 0 || len > TOOL_NAME_MAX || *name == '.' || *name == '-')
		return false;
	if (utf8_valid_len(name, len) < len)
		return false;
	for (const char *c = name; *c; c++) {
		unsigned char byte = (unsigned char)c[0];
		bool is_c1 = byte == 0xc2 && (unsigned char)c[1] < 0xa0;
		if (byte < 0x20 || byte == 0x7f || byte == '/' || is_c1)
			return false;
	}
	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
		if (strcmp(name, reserved[i]) == 0)
			return false;
	return true;
}

/* What every model API takes as the name of a tool. */
static bool name_fits_models(const char *name)
{
	size_t len = 0;
	while (isalnum((unsigned char)name[len]) || name[len] == '_' || name[len] == '-')
		len++;
	return len <= 64 && name[len] == '\0' && !isdigit((unsigned char)*name) && *name != '-';
}

/* A text that must be there. Returns it, the caller's, or NULL with an error. */
static char *take_required(struct field_reader *reader, const struct yaml_node *node,
	const char *key, const char *code, const char *advice)
{
	char what[32];
	snprintf(what, sizeof(what), "'%s'", key);
	char *text = field_is_given(node) ? field_take_text(reader, node, what) : NULL;
	if (text && *text)
		return text;
	if (field_is_given(node) && !text)
		field_fail(reader, node, "not-text",
			"'%s' is a list or mapping, and must be text; put it in quotes", key);
	else
		field_fail(reader, node, code, "there is no '%s'; add one: %s", key, advice);
	free(text);
	return NULL;
}

static void read_name(struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	tool->name = take_required(reader, node, "name", "missing-name",
		"it is how the tool is called, in snake_case");
	if (!tool->name)
		return;
	if (!manifest_name_is_safe(tool->name))
		field_fail(reader, node, "unsafe-name",
			"the name '%s' cannot be the name of a directory in the tree; use letters, "
			"digits and '_', at most 64, and not README.md, prompt.md or tools.json",
			faults_excerpt(tool->name).text);
	else if (!name_fits_models(tool->name))
		field_warn(reader, node, "name-pattern",
			"some model APIs refuse the name '%s'; use letters, digits and '_', a "
			"letter first, at most 64",
			faults_excerpt(tool->name).text);
}

static void read_label(struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	char *text = field_is_given(node) ? field_take_text(reader, node, "'label'") : NULL;
	if (field_is_given(node) && !text)
		field_warn(reader, node, "not-text",
			"'label' is a list or mapping and is not used; put it in quotes");
	if (text && *text) {
		tool->label = text;
		return;
	}
	free(text);
	tool->label = xstrdup(tool->name ? tool->name : "");
}

static void read_description(
	struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	tool->description = take_required(reader, node, "description", "missing-description",
		"what the tool does and when to use it, agents read it");
	if (tool->description)
		field_check_description(reader, node, tool->description, "the description");
}

static void read_version(
	struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	if (!field_is_given(node)) {
		field_warn(reader, node, "missing-version",
			"there is no 'version', so it counts as 0 and sync cannot tell an update; "
			"add 'version: 1' and raise it with each change");
		return;
	}
	/* By its text, so that "2" in quotes is 2; 1.0 is an integer to JavaScript. */
	struct scalar scalar = { .type = SCALAR_STRING };
	if (node->kind == YAML_KIND_SCALAR)
		scalar = scalar_resolve(node->text);
	bool is_number = scalar.type == SCALAR_INTEGER || scalar.type == SCALAR_NUMBER;
	bool is_usable = is_number && scalar.number >= 0 &&
			 scalar.number <= (double)EXACT_INTEGER_MAX &&
			 (double)(int64_t)scalar.number == scalar.number;
	if (is_usable)
		tool->version = (int64_t)scalar.number;
	if (is_usable && scalar.type == SCALAR_INTEGER && node->plain)
		return;
	field_warn(reader, node, "version-not-integer",
		"the version '%s' is no plain integer and counts as %lld; write a number such as 1, "
		"without quotes",
		node->kind == YAML_KIND_SCALAR ? faults_excerpt(node->text).text : "[...]",
		(long long)tool->version);
}

static void read_language(
	struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	if (!field_is_given(node))
		return;
	for (enum language l = LANGUAGE_TYPESCRIPT; l <= LANGUAGE_BASH; l++)
		if (node->kind == YAML_KIND_SCALAR && strcmp(node->text, language_name(l)) == 0) {
			tool->language = l;
			return;
		}
	field_warn(reader, node, "unknown-language",
		"the language '%s' is not known and is taken as typescript; there are typescript, "
		"python and bash",
		node->kind == YAML_KIND_SCALAR ? faults_excerpt(node->text).text : "[...]");
}

static void read_timeout(
	struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	if (!field_is_given(node))
		return;
	struct scalar scalar = field_resolve(node);
	bool is_number = scalar.type == SCALAR_INTEGER || scalar.type == SCALAR_NUMBER;
	if (is_number && scalar.number >= 0.001 && scalar.number <= MANIFEST_TIMEOUT_MAX) {
		tool->timeout_ms = (unsigned)(scalar.number * 1000);
		return;
	}
	field_warn(reader, node, "bad-timeout",
		"'timeout' is no number of seconds from 0.001 to %d and is not used; write it "
		"without quotes and without a unit",
		MANIFEST_TIMEOUT_MAX);
}

/*
 * JSON of one of the keys that are taken over as they are, for tools that come from elsewhere; NULL
 * where it is not given or is none.
 */
static json_t *read_object(
	struct field_reader *reader, const struct yaml_node *node, const char *key)
{
	if (!field_is_given(node))
		return NULL;
	json_t *object = node->kind == YAML_KIND_MAPPING ? yamljson_build(node) : NULL;
	if (!object)
		field_warn(reader, node, "not-json",
			"'%s' is no JSON object and is not used; write {...} as in JSON", key);
	return object;
}

/* A schema of parameters is that of an object. */
static void read_parameters(
	struct field_reader *reader, const struct yaml_node *node, struct tool *tool)
{
	json_t *schema = read_object(reader, node, "parameters");
	const char *type = json_string_value(json_object_get(schema, "type"));
	if (schema && (!type || strcmp(type, "object") != 0)) {
		field_warn(reader, node, "not-json",
			"'parameters' is not used: it must be a JSON Schema whose type is object");
		json_decref(schema);
		schema = NULL;
	}
	tool->parameters = schema;
}

/* Unknown keys are ignored (A10); those that look like a slip of the pen are told. */
static void warn_misspelt_keys(struct field_reader *reader, const struct yaml_node *root)
{
	static const char *const known[] = { "name", "label", "description", "version", "language",
		"inputs", "timeout", "parameters", "annotations" };
	enum { KNOWN_COUNT = sizeof(known) / sizeof(*known) };
	bool is_there[KNOWN_COUNT];
	for (size_t k = 0; k < KNOWN_COUNT; k++)
		is_there[k] = yaml_get(root, known[k]);
	for (size_t i = 0; i + 1 < root->count; i += 2) {
		const struct yaml_node *key = &root->items[i];
		if (field_is_known(key->text, known, KNOWN_COUNT))
			continue;
		struct suggest suggest;
		suggest_begin(&suggest, key->text);
		for (size_t k = 0; k < KNOWN_COUNT; k++)
			if (!is_there[k])
				suggest_offer(&suggest, known[k]);
		if (suggest.best)
			field_warn(reader, key, "unknown-key",
				"'%s' is ignored; did you mean '%s'?",
				faults_excerpt(key->text).text, suggest.best);
	}
}

int manifest_parse(const char *bytes, size_t len, struct tool *tool, struct faults *faults)
{
	struct field_reader reader = { .faults = faults };
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	if (frontmatter_split(bytes, len, &front, faults) < 0 ||
		load_yaml(&front, &root, &reader) < 0)
		return -EINVAL;
	read_name(&reader, yaml_get(&root, "name"), tool);
	read_label(&reader, yaml_get(&root, "label"), tool);
	read_description(&reader, yaml_get(&root, "description"), tool);
	read_version(&reader, yaml_get(&root, "version"), tool);
	read_language(&reader, yaml_get(&root, "language"), tool);
	read_timeout(&reader, yaml_get(&root, "timeout"), tool);
	inputs_parse(&reader, yaml_get(&root, "inputs"), tool);
	read_parameters(&reader, yaml_get(&root, "parameters"), tool);
	tool->annotations = read_object(&reader, yaml_get(&root, "annotations"), "annotations");
	warn_misspelt_keys(&reader, &root);
	tool->body = xstrndup(front.body, front.body_len);
	tool->body_len = front.body_len;
	return reader.failed ? -EINVAL : 0;
}
