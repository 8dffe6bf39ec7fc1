#include "core/tools/codecheck.h"

static const char advice[] = "write 'export async function execute(toolCallId, params) { ... }'";

static int length_of(const struct codecheck *check, size_t index)
{
	size_t len = check->tokens->items[index].len;
	return len < 64 ? (int)len : 64;
}

/* Nothing of that name is exported: tells what is there in its place. */
static void report_no_execute(struct codecheck *check)
{
	const struct jsmodule *module = check->module;
	if (module->unexported != JSTOKEN_NONE && module->commonjs == JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "no-execute", module->unexported,
			"'execute' is not exported; write 'export' before its declaration");
	else if (module->class_export != JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "class-export", module->class_export,
			"a class is no tool: nobody makes an object of it; %s", advice);
	else if (module->commonjs != JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "commonjs-export", module->commonjs,
			"CommonJS exports do not make a tool; %s", advice);
	else if (module->default_export != JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "default-export", module->default_export,
			"a default export alone is no tool; %s", advice);
	else if (module->cli != JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "cli-entry", module->cli,
			"a program for the command line is no tool: nobody gives it arguments; %s",
			advice);
	else if (module->exported_name != JSTOKEN_NONE)
		codecheck_report(check, FAULT_ERROR, "no-execute", module->exported_name,
			"'%.*s' is exported, but nothing of the name 'execute'; rename it",
			length_of(check, module->exported_name),
			check->tokens->items[module->exported_name].text);
	else
		codecheck_report(check, FAULT_ERROR, "no-execute", 0,
			"there is no named export 'execute'; %s", advice);
}

void codecheck_exports(struct codecheck *check)
{
	const struct jsmodule *module = check->module;
	bool may_have = module->execute != JSTOKEN_NONE || module->star_export != JSTOKEN_NONE;
	if (!may_have) {
		report_no_execute(check);
		return;
	}
	if (module->commonjs != JSTOKEN_NONE)
		codecheck_report(check, FAULT_WARNING, "commonjs-export", module->commonjs,
			"CommonJS exports beside 'export' are not seen by every loader; use "
			"'export' alone");
	if (module->cli != JSTOKEN_NONE)
		codecheck_report(check, FAULT_WARNING, "cli-entry", module->cli,
			"a tool has no command line; take what it needs from params");
	bool is_seen = module->function.params != JSTOKEN_NONE;
	if (is_seen && !module->function.is_async)
		codecheck_report(check, FAULT_WARNING, "sync-execute", module->execute,
			"'execute' is not async, so what it throws is no rejected promise; write "
			"'async' before it");
}
