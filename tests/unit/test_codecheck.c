#include "core/tools/codecheck.h"
#include "core/tools/manifest.h"
#include "tests/unit/scratch.h"

static struct tool *read_tool(const char *inputs)
{
	struct tool *tool = tool_new();
	auto_faults struct faults faults = FAULTS_INIT;
	auto_free char *text =
		xasprintf("---\nname: t\ndescription: d\nversion: 1\n%s---\n", inputs);
	assert_int_equal(manifest_parse(text, strlen(text), tool, &faults), 0);
	return tool;
}

/* What is found, as "LINE:COLUMN:CODE ...". */
static char *findings(const char *source, bool is_typescript, const struct tool *tool)
{
	auto_faults struct faults faults = FAULTS_INIT;
	struct buf out = BUF_INIT(1 << 20);
	codecheck_javascript(source, strlen(source), is_typescript, tool, &faults);
	for (size_t i = 0; i < faults.count; i++)
		buf_printf(&out, "%s%zu:%zu:%s", i ? " " : "", faults.items[i].line,
			faults.items[i].column, faults.items[i].code);
	return buf_take(&out);
}

static void assert_found(const char *source, const char *wanted)
{
	auto_free char *found = findings(source, true, NULL);
	if (strcmp(found, wanted) != 0)
		fail_msg("%s\nexpected %s, but got %s", source, wanted, found);
}

static void assert_params(const char *inputs, const char *source, const char *wanted)
{
	auto_tool struct tool *tool = read_tool(inputs);
	auto_free char *found = findings(source, true, tool);
	if (strcmp(found, wanted) != 0)
		fail_msg("%s\nexpected %s, but got %s", source, wanted, found);
}

/* A module whose execute has this body. */
static void assert_body(const char *body, const char *wanted)
{
	auto_free char *source =
		xasprintf("export async function execute(_id: string, params: any): "
			  "Promise<{ content: Array<{ type: string; text: string }> }> {\n%s\n}\n",
			body);
	assert_found(source, wanted);
}

/* A module with these lines before a good execute. */
static void assert_lines(const char *lines, const char *wanted)
{
	auto_free char *source = xasprintf("%s\nexport async function execute() {}\n", lines);
	assert_found(source, wanted);
}

/* ---- exports */

static void r37_execute_may_be_exported_in_any_way(void **state)
{
	(void)state;
	assert_found("export async function execute(_id, params) {}", "");
	assert_found(
		"export const execute = async (_id: string, p: P): Promise<R> => ok(p.x);", "");
	assert_found(
		"export const execute: Execute = async function (_id, p) { return ok('') }", "");
	assert_found("async function execute(_id, p) {}\nexport { execute };", "");
	assert_found("async function run(_id, p) {}\nexport { run as execute };", "");
	assert_found("export { execute } from 'node:x';", "");
	assert_found("export * from 'node:x';", "");
	assert_found("export const { execute } = make();", "");
	assert_found("export let execute = async id => {};", "");
	assert_found("export async function execute(a: string): Promise<void>;\n"
		     "export async function execute(a: unknown) {}",
		"");
}

static void r37_an_export_of_another_name_is_none(void **state)
{
	(void)state;
	assert_found("", "1:1:no-execute");
	assert_found("// export async function execute() {}", "1:38:no-execute");
	assert_found("'export async function execute() {}'", "1:1:no-execute");
	assert_found("async function execute() {}", "1:16:no-execute");
	assert_found("export async function run() {}", "1:23:no-execute");
	assert_found("export type execute = string;", "1:1:no-execute");
	assert_found("function a() { async function execute() {} }", "1:1:no-execute");
	assert_found("export { execute as run };", "1:21:no-execute");
}

