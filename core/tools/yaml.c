#include "core/tools/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/base/buf.h"
#include "core/base/utf8.h"
#include "core/base/xalloc.h"
#include "core/tools/standin.h"

/*
 * Names beginning with yaml_ belong to libyaml too, also some that its header does not show
 * (yaml_free, yaml_strdup): defining one of those here would replace it inside libyaml.
 */

struct builder {
	yaml_parser_t parser;
	const char *text; /* borrowed; what the parser reads */
	size_t len;
	size_t offset; /* bytes of text up to the character number `index` */
	size_t index;
	size_t first_line;
	bool has_stand_ins;
	struct yaml_node open[YAML_DEPTH_MAX]; /* owned; collections that have begun */
	size_t depth;
	size_t documents;
	struct yaml_node *root;
	struct yaml_problem *problem;
};

__attribute__((format(printf, 4, 5))) static int refuse(
	struct builder *builder, const char *code, yaml_mark_t mark, const char *format, ...)
{
	struct yaml_problem *problem = builder->problem;
	problem->code = code;
	problem->line = builder->first_line + mark.line;
	problem->column = mark.column + 1;
	va_list args;
	va_start(args, format);
	vsnprintf(problem->text, sizeof(problem->text), format, args);
	va_end(args);
	utf8_trim_partial(problem->text);
	return -EINVAL;
}

/* ---- what libyaml says, in words that help */

static const struct {
	const char *problem; /* as libyaml puts it */
	const char *text;
} wordings[] = {
	{ "mapping values are not allowed in this context",
		"': ' within a value that is not in quotes; put the whole value in quotes" },
	{ "found character that cannot start any token",
		"a character that cannot begin a value (a tab for indentation, '@', '`', '%'); "
		"indent with spaces, put such values in quotes" },
	{ "could not find expected ':'", "a line that is no 'key: value' pair" },
	{ "did not find expected key",
		"text where the next key was expected; is the indentation right, or a value not "
		"in quotes?" },
	{ "did not find expected '-' indicator",
		"text where '-' was expected; are the items of this list indented alike?" },
	{ "block sequence entries are not allowed in this context",
		"'- ' begins a list in the middle of a line; put the value in quotes" },
	{ "found unexpected end of stream", "a quote that is not closed" },
	{ "found unknown escape character",
		"an unknown escape after '\\' within double quotes; use single quotes" },
	{ "did not find expected ',' or ']'",
		"a list [...] that is not closed or continued by ','" },
	{ "did not find expected ',' or '}'",
		"a mapping {...} that is not closed or continued by ','" },
	{ "did not find expected alphabetic or numeric character",
		"'*' or '&' begins a value; put it in quotes" },
	{ "did not find expected comment or line break",
		"text behind '|' or '>'; put the value in quotes" },
	{ "did not find expected <document start>",
		"text before the first 'key: value' pair, or after the end of it all" },
};

static int refuse_syntax(struct builder *builder)
{
	const yaml_parser_t *parser = &builder->parser;
	const char *said = parser->problem ? parser->problem : "no reason given";
	if (parser->error == YAML_MEMORY_ERROR) {
		refuse(builder, "yaml-syntax", parser->mark, "out of memory");
		return -ENOMEM;
	}
	if (parser->error == YAML_READER_ERROR)
		return refuse(builder, "yaml-syntax", parser->mark, "invalid YAML: %s (byte %zu)",
			said, parser->problem_offset);
	for (size_t i = 0; i < sizeof(wordings) / sizeof(*wordings); i++)
		if (strcmp(said, wordings[i].problem) == 0)
			said = wordings[i].text;
	char begun[64] = "";
	if (parser->context && parser->context_mark.line != parser->problem_mark.line)
		snprintf(begun, sizeof(begun), " (it began in line %zu)",
			builder->first_line + parser->context_mark.line);
	return refuse(
		builder, "yaml-syntax", parser->problem_mark, "invalid YAML: %s%s", said, begun);
}

/* ---- events -> nodes */

/* Whether a comment follows on the line of the mark. Marks come in ascending order. */
static bool comment_follows(struct builder *builder, yaml_mark_t end)
{
	const char *text = builder->text;
	while (builder->index < end.index && builder->offset < builder->len) {
		builder->offset++;
		while (builder->offset < builder->len && (text[builder->offset] & 0xc0) == 0x80)
			builder->offset++;
		builder->index++;
	}
	size_t at = builder->offset;
	while (at < builder->len && (text[at] == ' ' || text[at] == '\t'))
		at++;
	return at > builder->offset && at < builder->len && text[at] == '#';
}

