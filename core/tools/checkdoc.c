#include "core/tools/checkdoc.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "core/tools/checkbody.h"
#include "core/tools/frontmatter.h"
#include "core/tools/yaml.h"

/* One file that is looked at. */
struct doc {
	const struct tool *tool;
	const struct yaml_node *root; /* NULL where the YAML had to be mended: no places then */
	struct faults *faults;
};

/* A warning at the value of a key of the front matter, or of an input's name. */
__attribute__((format(printf, 4, 5))) static void warn(const struct doc *doc,
	const struct yaml_node *node, const char *code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	faults_vadd(doc->faults, FAULT_WARNING, code, node ? node->line : 0,
		node ? node->column : 0, format, args);
	va_end(args);
}

static const struct yaml_node *field(const struct doc *doc, const char *key)
{
	return doc->root ? yaml_get(doc->root, key) : NULL;
}

/* ---- name and version */

bool checkdoc_is_snake_case(const char *name)
{
	if (!islower((unsigned char)*name))
		return false;
	for (const char *c = name; *c; c++) {
		bool is_plain = islower((unsigned char)*c) || isdigit((unsigned char)*c);
		bool is_joint = *c == '_' && c[1] != '_' && c[1] != '\0';
		if (!is_plain && !is_joint)
			return false;
	}
	return true;
}

static void check_name(const struct doc *doc, const char *dir_name)
{
	const char *name = doc->tool->name;
	if (!checkdoc_is_snake_case(name))
		warn(doc, field(doc, "name"), "name-not-snake-case",
			"the name '%s' is not in snake_case; use small letters, digits and single "
			"'_', a letter first",
			faults_excerpt(name).text);
	if (strcmp(name, dir_name) != 0)
		warn(doc, field(doc, "name"), "directory-name",
			"the name '%s' is not that of the directory, '%s', so sync and people look "
			"for it in vain; make them equal",
			faults_excerpt(name).text, faults_excerpt(dir_name).text);
}

static void check_version(const struct doc *doc)
{
	const struct yaml_node *node = field(doc, "version");
	if (doc->tool->version == 0 && node && node->kind == YAML_KIND_SCALAR &&
		strcmp(node->text, "0") == 0)
		warn(doc, node, "version-zero",
			"version 0 is what a tool without a version has; begin with 1");
}

/* ---- description */

static size_t count_characters(const char *text)
{
	size_t count = 0;
	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

/* Whether a text says when: "Use this to ...", "... when ...". */
static bool says_when(const char *text)
{
	static const char *const marks[] = { "use this", "use it", "use to", "use for", "use when",
		"when ", "whenever", "call this" };
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (strcasestr(text, marks[i]))
			return true;
	return false;
}

static void check_description(const struct doc *doc)
{
	const char *text = doc->tool->description;
	const struct yaml_node *node = field(doc, "description");
	if (count_characters(text) < CHECKDOC_DESCRIPTION_MIN)
		warn(doc, node, "vague-description",
			"the description has fewer than %d characters; agents choose a tool by it "
			"alone, say what it does and when to use it",
			CHECKDOC_DESCRIPTION_MIN);
	else if (!says_when(text))
		warn(doc, node, "vague-description",
			"the description does not say when to use the tool; add a sentence such as "
			"'Use this to ...'");
}

/* ---- inputs */

/* Whether a word of the name, between '_', is one of these. */
static bool has_word(const char *name, const char *const *words)
{
	for (; *words; words++) {
		size_t len = strlen(*words);
		for (const char *at = name; (at = strcasestr(at, *words)); at++) {
			bool begins = at == name || at[-1] == '_';
			const char *end = at[len] == 's' ? at + len + 1 : at + len;
			if (begins && (*end == '\0' || *end == '_'))
				return true;
		}
	}
	return false;
}

static bool looks_secret(const struct input *input)
{
	static const char *const words[] = { "token", "password", "passphrase", "passwd", "secret",
		"api_key", "apikey", "private_key", "access_key", "credential", NULL };
	/* What tells where the next page begins, or how many tokens a model may use. */
	static const char *const harmless[] = { "page", "max", "next", "count", "limit", "sync",
		NULL };
	return input->type == INPUT_STRING && has_word(input->name, words) &&
	       !has_word(input->name, harmless);
}

static void check_inputs(const struct doc *doc)
{
	const struct yaml_node *inputs = field(doc, "inputs");
	for (size_t i = 0; i < doc->tool->input_count; i++) {
		const struct input *input = &doc->tool->inputs[i];
		bool is_placed =
			inputs && inputs->kind == YAML_KIND_MAPPING && i * 2 < inputs->count;
		if (looks_secret(input) && !input->sensitive)
			warn(doc, is_placed ? &inputs->items[i * 2] : NULL, "secret-not-sensitive",
				"input '%s' looks like a secret, and its values are logged and "
				"shown; add 'sensitive: true'",
				faults_excerpt(input->name).text);
	}
}

/* ---- all of it */

/* The line on which the body begins. */
static size_t body_line(const struct frontmatter *front, const char *bytes, size_t len)
{
	const char *from = front->text.len > 0 ? front->text.data : bytes;
	size_t size = front->text.len > 0 ? front->text.len : len, line = 1;
	if (!front->body || front->body < from || front->body > from + size)
		return 0;
	for (const char *c = from; c < front->body; c++)
		line += *c == '\n';
	return line;
}

void checkdoc_run(const struct tool *tool, const char *bytes, size_t len, const char *dir_name,
	bool has_secrets, struct faults *faults)
{
	auto_frontmatter struct frontmatter front = FRONTMATTER_INIT;
	auto_faults struct faults known = FAULTS_INIT; /* the manifest reader has told them */
	auto_yaml struct yaml_node root = YAML_NODE_INIT;
	struct yaml_problem problem;
	if (frontmatter_split(bytes, len, &front, &known) < 0)
		return;
	bool is_placed =
		yaml_tree_load(front.yaml, front.yaml_len, front.yaml_line, &root, &problem) == 0 &&
		root.kind == YAML_KIND_MAPPING;
	struct doc doc = { .tool = tool, .root = is_placed ? &root : NULL, .faults = faults };
	check_name(&doc, dir_name);
	check_version(&doc);
	check_description(&doc);
	check_inputs(&doc);
	checkbody_run(tool, body_line(&front, bytes, len), has_secrets, faults);
}