static void r100_to_r102_what_is_there_instead_is_named(void **state)
{
	(void)state;
	assert_found("export class MyTool { async run() {} }", "1:8:class-export");
	assert_found("export default class { async execute() {} }", "1:8:class-export");
	assert_found("export abstract class A {}", "1:17:class-export");
	assert_found("export default async function execute() {}", "1:31:no-execute");
	assert_found("export default async () => {}", "1:8:default-export");
	assert_found("module.exports = { execute };", "1:1:commonjs-export");
	assert_found("async function execute() {}\nmodule.exports = { execute };",
		"2:1:commonjs-export");
	assert_found("exports.execute = async () => {};", "1:1:commonjs-export");
	assert_found("if (require.main === module) main();", "1:5:cli-entry");
	assert_found("console.error(process.argv[2]);", "1:15:cli-entry");
}

static void r101_r102_beside_execute_they_are_warnings(void **state)
{
	(void)state;
	assert_lines("if (import.meta.main) {}", "1:5:cli-entry");
	assert_lines("module.exports = {};", "1:1:commonjs-export");
	assert_lines("const exports = read(); use(exports.length);", "");
	assert_lines("export default {};", "");
	assert_lines("class Problem extends Error {}", "");
}

/* ---- execute itself */

static void r39_r40_the_parameters_come_second(void **state)
{
	(void)state;
	assert_found("export async function execute(params) {}", "1:31:execute-arguments");
	assert_found("export async function execute({ name }) {}", "1:31:execute-arguments");
	assert_found(
		"export const execute = async (args: Args) => ok('');", "1:31:execute-arguments");
	assert_found("export async function execute() {}", "");
}

static void r45_execute_is_async(void **state)
{
	(void)state;
	assert_found("export function execute(_id, p) { return ok(''); }", "1:17:sync-execute");
	assert_found("export const execute = (_id, p) => ok('');", "1:14:sync-execute");
}

static void r54_throw_is_found_where_nothing_catches_it(void **state)
{
	(void)state;
	assert_body("throw new Error('x');", "2:1:throw-in-execute");
	assert_body("try { throw 1 } catch { return err('') }", "");
	assert_body("try { f() } catch (e) { throw e }", "2:25:throw-in-execute");
	assert_body("try { f() } finally { g() }", "2:7:unguarded-execute");
	assert_body(
		"try { throw 1 } finally { g() }", "2:7:throw-in-execute 2:27:unguarded-execute");
	assert_body("try { try { f() } catch (e) { throw e } } catch { }", "");
	assert_body("if (a) { throw 1 }", "2:10:throw-in-execute");
	assert_body("const f = () => { throw 1 };", "");
	assert_body("function f(): { a: 1 } { throw 1 }", "");
	assert_body("class A { f() { throw 1 } }", "");
	assert_body("const o = { f() { throw 1 } };", "");
	assert_body("iterator.throw(1)", "2:10:unguarded-execute");
	assert_body("for await (const x of y) { throw 1 }",
		"2:28:throw-in-execute 2:5:unguarded-execute");
}

static void r53_work_outside_of_any_try_is_found_once(void **state)
{
	(void)state;
	assert_body("const a = await f();\nawait g();", "2:11:unguarded-execute");
	assert_body("return ok(readFileSync(params.path))", "2:11:unguarded-execute");
	assert_body("const { a } = params;\ntry { await f() } catch (e) { return err('') }", "");
	assert_body("return { content: [{ type: 'text', text: `Hello, ${params.name}!` }] };", "");
	assert_body(
		"if (!params.a) return err('a is required');\nreturn ok(String(params.a));", "");
	assert_body("onUpdate?.(ok(''));", "");
}

/* ---- what the code uses */