static bool expects_key(const struct builder *builder)
{
	if (builder->depth == 0)
		return false;
	const struct yaml_node *parent = &builder->open[builder->depth - 1];
	return parent->kind == YAML_KIND_MAPPING && parent->count % 2 == 0;
}

/* The node becomes its parent's, or the root. */
static void attach(struct builder *builder, struct yaml_node node)
{
	if (builder->depth == 0) {
		yaml_tree_release(builder->root);
		*builder->root = node;
		return;
	}
	struct yaml_node *parent = &builder->open[builder->depth - 1];
	parent->items =
		xgrow(parent->items, parent->count, &parent->capacity, sizeof(*parent->items));
	parent->items[parent->count++] = node;
}

static int check_properties(struct builder *builder, const yaml_event_t *event,
	const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		return refuse(builder, "yaml-anchor", event->start_mark,
			"'&%.40s' is a YAML anchor, which is not supported; put the value in "
			"quotes",
			(const char *)anchor);
	if (tag)
		return refuse(builder, "yaml-tag", event->start_mark,
			"'%.40s' is a YAML tag, which is not supported; put the value in quotes",
			(const char *)tag);
	return 0;
}

static int on_scalar(struct builder *builder, const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	size_t len = event->data.scalar.length;
	int result =
		check_properties(builder, event, event->data.scalar.anchor, event->data.scalar.tag);
	if (result < 0)
		return result;
	if (memchr(value, '\0', len))
		return refuse(builder, "yaml-nul", event->start_mark,
			"a value holds the character U+0000, which no value may; remove it");
	struct yaml_node node = { .kind = YAML_KIND_SCALAR,
		.line = builder->first_line + event->start_mark.line,
		.column = event->start_mark.column + 1,
		.plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
		.text = xstrndup(value, len) };
	node.cut = node.plain && comment_follows(builder, event->end_mark);
	if (builder->has_stand_ins)
		standin_take_out(node.text);
	attach(builder, node);
	return 0;
}

static int begin(struct builder *builder, const yaml_event_t *event, enum yaml_kind kind)
{
	bool is_mapping = kind == YAML_KIND_MAPPING;
	int result = is_mapping
			     ? check_properties(builder, event, event->data.mapping_start.anchor,
				       event->data.mapping_start.tag)
			     : check_properties(builder, event, event->data.sequence_start.anchor,
				       event->data.sequence_start.tag);
	if (result < 0)
		return result;
	if (expects_key(builder))
		return refuse(builder, "yaml-key", event->start_mark,
			"a %s as a key; a key must be plain text (put '{{ ... }}' and '[...]' in "
			"quotes)",
			is_mapping ? "mapping" : "list");
	if (builder->depth == YAML_DEPTH_MAX)
		return refuse(builder, "yaml-depth", event->start_mark,
			"nested deeper than %d levels; flatten it", YAML_DEPTH_MAX);
	builder->open[builder->depth++] = (struct yaml_node){ .kind = kind,
		.line = builder->first_line + event->start_mark.line,
		.column = event->start_mark.column + 1 };
	return 0;
}

static int compare_keys(const void *left, const void *right)
{
	const struct yaml_node *a = *(const struct yaml_node *const *)left;
	const struct yaml_node *b = *(const struct yaml_node *const *)right;
	int order = strcmp(a->text, b->text);
	if (order != 0)
		return order;
	/* Equal ones in the order of the text: by address, they are in one array. */
	return a < b ? -1 : a > b;
}

static int refuse_equal_keys(struct builder *builder, const struct yaml_node *mapping)
{
	size_t count = mapping->count / 2;
	const struct yaml_node **keys = xcalloc(count, sizeof(const struct yaml_node *));
	for (size_t i = 0; i < count; i++)
		keys[i] = &mapping->items[i * 2];
	qsort(keys, count, sizeof(*keys), compare_keys);
	int result = 0;
	for (size_t i = 1; i < count && result == 0; i++) {
		const struct yaml_node *first = keys[i - 1], *second = keys[i];
		if (strcmp(first->text, second->text) != 0)
			continue;
		yaml_mark_t mark = { .line = second->line - builder->first_line,
			.column = second->column - 1 };
		result = refuse(builder, "yaml-duplicate-key", mark,
			"the key '%.80s' is here and in line %zu; remove one of them", second->text,
			first->line);
	}
	free(keys);
	return result;
}

