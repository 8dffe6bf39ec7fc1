// The rules that a seed tool's two files must keep whatever the tool does. One test a rule, over
// all tools under seed/.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { ROOT, loadTool, toolDirs } from './fixtures/harness.mjs';
import { faultsOf, readManifest } from './fixtures/manifest.mjs';

const isTool = (dir) => ['TOOL.md', 'index.ts'].every((name) => existsSync(join(ROOT, dir, name)));
const TOOLS = toolDirs().filter(isTool).map((dir) => ({
  dir,
  manifest: readManifest(dir),
  source: readFileSync(join(ROOT, dir, 'index.ts'), 'utf8'),
}));

/** The source without comments and without the contents of strings, to look for code in. */
function codeOf(source) {
  const tokens = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;
  return source.replace(tokens, (token) => (token.startsWith('/') ? ' ' : token[0] + token[0]));
}

/** Fail with one line for each tool that `check` has something to say about. */
function lint(name, check) {
  test(name, async () => {
    const faults = [];
    for (const tool of TOOLS) {
      for (const fault of (await check(tool, codeOf(tool.source))) ?? []) faults.push(`${tool.dir}: ${fault}`);
    }
    assert.deepEqual(faults, []);
  });
}

const unless = (holds, fault) => (holds ? [] : [fault]);
const inputsOf = (tool) => Object.entries(tool.manifest.inputs);

/** `type Params = { ... }` as a map of name to whether it has a question mark. */
function paramsType(source) {
  const body = /^type Params = \{\n([\s\S]*?)^\};/m.exec(source)?.[1] ?? '';
  return new Map([...body.matchAll(/^ {2}([a-z_0-9]+)(\??):/gm)].map(([, name, mark]) => [name, mark === '?']));
}

/** Top-level declarations: name -> text. One ends with its line, with what is indented below it, or at a bracket in column 1. */
function declarationsOf(source) {
  const starts = /^(?:export )?(?:async )?(?:function|const|class|type) (\w+)(?:[^\n]*[;}]$|[^\n]*=\n(?: [^\n]*\n)*? [^\n]*;$|[\s\S]*?^[}\])](?:[^\n]*[^\n{])?$)/gm;
  return new Map([...source.matchAll(starts)].map((match) => [match[1], match[0]]));
}

test('R2 R6 every directory under seed/ has TOOL.md and index.ts', () => {
  assert.ok(TOOLS.length > 0);
  assert.deepEqual(toolDirs().filter((dir) => !isTool(dir)), []);
});

lint('R15 the name is snake_case and the directory is called by it', ({ dir, manifest }) => [
  ...unless(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(manifest.name), `name ${manifest.name}`),
  ...unless(basename(dir) === manifest.name, `directory differs from name ${manifest.name}`),
]);

lint('R17 the description says what the tool does and when to use it', ({ manifest }) => [
  ...unless(manifest.description?.length >= 40, 'description is shorter than 40 characters'),
  ...unless(/Use this (to|when|for|whenever)\b/.test(manifest.description), 'description lacks "Use this to/when ..."'),
]);

lint('R18 R94 the version is a whole number from 1 on', ({ manifest }) =>
  unless(Number.isInteger(manifest.version) && manifest.version >= 1, `version ${manifest.version}`));

lint('R25 R26 every input has one of the four types, an enum its values', (tool) =>
  inputsOf(tool).flatMap(([name, input]) => [
    ...unless(['string', 'number', 'boolean', 'enum'].includes(input.type), `${name}: type ${input.type}`),
    ...unless((input.type === 'enum') === ('values' in input), `${name}: values belong to an enum`),
    ...unless([undefined, true].includes(input.optional), `${name}: optional is true or absent`),
  ]));

lint('R27 every input has a description', (tool) =>
  inputsOf(tool).flatMap(([name, input]) => unless(String(input.description ?? '').length >= 10, `${name}: description`)));