static void r105_bun_is_found_in_code_alone(void **state)
{
	(void)state;
	assert_lines("Bun.file('x')", "1:1:bun-api");
	assert_lines("const s = await Bun.sleep(1), t = Bun;", "1:17:bun-api 1:35:bun-api");
	assert_lines("import { Database } from 'bun:sqlite';", "1:26:bun-api");
	assert_lines("import bun from 'bun';", "1:17:bun-api");
	assert_lines("// Bun.file\n/* Bun */ const s = 'Bun' + `Bun`, r = /Bun/;", "");
	assert_lines("const o = { Bun: 1 }; o.Bun; o?.Bun;", "");
	assert_lines("if (typeof Bun === 'undefined') {}", "");
	assert_lines("`${Bun.version}`", "1:4:bun-api");
}

static void r103_printing_is_found(void **state)
{
	(void)state;
	assert_lines("console.log('x')", "1:1:console-output");
	assert_lines("console.error('x'); console.warn('y');", "");
	assert_lines("process.stdout.write('x')", "1:1:console-output");
	assert_lines("my.console.log('x')", "");
	assert_lines("console.log('x'); // pegfs-ignore: console-output", "");
	assert_lines("// pegfs-ignore: console-output\nconsole.log('x');", "");
	assert_lines("// pegfs-ignore: bun-api\nconsole.log('x');", "2:1:console-output");
	assert_lines("// pegfs-ignore: console-output\n\nconsole.log('x');", "3:1:console-output");
}

static void r63_imports_are_judged_by_what_they_name(void **state)
{
	(void)state;
	assert_lines("import fs from 'node:fs';", "");
	assert_lines("import { a, b as c } from \"node:fs/promises\";", "");
	assert_lines("import * as fs from 'fs';", "1:21:builtin-prefix");
	assert_lines("import fs, { a } from 'fs/promises';", "1:23:builtin-prefix");
	assert_lines("import 'axios';", "1:8:foreign-import");
	assert_lines("const x = await import('axios');", "1:24:foreign-import");
	assert_lines("const x = require('axios');", "1:19:foreign-import");
	assert_lines("const x = await import(name);", "");
	assert_lines("import { x } from './x.js';", "1:19:relative-import");
	assert_lines("export { x } from '@scope/x';", "1:19:foreign-import");
	assert_lines("import type { X } from 'some-types';", "");
	assert_lines("import type from 'axios';", "1:18:foreign-import");
	assert_lines("export const from = 'x';", "");
	assert_lines("const s = \"import x from 'axios'\";", "");
	assert_lines("loader.import('axios'); o.require('x');", "");
	assert_lines("import.meta.url;", "");
}

static void r55_r84_exits_and_own_paths_are_found(void **state)
{
	(void)state;
	assert_lines("process.exit(1);", "1:1:process-exit");
	assert_lines("const p = '/officer/tools/x/bin';", "1:11:own-path");
	assert_lines("const p = `/officer/user/tools/${x}`;", "1:11:own-path");
	assert_lines("const p = '/officer/user/x.json'; // /officer/tools/x", "");
}

/* ---- TypeScript */

static void a20_types_that_are_code_are_found(void **state)
{
	(void)state;
	assert_lines("enum A { B }", "1:1:non-erasable");
	assert_lines("const enum A { B }", "1:7:non-erasable");
	assert_lines("export namespace A { }", "1:8:non-erasable");
	assert_lines("import fs = require('node:fs');", "1:1:non-erasable");
	assert_lines(
		"class A { constructor(private b: string, c: number) {} }", "1:23:non-erasable");
	assert_lines("@decorated class A {}", "1:1:non-erasable");
	assert_lines("const a = <string>b;", "1:11:non-erasable");
	assert_lines("const a = <A<B>>(b);", "1:11:non-erasable");
}

