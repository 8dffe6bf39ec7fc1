#include <string.h>

#include "core/tools/codecheck.h"

/* ---- modules */

static bool is_builtin(const char *name, size_t len)
{
	static const char *const names[] = { "assert", "async_hooks", "buffer", "child_process",
		"cluster", "console", "constants", "crypto", "dgram", "diagnostics_channel", "dns",
		"domain", "events", "fs", "http", "http2", "https", "inspector", "module", "net",
		"os", "path", "perf_hooks", "process", "punycode", "querystring", "readline",
		"repl", "stream", "string_decoder", "sys", "timers", "tls", "trace_events", "tty",
		"url", "util", "v8", "vm", "wasi", "worker_threads", "zlib" };
	const char *slash = memchr(name, '/', len); /* fs/promises */
	size_t head = slash ? (size_t)(slash - name) : len;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i]) == head && memcmp(names[i], name, head) == 0)
			return true;
	return false;
}

static bool begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* A module's name, a string token, that the code imports. */
static void check_specifier(struct codecheck *check, size_t index)
{
	const struct jstoken *token = &check->tokens->items[index];
	if (token->kind != JSTOKEN_STRING || token->len < 2)
		return;
	const char *name = token->text + 1;
	size_t len = token->len - 2;
	int shown = len < 60 ? (int)len : 60;
	if (begins(name, len, "node:"))
		return;
	if ((len == 3 && begins(name, len, "bun")) || begins(name, len, "bun:"))
		codecheck_report(check, FAULT_ERROR, "bun-api", index,
			"'%.*s' is part of Bun, and tools run in Node.js; use node:fs, "
			"node:child_process, fetch",
			shown, name);
	else if (is_builtin(name, len))
		codecheck_report(check, FAULT_WARNING, "builtin-prefix", index,
			"write 'node:%.*s', so that no package of that name can take its place",
			shown, name);
	else if (len > 0 && (*name == '.' || *name == '/'))
		codecheck_report(check, FAULT_WARNING, "relative-import", index,
			"'%.*s' is a file of its own; a tool is TOOL.md and one entry file, and "
			"scripts that it starts are in bin/",
			shown, name);
	else
		codecheck_report(check, FAULT_ERROR, "foreign-import", index,
			"'%.*s' is no part of Node.js, and nothing is installed where tools run; use "
			"the standard library (node:...)",
			shown, name);
}

/* import ... from 'x', import 'x', export ... from 'x'; what `import type` names is erased. */
static void check_import(struct codecheck *check, size_t index)
{
	const struct jstoken *items = check->tokens->items;
	bool is_type = codecheck_is(check, index + 1, "type") &&
		       !codecheck_is(check, index + 2, "from") &&
		       !codecheck_is(check, index + 2, ",");
	if (items[index + 1].kind == JSTOKEN_STRING) {
		check_specifier(check, index + 1);
		return;
	}
	for (size_t i = index + 1; i + 1 < check->tokens->count; i++) {
		if (codecheck_is(check, i, "from") && items[i + 1].kind == JSTOKEN_STRING) {
			if (!is_type)
				check_specifier(check, i + 1);
			return;
		}
		bool is_list = codecheck_is(check, i, "{") && items[i].match != JSTOKEN_NONE;
		bool is_clause = items[i].kind == JSTOKEN_WORD || codecheck_is(check, i, "*") ||
				 codecheck_is(check, i, ",") || is_list;
		/* What begins a declaration is no clause of an export. */
		if (!is_clause || codecheck_is(check, i, "function") ||
			codecheck_is(check, i, "const") || codecheck_is(check, i, "class"))
			return;
		if (is_list)
			i = items[i].match;
	}
}

static void check_modules(struct codecheck *check, size_t index)
{
	bool is_top = check->tokens->items[index].depth == 0;
	bool is_call = codecheck_is(check, index + 1, "(");
	bool is_member = index > 0 && codecheck_is(check, index - 1, ".");
	if (is_member)
		return;
	if (is_call &&
		(codecheck_is(check, index, "import") || codecheck_is(check, index, "require")))
		check_specifier(check, index + 2);
	else if (is_top &&
		 (codecheck_is(check, index, "import") || codecheck_is(check, index, "export")))
		check_import(check, index);
}

/* ---- names */

static void check_bun(struct codecheck *check, size_t index)
{
	if (!codecheck_is_free(check, index, "Bun") ||
		(index > 0 && codecheck_is(check, index - 1, "typeof")))
		return;
	codecheck_report(check, FAULT_ERROR, "bun-api", index,
		"'Bun' does not exist where tools run, which is Node.js; use node:fs, setTimeout, "
		"node:child_process");
}

static bool is_one_of(const struct codecheck *check, size_t index, const char *const *names)
{
	for (; *names; names++)
		if (codecheck_is(check, index, *names))
			return true;
	return false;
}

static void check_output(struct codecheck *check, size_t index)
{
	static const char *const printing[] = { "log", "info", "debug", "table", "dir", NULL };
	bool is_console = codecheck_is_free(check, index, "console") &&
			  codecheck_is(check, index + 1, ".") &&
			  is_one_of(check, index + 2, printing);
	bool is_stdout = codecheck_is_free(check, index, "process") &&
			 codecheck_is(check, index + 1, ".") &&
			 codecheck_is(check, index + 2, "stdout");
	if (is_console || is_stdout)
		codecheck_report(check, FAULT_WARNING, "console-output", index,
			"the agent never sees what is printed; return it as a text, or report it by "
			"onUpdate");
	bool is_exit =
		codecheck_is_free(check, index, "process") && codecheck_is(check, index + 1, ".") &&
		(codecheck_is(check, index + 2, "exit") || codecheck_is(check, index + 2, "abort"));
	if (is_exit)
		codecheck_report(check, FAULT_WARNING, "process-exit", index,
			"ending the process ends the call without a result; return one with "
			"isError: true");
}

static void check_path(struct codecheck *check, size_t index)
{
	static const char *const places[] = { "/officer/tools/", "/officer/user/tools/" };
	const struct jstoken *token = &check->tokens->items[index];
	if (token->kind != JSTOKEN_STRING && token->kind != JSTOKEN_TEMPLATE)
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (memmem(token->text, token->len, places[i], strlen(places[i])))
			codecheck_report(check, FAULT_WARNING, "own-path", index,
				"a tool may be found elsewhere; make paths to its own files from "
				"the directory of import.meta.url");
}

void codecheck_uses(struct codecheck *check)
{
	for (size_t i = 0; i + 1 < check->tokens->count; i++) {
		if (check->tokens->items[i].kind == JSTOKEN_WORD) {
			check_modules(check, i);
			check_bun(check, i);
			check_output(check, i);
		} else {
			check_path(check, i);
		}
	}
}