lint('R29 tokens, keys and passwords are marked sensitive', (tool) =>
  inputsOf(tool).flatMap(([name, input]) => {
    const secret = /(^|_)(token|password|passphrase|secret|api_key|apikey|credential)s?(_|$)/.test(name) && name !== 'page_token';
    return unless(!secret || input.sensitive === true, `${name}: lacks sensitive: true`);
  }));

lint('R33 R49 type Params has the inputs of TOOL.md, optional ones with a question mark', (tool) => {
  const declared = paramsType(tool.source);
  const named = inputsOf(tool).map(([name]) => name);
  return [
    ...named.filter((name) => !declared.has(name)).map((name) => `${name} is missing in Params`),
    ...[...declared.keys()].filter((name) => !named.includes(name)).map((name) => `${name} is in Params only`),
    ...inputsOf(tool).flatMap(([name, input]) =>
      unless(!declared.has(name) || declared.get(name) === (input.optional === true), `${name}: question mark and optional differ`)),
  ];
});

lint('R35 the body has the six parts of a tool document', ({ manifest, dir }) => {
  const resources = /OFFICER_|Authorization|api_key/.test(readFileSync(join(ROOT, dir, 'index.ts'), 'utf8').replace(/OFFICER_USER_ROOT/g, ''));
  const wanted = ['## Usage', '## Examples', ...(resources ? ['## Authentication'] : []), '## Error Handling', '## Notes'];
  return [
    ...unless(/^# \S/.test(manifest.body), 'the body does not begin with a title'),
    ...wanted.flatMap((heading) => unless(manifest.body.split('\n').includes(heading), `no ${heading}`)),
  ];
});

lint('R36 every example is a valid call, and every action has one', ({ manifest }) => {
  const examples = /\n## Examples\n([\s\S]*?)\n## /.exec(manifest.body)?.[1] ?? '';
  const calls = [...examples.matchAll(/`(\{.*\})`/g)].map((match) => JSON.parse(match[1]));
  const actions = String(manifest.inputs.action?.values ?? '').split(',').filter(Boolean);
  const unshown = actions.filter((action) => !calls.some((call) => call.action === action) && !manifest.body.includes(`\`${action}\``));
  return [
    ...unless(calls.length >= 3, 'fewer than three examples'),
    ...calls.flatMap((call) => faultsOf(manifest, call).map((fault) => `example ${JSON.stringify(call)}: ${fault}`)),
    ...unshown.map((action) => `action ${action} appears nowhere in the body`),
  ];
});

lint('R37 R100 R102 execute is an async named export, and the only export', async ({ dir }, code) => [
  ...unless(/^export async function execute\(/m.test(code), 'no "export async function execute("'),
  ...unless(code.match(/^export /gm)?.length === 1, 'another export'),
  ...unless(!/\bmodule\.exports\b|\bexports\./.test(code), 'module.exports'),
  ...unless(typeof (await loadTool(dir)).execute === 'function', 'the loaded module has no execute'),
]);

lint('R39 R41 R42 execute takes the four arguments, the unused ones with an underscore', (_tool, code) => {
  const [, args, body] = /^export async function execute\(([\s\S]*?)\): Promise<ToolResult> \{\n([\s\S]*?)^\}/m.exec(code) ?? [];
  if (args === undefined) return ['execute has another form'];
  const names = args.split(',').map((arg) => arg.trim()).filter(Boolean);
  const forms = [/^_toolCallId: string$/, /^params: Params$/, /^_?signal\?: AbortSignal$/, /^_?onUpdate\?: OnUpdate$/];
  return [
    ...forms.flatMap((form, i) => unless(i >= names.length ? i >= 2 : form.test(names[i]), `argument ${i + 1}: ${names[i]}`)),
    ...names.map((arg) => /^\w+/.exec(arg)[0]).filter((name) => !name.startsWith('_') && !new RegExp(`\\b${name}\\b`).test(body)),
  ];
});

const OK_TEXT = "function ok(text: string): ToolResult {\n  return { content: [{ type: 'text', text }] };\n}";
const ERR_TEXT = "function err(text: string): ToolResult {\n  return { content: [{ type: 'text', text }], isError: true };\n}";
lint('R43 R44 R46 R47 ok and err make the results, and nothing else does', ({ source }, code) => [
  ...unless(source.includes(OK_TEXT), 'ok() has another text'),
  ...unless(source.includes(ERR_TEXT), 'err() has another text'),
  ...unless(code.match(/isError: true/g)?.length === 1, 'isError outside err()'),
]);

lint('R48 the types ToolResult and OnUpdate are declared in the file', ({ source }) => [
  ...unless(source.includes('type ToolResult = { content: Array<{ type: string; text: string }>; isError?: boolean };'), 'ToolResult'),
  ...unless(
    !/\bOnUpdate\b/.test(source) || source.includes('type OnUpdate = (partial: { content: Array<{ type: string; text: string }> }) => void;'),
    'OnUpdate',
  ),
]);

lint('R50 parameters are taken apart with the defaults of TOOL.md', (tool) => {
  const taken = [...tool.source.matchAll(/const \{((?:[^}']|'[^']*')*)\} = params\b/g)].map((match) => match[1]).join(',');
  return [
    ...unless(taken !== '', 'no "const { ... } = params"'),
    ...inputsOf(tool).flatMap(([name, input]) => {
      if (!('default' in input)) return [];
      const value = typeof input.default === 'string' ? `'${input.default}'` : String(input.default);
      return unless(taken.replace(/\s+/g, ' ').includes(`${name} = ${value}`), `${name}: no default ${value} in the code`);
    }),
  ];
});

lint('R53 R106 the whole body of execute is in try and catch', (_tool, code) => {
  const body = /^export async function execute\([\s\S]*?\): Promise<ToolResult> \{\n([\s\S]*?)^\}/m.exec(code)?.[1] ?? '';
  return unless(/^ {2}try \{\n[\s\S]*\n {2}\} catch \((\w+)\) \{\n {4}return failure\([^;]*, \1\);\n {2}\}\n$/.test(body), 'execute is no single try/catch');
});

lint('R63 imports come from the standard library alone', ({ source }) => {
  const specifiers = [...source.matchAll(/\bfrom '([^']*)'|\bimport\('([^']*)'\)|\brequire\(['"]([^'"]*)/g)];
  return specifiers.map((match) => match[1] ?? match[2] ?? match[3]).filter((name) => !name.startsWith('node:'));
});

lint('R64 R65 R66 R67 R105 nothing of Bun is used', (_tool, code) => unless(!/\bBun\b/.test(code), 'Bun'));

lint('R67 programs run without a shell, but for the look-up of R85', ({ source }, code) => [
  ...unless(!/\bshell:\s*(true|'')/.test(code), 'shell: true'),
  ...unless(!/(?<![.\w])exec\(|\bexecFileSync\(['"](sh|bash)/.test(code), 'exec() or a shell'),
  ...[...source.matchAll(/execSync\(([^,)]*)/g)].map((match) => match[1]).filter((arg) => arg !== '`which ${cmd}`'),
]);

lint('R68 paths are made with node:path', ({ source }, code) => [
  ...unless(!source.includes("from 'node:fs'") || source.includes("from 'node:path'"), 'node:fs without node:path'),
  ...unless(!/\+ ?'\/'/.test(source), "a path glued with '/'"),
  ...unless(!/\bprocess\.chdir\b/.test(code), 'chdir'),
]);

lint('R84 the place of the tool is not written into it', ({ dir, source }) => [
  ...unless(!/\/officer\/(user\/)?tools|seed\/(user-)?tools/.test(source), 'an absolute path to itself'),
  ...unless(!existsSync(join(ROOT, dir, 'bin')) || /const TOOL_DIR = typeof __dirname !== 'undefined'/.test(source), 'bin/ without TOOL_DIR'),
]);

const HAS_COMMAND = 'execSync(`which ${cmd}`, { stdio: \'ignore\' });';
lint('R85 R86 programs are looked for before they are run', ({ source }) =>
  !/\bspawn\(|\bexecFile/.test(source) ? [] : [
    ...unless(source.includes('function hasCommand(cmd: string): boolean {') && source.includes(HAS_COMMAND), 'hasCommand'),
    ...unless(source.includes('${cmd} is required but not installed in the container.'), 'the message of R86'),
  ]);

lint('R101 there is no entry for a command line', (_tool, code) => unless(!/\bprocess\.argv\b|\brequire\.main\b/.test(code), 'argv or require.main'));

lint('R103 nothing is printed', (_tool, code) => unless(!/\bconsole\.|process\.std(out|err)\b/.test(code), 'console or process.stdout'));

lint('R107 a tool has TOOL.md, index.ts and perhaps bin/', ({ dir }) =>
  readdirSync(join(ROOT, dir)).filter((name) => !['TOOL.md', 'index.ts', 'bin'].includes(name)));

lint('A20 the TypeScript is erasable', (_tool, code) => {
  const forms = {
    enum: /^\s*(export )?(const )?enum \w/m,
    namespace: /^\s*(export )?(namespace|module) \w/m,
    'import = require': /\bimport \w+ = require/,
    'parameter property': /constructor\([^)]*\b(private|public|protected|readonly) /,
    decorator: /^\s*@\w+/m,
    'angle-bracket cast': /[=(,]\s*<[A-Z]\w*>\s*[\w({]/,
  };
  return Object.entries(forms).filter(([, form]) => form.test(code)).map(([name]) => name);
});

test('a declaration is compared whole, and ends where it ends', () => {
  const texts = ['const a = 1;', 'function f(x) {\n  const y = 1;\n  return y;\n}', 'const b =\n  1 +\n  2;', 'type T = { a: string }', 'export async function g(\n  x,\n) {\n  return x;\n}', 'const c = [\n  1,\n];'];
  assert.deepEqual([...declarationsOf(texts.join('\n\n')).values()], texts);
});

test('R46 R47 R85 the helpers that tools share have the same text in each', () => {
  // The shared part of a file ends at its first section line. What any tool has there, none may have otherwise.
  const shared = new Map();
  for (const { dir, source } of TOOLS) {
    for (const [name, text] of declarationsOf(source.split(/^\/\/ ---- /m)[0])) if (!shared.has(name)) shared.set(name, { dir, text });
  }
  const faults = [];
  for (const { dir, source } of TOOLS) {
    for (const [name, text] of declarationsOf(source)) {
      const known = shared.get(name);
      if (known && known.text !== text) faults.push(`${name} in ${dir} differs from ${known.dir}`);
    }
  }
  assert.ok(shared.size >= 5);
  assert.deepEqual(faults, []);
});

/** The last released tree, or why there is none to compare with. */
function lastRelease() {
  try {
    const args = ['describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*'];
    return { tag: execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() };
  } catch {
    return { skip: 'no released version (git tag v*) to compare with' };
  }
}

const release = lastRelease();
test('R104 a tool that changed since the last release has a higher version', { skip: release.skip ?? false }, () => {
  const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  const faults = TOOLS.filter(({ dir, manifest }) => {
    if (git('ls-tree', release.tag, `${dir}/TOOL.md`) === '') return false;
    const changed = git('diff', '--name-only', release.tag, '--', dir) !== '';
    const before = Number(/^version: (\d+)$/m.exec(git('show', `${release.tag}:${dir}/TOOL.md`))?.[1] ?? 0);
    return changed && manifest.version <= before;
  });
  assert.deepEqual(faults.map(({ dir }) => dir), []);
});