static void a20_types_that_are_erased_are_not(void **state)
{
	(void)state;
	assert_lines("declare enum A { B }\ndeclare namespace C {}\ndeclare const enum D {}", "");
	assert_lines("const f = <T>(a: T) => a; const g = async <T,>(a: T): Promise<T> => a;", "");
	assert_lines("type F = <T>(a: T) => void; interface I { <T>(a: T): void }", "");
	assert_lines("if (a < b && c > (d)) {} const x = a<b>(c);", "");
	assert_lines("class A<T> { private b: string; readonly c = 1; constructor(d: T) {} }", "");
	assert_lines("const o = { enum: 1, namespace: 2 }; o.enum;", "");
	assert_lines("const m = new Map<string, Array<{ a: number }>>();", "");
	assert_lines("let namespace = 1; const module = x as Y; const a = b satisfies C;", "");
	assert_lines("function isA(x: unknown): x is A { return true }", "");
	auto_free char *found =
		findings("export async function execute() {}\nenum();", false, NULL);
	assert_string_equal(found, "");
}

/* ---- parameters */

#define INPUT(name, type) "  " name ":\n    type: " type "\n    description: d\n"
#define OPTIONAL "    optional: true\n"
#define EXECUTE "export async function execute(_id: string, params: Params) {}\n"

static void r33_params_are_compared_with_the_inputs(void **state)
{
	(void)state;
	static const char inputs[] = "inputs:\n" INPUT("a", "string") INPUT("b", "number") OPTIONAL;
	assert_params(inputs, "type Params = { a: string; b?: number };\n" EXECUTE, "");
	assert_params(inputs, "interface Params { a: string, 'b'?: number }\n" EXECUTE, "");
	assert_params(inputs,
		"type Params = {\n  readonly a: 'x' | 'y'\n  b?: number | undefined\n}\n" EXECUTE,
		"");
	assert_params(inputs, "type Params = { a: string };\n" EXECUTE, "1:6:params-missing");
	assert_params(inputs,
		"type Params = { a: string; b?: number; c: { d: string } };\n" EXECUTE,
		"1:40:params-extra");
	assert_params(inputs, "type Params = { a: string; b: number };\n" EXECUTE,
		"1:28:params-optional");
	assert_params(
		inputs, "type Params = { a: number; b?: number };\n" EXECUTE, "1:20:params-type");
	assert_params(inputs, "export async function execute(_id: string, { a }: { a: string }) {}",
		"1:44:params-missing");
}

static void r33_a_type_that_says_less_is_not_compared(void **state)
{
	(void)state;
	static const char inputs[] = "inputs:\n" INPUT("a", "string");
	assert_params(inputs, "type Params = { [key: string]: unknown };\n" EXECUTE, "");
	assert_params(inputs, "type Params = Base & { b: string };\n" EXECUTE, "");
	assert_params(inputs, "type Params = { a: string } & Other;\n" EXECUTE, "");
	assert_params(inputs, "type Params = {} & Other;\n" EXECUTE, "");
	assert_params(inputs, "type Params = Record<string, unknown>;\n" EXECUTE, "");
	assert_params(inputs,
		"export async function execute(_id: string, params: Record<string, unknown>) {}",
		"");
	assert_params(inputs, "export async function execute(_id, params) {}", "");
}

static void r33_types_of_members_are_passed_over_whole(void **state)
{
	(void)state;
	static const char inputs[] = "inputs:\n" INPUT("a", "string") INPUT("b", "string");
	assert_params(inputs,
		"type Params = {\n  a: Array<{ x: string; y: number }> | string[];\n"
		"  /** What; it: is. */\n  b: (x: string, y: number) => void;\n};\n" EXECUTE,
		"");
}

/* ---- the whole */

static void r37_code_that_cannot_be_read_is_one_finding(void **state)
{
	(void)state;
	assert_found("export async function execute() {\n  console.log('x;\n}", "2:15:code-syntax");
}

static void findings_of_one_file_are_limited(void **state)
{
	(void)state;
	auto_buf struct buf source = BUF_INIT(1 << 20);
	for (size_t i = 0; i < 3 * CODECHECK_FAULTS_MAX; i++)
		buf_puts(&source, "console.log(1);\n");
	auto_faults struct faults faults = FAULTS_INIT;
	codecheck_javascript(buf_str(&source), source.len, true, NULL, &faults);
	assert_int_equal(faults.count, CODECHECK_FAULTS_MAX);
}

