#include "core/tools/checkreport.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "core/base/auto.h"
#include "core/tools/checkcodes.h"
#include "core/tools/xjson.h"

#define URI_SIZE_MAX (64 * 1024)
#define SARIF_SCHEMA                                                                               \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0."   \
	"json"

int checkreport_parse_format(const char *name, enum checkreport_format *format)
{
	static const char *const names[] = { [CHECKREPORT_TEXT] = "text",
		[CHECKREPORT_JSON] = "json",
		[CHECKREPORT_SARIF] = "sarif",
		[CHECKREPORT_GITHUB] = "github" };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0) {
			*format = (enum checkreport_format)i;
			return 0;
		}
	return -EINVAL;
}

static const char *level_name(enum fault_level level)
{
	return level == FAULT_ERROR ? "error" : "warning";
}

static void set_number(json_t *object, const char *key, size_t number)
{
	xjson_set(object, key, number ? json_integer((json_int_t)number) : json_null());
}

static void put_document(json_t *document, struct buf *out)
{
	auto_free char *text = json_dumps(document, JSON_INDENT(2));
	if (text)
		buf_puts(out, text);
	else
		out->failed = -ENOMEM;
	buf_putc(out, '\n');
}

/* ---- JSON */

static json_t *json_of(const struct fault *fault)
{
	const struct checkcode *code = checkcodes_find(fault->code);
	json_t *json = xjson_object();
	xjson_set(json, "file", xjson_string(fault->file ? fault->file : ""));
	set_number(json, "line", fault->line);
	set_number(json, "column", fault->column);
	xjson_set(json, "level", xjson_string(level_name(fault->level)));
	xjson_set(json, "code", xjson_string(fault->code));
	xjson_set(json, "rules", xjson_string(code ? code->rules : ""));
	xjson_set(json, "text", xjson_string(fault->text));
	return json;
}

static void render_json(const struct check_report *report, struct buf *out)
{
	auto_json json_t *document = xjson_object();
	json_t *findings = xjson_array();
	for (size_t i = 0; i < report->faults.count; i++)
		xjson_append(findings, json_of(&report->faults.items[i]));
	xjson_set(document, "tools", json_integer((json_int_t)report->tools));
	xjson_set(document, "errors", json_integer((json_int_t)check_count(report, FAULT_ERROR)));
	xjson_set(
		document, "warnings", json_integer((json_int_t)check_count(report, FAULT_WARNING)));
	xjson_set(document, "findings", findings);
	put_document(document, out);
}

/* ---- SARIF */

/* A path as a URI reference. */
static void put_uri(struct buf *out, const char *path)
{
	if (*path == '/')
		buf_puts(out, "file://");
	for (; *path; path++) {
		unsigned char byte = (unsigned char)*path;
		if (isalnum(byte) || strchr("-._~/", byte))
			buf_putc(out, *path);
		else
			buf_printf(out, "%%%02X", (unsigned)byte);
	}
}

static json_t *text_object(const char *text)
{
	json_t *object = xjson_object();
	xjson_set(object, "text", xjson_string(text));
	return object;
}

static json_t *sarif_rules(void)
{
	size_t count;
	const struct checkcode *codes = checkcodes_all(&count);
	json_t *rules = xjson_array();
	for (size_t i = 0; i < count; i++) {
		json_t *rule = xjson_object(), *level = xjson_object();
		xjson_set(level, "level", xjson_string(level_name(codes[i].level)));
		xjson_set(rule, "id", xjson_string(codes[i].code));
		xjson_set(rule, "shortDescription", text_object(codes[i].summary));
		xjson_set(rule, "defaultConfiguration", level);
		xjson_append(rules, rule);
	}
	return rules;
}

static json_t *sarif_location(const struct fault *fault)
{
	auto_buf struct buf uri = BUF_INIT(URI_SIZE_MAX);
	put_uri(&uri, fault->file ? fault->file : "");
	json_t *artifact = xjson_object(), *physical = xjson_object(), *location = xjson_object();
	xjson_set(artifact, "uri", xjson_string(buf_str(&uri)));
	xjson_set(physical, "artifactLocation", artifact);
	if (fault->line) {
		json_t *region = xjson_object();
		set_number(region, "startLine", fault->line);
		if (fault->column)
			set_number(region, "startColumn", fault->column);
		xjson_set(physical, "region", region);
	}
	xjson_set(location, "physicalLocation", physical);
	return location;
}

static json_t *sarif_result(const struct fault *fault)
{
	json_t *result = xjson_object(), *locations = xjson_array();
	xjson_append(locations, sarif_location(fault));
	xjson_set(result, "ruleId", xjson_string(fault->code));
	xjson_set(result, "level", xjson_string(level_name(fault->level)));
	xjson_set(result, "message", text_object(fault->text));
	xjson_set(result, "locations", locations);
	return result;
}

static void render_sarif(const struct check_report *report, struct buf *out)
{
	auto_json json_t *document = xjson_object();
	json_t *driver = xjson_object(), *tool = xjson_object(), *run = xjson_object();
	json_t *runs = xjson_array(), *results = xjson_array();
	xjson_set(driver, "name", xjson_string("pegfs check"));
	xjson_set(driver, "version", xjson_string(PEGFS_VERSION));
	xjson_set(driver, "rules", sarif_rules());
	xjson_set(tool, "driver", driver);
	for (size_t i = 0; i < report->faults.count; i++)
		xjson_append(results, sarif_result(&report->faults.items[i]));
	xjson_set(run, "tool", tool);
	xjson_set(run, "columnKind", xjson_string("unicodeCodePoints"));
	xjson_set(run, "results", results);
	xjson_append(runs, run);
	xjson_set(document, "$schema", xjson_string(SARIF_SCHEMA));
	xjson_set(document, "version", xjson_string("2.1.0"));
	xjson_set(document, "runs", runs);
	put_document(document, out);
}

/* ---- GitHub */

/* What would end the value, or the command, is written as %XX. */
static void put_escaped(struct buf *out, const char *text, const char *special)
{
	for (; *text; text++) {
		if (strchr(special, *text))
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
		else
			buf_putc(out, *text);
	}
}

static void render_github(const struct check_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->faults.count; i++) {
		const struct fault *fault = &report->faults.items[i];
		buf_printf(out, "::%s file=", level_name(fault->level));
		put_escaped(out, fault->file ? fault->file : "", "%\r\n:,");
		if (fault->line)
			buf_printf(out, ",line=%zu", fault->line);
		if (fault->line && fault->column)
			buf_printf(out, ",col=%zu", fault->column);
		buf_printf(out, ",title=%s::", fault->code);
		put_escaped(out, fault->text, "%\r\n");
		buf_putc(out, '\n');
	}
}

void checkreport_render(
	const struct check_report *report, enum checkreport_format format, struct buf *out)
{
	switch (format) {
	case CHECKREPORT_TEXT:
		faults_render(&report->faults, out);
		return;
	case CHECKREPORT_JSON:
		render_json(report, out);
		return;
	case CHECKREPORT_SARIF:
		render_sarif(report, out);
		return;
	case CHECKREPORT_GITHUB:
		render_github(report, out);
		return;
	}
}