static int end(struct builder *builder)
{
	struct yaml_node node = builder->open[--builder->depth];
	int result = node.kind == YAML_KIND_MAPPING ? refuse_equal_keys(builder, &node) : 0;
	attach(builder, node);
	return result;
}

static int on_document(struct builder *builder, const yaml_event_t *event)
{
	if (event->data.document_start.version_directive ||
		event->data.document_start.tag_directives.start !=
			event->data.document_start.tag_directives.end)
		return refuse(builder, "yaml-directive", event->start_mark,
			"a YAML directive (%%YAML, %%TAG), which is not supported; remove the line");
	if (++builder->documents > 1)
		return refuse(builder, "yaml-documents", event->start_mark,
			"a second YAML document begins here; there can be only one");
	return 0;
}

static int on_event(struct builder *builder, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		return on_document(builder, event);
	case YAML_ALIAS_EVENT:
		return refuse(builder, "yaml-alias", event->start_mark,
			"'*%.40s' is a YAML alias, which is not supported; put the value in quotes",
			(const char *)event->data.alias.anchor);
	case YAML_SCALAR_EVENT:
		return on_scalar(builder, event);
	case YAML_SEQUENCE_START_EVENT:
		return begin(builder, event, YAML_KIND_SEQUENCE);
	case YAML_MAPPING_START_EVENT:
		return begin(builder, event, YAML_KIND_MAPPING);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return end(builder);
	default:
		return 0;
	}
}

static int build(struct builder *builder)
{
	int result = 0;
	bool at_end = false;
	while (result == 0 && !at_end) {
		yaml_event_t event;
		if (!yaml_parser_parse(&builder->parser, &event))
			return refuse_syntax(builder);
		result = on_event(builder, &event);
		at_end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	return result;
}

int yaml_tree_load(const char *text, size_t len, size_t first_line, struct yaml_node *root,
	struct yaml_problem *problem)
{
	*root = (struct yaml_node){ .kind = YAML_KIND_SCALAR,
		.line = first_line,
		.column = 1,
		.plain = true,
		.text = xstrdup("") };
	struct builder builder = {
		.text = text, .len = len, .first_line = first_line, .root = root, .problem = problem
	};
	if (len > YAML_SIZE_MAX) {
		refuse(&builder, "yaml-syntax", (yaml_mark_t){ .line = 0 },
			"more than %d KiB of YAML; move text into the body", YAML_SIZE_MAX / 1024);
		return -EFBIG;
	}
	auto_buf struct buf replaced = BUF_INIT(YAML_SIZE_MAX * 2);
	if (standin_are_needed(text, len)) {
		standin_put(text, len, &replaced);
		builder.has_stand_ins = true;
		builder.text = buf_str(&replaced);
		builder.len = replaced.len;
	}
	if (replaced.failed || !yaml_parser_initialize(&builder.parser)) {
		refuse(&builder, "yaml-syntax", (yaml_mark_t){ .line = 0 }, "out of memory");
		return -ENOMEM;
	}
	yaml_parser_set_encoding(&builder.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
		&builder.parser, (const unsigned char *)builder.text, builder.len);
	int result = build(&builder);
	while (builder.depth > 0)
		yaml_tree_release(&builder.open[--builder.depth]);
	yaml_parser_delete(&builder.parser);
	return result;
}

/* Recursion as deep as the tree: YAML_DEPTH_MAX. */
void yaml_tree_release(struct yaml_node *root)
{
	for (size_t i = 0; i < root->count; i++)
		yaml_tree_release(&root->items[i]);
	free(root->items);
	free(root->text);
	*root = (struct yaml_node)YAML_NODE_INIT;
}

const struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key)
{
	if (mapping->kind != YAML_KIND_MAPPING)
		return NULL;
	for (size_t i = 0; i + 1 < mapping->count; i += 2)
		if (strcmp(mapping->items[i].text, key) == 0)
			return &mapping->items[i + 1];
	return NULL;
}