static void python_is_looked_at_by_lines(void **state)
{
	(void)state;
	static const struct {
		const char *source, *wanted;
	} cases[] = {
		{ "def execute(id, params):\n    return 'x'\n", "" },
		{ "async def execute(id, params):\n    pass", "" },
		{ "from other import execute\n", "" },
		{ "def run():\n    pass\n", "no-execute" },
		{ "'''\ndef execute():\n'''\n", "no-execute" },
		{ "class Tool:\n    def execute(self):\n        pass\n", "no-execute" },
		{ "def execute(i, p):\n    print(p)\n", "console-output" },
		{ "def execute(i, p):\n    print(p, file=sys.stderr)\n", "" },
		{ "def execute(i, p):\n    print(p)  # pegfs-ignore: console-output\n", "" },
		{ "def execute(i, p):\n    \"\"\"One line.\"\"\"\n    print(p)\n",
			"console-output" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		auto_faults struct faults faults = FAULTS_INIT;
		codecheck_python(cases[i].source, strlen(cases[i].source), &faults);
		assert_string_equal(faults.count ? faults.items[0].code : "", cases[i].wanted);
	}
}

/* No prefix of a rich program makes any rule read where nothing is. */
static void any_prefix_can_be_checked(void **state)
{
	(void)state;
	static const char source[] =
		"import a, { b } from 'node:fs'; export { x as execute, y } from './z'; @d class C { "
		"constructor(private p: string) {} }\nenum E { A } type Params = { a?: Array<{b: "
		"string}>; readonly 'c': <T>(x: T) => void }; export const execute = async (i: string, "
		"{ a }: Params, ...r): Promise<{ x: Array<T> }> => { try { throw 1 } catch { for await "
		"(const q of w) throw q } Bun.file(<X>(y)); module.exports = require.main; }";
	auto_tool struct tool *tool = read_tool("inputs:\n" INPUT("a", "number"));
	for (size_t from = 0; from < strlen(source); from += 7)
		for (size_t len = 0; len <= strlen(source) - from; len++) {
			auto_free char *copy = xcalloc(len ? len : 1, 1);
			memcpy(copy, source + from, len);
			auto_faults struct faults faults = FAULTS_INIT;
			codecheck_javascript(copy, len, true, tool, &faults);
			codecheck_python(copy, len, &faults);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r37_execute_may_be_exported_in_any_way),
		cmocka_unit_test(r37_an_export_of_another_name_is_none),
		cmocka_unit_test(r100_to_r102_what_is_there_instead_is_named),
		cmocka_unit_test(r101_r102_beside_execute_they_are_warnings),
		cmocka_unit_test(r39_r40_the_parameters_come_second),
		cmocka_unit_test(r45_execute_is_async),
		cmocka_unit_test(r54_throw_is_found_where_nothing_catches_it),
		cmocka_unit_test(r53_work_outside_of_any_try_is_found_once),
		cmocka_unit_test(r105_bun_is_found_in_code_alone),
		cmocka_unit_test(r103_printing_is_found),
		cmocka_unit_test(r63_imports_are_judged_by_what_they_name),
		cmocka_unit_test(r55_r84_exits_and_own_paths_are_found),
		cmocka_unit_test(a20_types_that_are_code_are_found),
		cmocka_unit_test(a20_types_that_are_erased_are_not),
		cmocka_unit_test(r33_params_are_compared_with_the_inputs),
		cmocka_unit_test(r33_a_type_that_says_less_is_not_compared),
		cmocka_unit_test(r33_types_of_members_are_passed_over_whole),
		cmocka_unit_test(r37_code_that_cannot_be_read_is_one_finding),
		cmocka_unit_test(findings_of_one_file_are_limited),
		cmocka_unit_test(python_is_looked_at_by_lines),
		cmocka_unit_test(any_prefix_can_be_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
