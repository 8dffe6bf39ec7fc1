#include "core/tools/codecheck.h"

#include <stdarg.h>
#include <string.h>

/* "pegfs-ignore: code, other-code" on the line of the fault, or on the one above. */
static bool is_silenced(const struct jstokens *tokens, const char *code, size_t line)
{
	for (size_t i = 0; i < tokens->remark_count; i++) {
		const struct jstoken_remark *remark = &tokens->remarks[i];
		bool is_near = remark->line == line || remark->line + 1 == line;
		if (is_near && memmem(remark->text, remark->len, code, strlen(code)))
			return true;
	}
	return false;
}

void codecheck_report(struct codecheck *check, enum fault_level level, const char *code,
	size_t index, const char *format, ...)
{
	const struct jstoken *token = &check->tokens->items[index];
	if (check->reported >= CODECHECK_FAULTS_MAX ||
		is_silenced(check->tokens, code, token->line))
		return;
	check->reported++;
	va_list args;
	va_start(args, format);
	faults_vadd(check->faults, level, code, token->line, jstokens_column(check->tokens, token),
		format, args);
	va_end(args);
}

bool codecheck_is_free(const struct codecheck *check, size_t index, const char *name)
{
	if (!codecheck_is(check, index, name))
		return false;
	bool is_member = index > 0 && (codecheck_is(check, index - 1, ".") ||
					      codecheck_is(check, index - 1, "?."));
	bool is_key = codecheck_is(check, index + 1, ":") && index > 0 &&
		      (codecheck_is(check, index - 1, "{") || codecheck_is(check, index - 1, ",") ||
			      codecheck_is(check, index - 1, ";"));
	return !is_member && !is_key;
}

void codecheck_javascript(const char *source, size_t len, bool is_typescript,
	const struct tool *tool, struct faults *faults)
{
	auto_jstokens struct jstokens tokens = JSTOKENS_INIT;
	struct jstoken_problem problem;
	if (jstokens_scan(source, len, &tokens, &problem) < 0) {
		faults_add(faults, FAULT_ERROR, "code-syntax", problem.line, problem.column,
			"%s; the tool cannot be loaded", problem.text);
		return;
	}
	struct jsmodule module;
	jsmodule_read(&tokens, &module);
	struct codecheck check = { .tokens = &tokens,
		.module = &module,
		.tool = tool,
		.is_typescript = is_typescript,
		.faults = faults };
	codecheck_exports(&check);
	codecheck_body(&check);
	codecheck_uses(&check);
	if (is_typescript) {
		codecheck_types(&check);
		codecheck_params(&check);
	}
}

bool codecheck_uses_secrets(const char *source, size_t len)
{
	static const char *const marks[] = { "_TOKEN", "_API_KEY", "_SECRET", "_PASSWORD",
		"OFFICER_RESOURCES" };
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (memmem(source, len, "process.env", strlen("process.env")) &&
			memmem(source, len, marks[i], strlen(marks[i])))
			return true;
	return false;
}
