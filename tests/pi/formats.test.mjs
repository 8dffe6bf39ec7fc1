// .pegfs/formats: what each model API is given, judged by that API's published rules (rules/*.json,
// with their sources), by the types of its official package, and for MCP by the SDK's own validator.
//
// Environment: PEGFS_DESCRIBE, the program of tests/oracle/describe.c; PEGFS_PI_MODULES, a
// node_modules made from the lock file beside this file; PEGFS_DATA_DIR, tests/data.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run this by \`make check-pi\``);
  return value;
}

const HERE = dirname(fileURLToPath(import.meta.url));
const MODULES = setting("PEGFS_PI_MODULES");
const require = createRequire(join(MODULES, "index.js"));
const Ajv2020 = require("ajv/dist/2020");
const { ListToolsResultSchema } = await import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/types.js")).href);

const APIS = ["typebox", "mcp", "openai", "openai-responses", "anthropic", "gemini"];

const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addSchema(JSON.parse(readFileSync(join(HERE, "rules/openai-function.json"), "utf8")));
const rules = Object.fromEntries(APIS.map((api) =>
  [api, ajv.compile(JSON.parse(readFileSync(join(HERE, `rules/${api}.json`), "utf8")))]));

const everything = {
  name: "everything", label: "All of it", description: "Has every kind of input.",
  inputs: [
    { name: "text", type: "string", description: "A \"text\"\nof two lines" },
    { name: "count", type: "number" },
    { name: "flag", type: "boolean" },
    { name: "mode", type: "enum", values: ["single", "batch", "5", "true", "null"] },
    { name: "only", type: "enum", values: ["x"], description: "One value" },
    { name: "free", type: "string", optional: true },
    { name: "limit", type: "number", optional: true, default: 10.5 },
    { name: "deep", type: "boolean", optional: true, default: false, description: "How deep" },
    { name: "kind", type: "enum", values: ["a", "b"], default: "b" },
    { name: "api_token", type: "string", optional: true, sensitive: true, default: "hunter2" },
  ],
};
const text = { name: "text", label: "text", description: "A text.", type: "string" };
const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const odd = [
  ["no_inputs", {}],
  ["it's awkward/*", {}], ["größe", {}], ["1st", {}], ["-dash", {}], ["a.b", {}], ["日本語", {}], ["x y\nz", {}],
  ["n".repeat(64), {}], ["n".repeat(65), {}], ["n".repeat(128), {}], ["ö".repeat(64), {}], ["_", {}], ["__proto__", {}],
  ["long_description", { description: "x".repeat(1024) }],
  ["longer_description", { description: "x".repeat(1025) }],
  ["long_in_characters", { description: "😀ö".repeat(600) }],
  ["odd_optional", { inputs: [{ ...text, name: "weird key!", optional: true }, text] }],
  ["odd_default", { inputs: [{ ...text, name: "größe", default: "1" }] }],
  ["odd_required", { inputs: [{ ...text, name: "weird key!" }, text] }],
  ["dotted", { inputs: [{ ...text, name: "a.b" }, { ...text, name: "c-d", optional: true }] }],
  ["digits", { inputs: [{ ...text, name: "1st", optional: true }] }],
  ["long_input", { inputs: [{ ...text, name: "k".repeat(65), optional: true }] }],
  ["only_odd", { inputs: [{ ...text, name: "ß", optional: true }] }],
  ["proto", { inputs: [{ ...text, name: "__proto__" }, { ...text, name: "constructor" }, { ...text, name: "const" }] }],
  ["many_values", { inputs: [{ name: "v", type: "enum", values: many(1000, (i) => `v${i}`) }] }],
  ["too_many_values", { inputs: [{ name: "v", type: "enum", values: many(1001, (i) => `v${i}`) }] }],
  ["long_values", { inputs: [{ name: "v", type: "enum", values: many(251, (i) => `${i}`.padEnd(60, "-")) }] }],
  ["few_long_values", { inputs: [{ name: "v", type: "enum", values: many(250, (i) => `${i}`.padEnd(60, "-")) }] }],
  ["much_text", { inputs: many(200, (i) => ({ name: `i${i}`, type: "enum", values: [`${i}`.padEnd(700, "-")] })) }],
].map(([name, more]) => ({ name, label: name, description: "An odd tool.", inputs: [], ...more }));
const DATA = setting("PEGFS_DATA_DIR");
const fixtures = readdirSync(join(DATA, "schema")).sort().map((name) => ({
  name, label: name, description: "A tool.", ...JSON.parse(readFileSync(join(DATA, "schema", name, "tool.json"), "utf8")),
})).map((tool) => ({ ...tool, description: tool.description || "A tool." }));
const tools = [everything, ...odd, ...fixtures];

function describe(tool, requests = []) {
  const options = { input: JSON.stringify({ ...tool, requests }), encoding: "utf8", maxBuffer: 1 << 28 };
  return JSON.parse(execFileSync(setting("PEGFS_DESCRIBE"), [], options));
}

const described = tools.map((tool) => ({ tool, ...describe(tool) }));

// The definitions in a document, each with its name and its schema.
const definitions = {
  typebox: (document) => document.map((each) => [each.name, each.parameters]),
  mcp: (document) => document.tools.map((each) => [each.name, each.inputSchema]),
  openai: (document) => document.map((each) => [each.function.name, each.function.parameters]),
  "openai-responses": (document) => document.map((each) => [each.name, each.parameters]),
  anthropic: (document) => document.map((each) => [each.name, each.input_schema]),
  gemini: (document) => document.flatMap((each) => each.functionDeclarations).map((each) => [each.name, each.parameters]),
};

for (const api of APIS)
  test(`${api}_has_what_the_api_takes`, () => {
    for (const { tool, formats } of described)
      assert.ok(rules[api](formats[api]), `${tool.name}: ${ajv.errorsText(rules[api].errors)}\n${JSON.stringify(formats[api])}`);
  });

// A test that cannot fail is none: each of these is refused by the rules of at least the API named.
test("the_rules_refuse_what_the_apis_refuse", () => {
  const { formats } = described[0];
  const broken = [
    ["gemini", (tools) => { tools[0].functionDeclarations[0].parameters.additionalProperties = false; }],
    ["gemini", (tools) => { tools[0].functionDeclarations[0].parameters.properties.text.const = "a"; }],
    ["gemini", (tools) => { tools[0].functionDeclarations[0].parameters.properties = {}; }],
    ["gemini", (tools) => { tools[0].functionDeclarations[0].parameters.properties.mode.enum.push(""); }],
    ["gemini", (tools) => { tools[0].functionDeclarations[0].name = "1st"; }],
    ["gemini", (tools) => { tools[0].functionDeclarations = []; }],
    ["openai", (tools) => { tools[0].function.parameters.properties.text.default = "a"; }],
    ["openai", (tools) => { delete tools[0].function.parameters.additionalProperties; }],
    ["openai", (tools) => { tools[0].function.name = "a.b"; }],
    ["openai", (tools) => { tools[0].function.description = "x".repeat(1025); }],
    ["openai-responses", (tools) => { delete tools[0].strict; }],
    ["openai-responses", (tools) => { tools[0].function = {}; }],
    ["anthropic", (tools) => { tools[0].title = "x"; }],
    ["anthropic", (tools) => { tools[0].input_schema.properties["weird key!"] = {}; }],
    ["anthropic", (tools) => { tools[0].input_schema.anyOf = []; }],
    ["anthropic", (tools) => { tools[0].input_schema.properties.text.type = "text"; }],
    ["mcp", (result) => { result.tools[0].name = "a b"; }],
    ["mcp", (result) => { result.tools[0].inputSchema.type = "string"; }],
    ["typebox", (tools) => { delete tools[0].label; }],
  ];
  for (const [api, damage] of broken) {
    const copy = structuredClone(formats[api]);
    damage(copy);
    assert.ok(!rules[api](copy), `${api}: ${damage}`);
  }
});

test("openai_strict_requires_every_key_and_keeps_to_the_limits", () => {
  let strict = 0;
  for (const { tool, formats } of described) {
    const [{ function: definition }] = formats.openai;
    const { type, ...responses } = formats["openai-responses"][0];
    assert.equal(type, "function");
    assert.deepEqual(responses, definition, "both have the same");
    if (!definition.strict) continue;
    strict++;
    const { properties, required } = definition.parameters;
    assert.deepEqual(required, Object.keys(properties));
    const enums = Object.values(properties).map((each) => (each.enum ?? []).filter((value) => value !== null));
    assert.ok(enums.flat().length <= 1000, tool.name);
    assert.ok([...Object.keys(properties), ...enums.flat()].join("").length <= 120000, tool.name);
    for (const values of enums) assert.ok(values.length <= 250 || values.join("").length <= 15000, tool.name);
  }
  assert.equal(strict, tools.length - 3, "too_many_values, long_values and much_text are not");
});

test("what_openai_must_give_as_null_is_a_valid_request", () => {
  const { formats } = described[0];
  const { properties } = formats.openai[0].function.parameters;
  const request = Object.fromEntries(Object.entries(properties).map(([name, { type, enum: values }]) =>
    [name, Array.isArray(type) ? null : values ? values[0] : { string: "x", number: 1, boolean: true }[type]]));
  assert.ok(Object.values(request).includes(null));
  const { checked: [{ params, error }] } = describe(everything, [JSON.stringify(request)]);
  assert.equal(error, undefined);
  assert.deepEqual(params, { text: "x", count: 1, flag: true, mode: "single", only: "x", limit: 10.5, deep: false,
    kind: "b", api_token: "hunter2" });
});

test("names_that_fit_stay_and_others_become_one_that_fits_all", () => {
  for (const { tool, formats } of described)
    for (const api of APIS)
      for (const [name] of definitions[api](formats[api]))
        assert.ok(name === tool.name || /^[a-zA-Z_][a-zA-Z0-9_-]{0,54}_[0-9a-f]{8}$/.test(name), `${api}: ${tool.name} -> ${name}`);
  const of = (name, api) => definitions[api](described.find(({ tool }) => tool.name === name).formats[api])[0][0];
  assert.equal(of("n".repeat(64), "gemini"), "n".repeat(64));
  assert.equal(of("n".repeat(128), "mcp"), "n".repeat(128));
  assert.match(of("n".repeat(65), "anthropic"), /^n{55}_[0-9a-f]{8}$/);
  assert.equal(of("a.b", "mcp"), "a.b");
  assert.match(of("a.b", "openai"), /^a_b_/);
});

test("an_input_that_an_api_refuses_is_left_out_or_else_the_tool_and_the_notes_say_so", () => {
  const of = (name) => described.find(({ tool }) => tool.name === name);
  for (const api of APIS) {
    const refuses = ["typebox", "anthropic", "gemini"].includes(api);
    const optional = definitions[api](of("odd_optional").formats[api])[0][1];
    assert.deepEqual(Object.keys(optional.properties), refuses ? ["text"] : ["weird key!", "text"], api);
    assert.equal(definitions[api](of("odd_required").formats[api]).length, refuses ? 0 : 1, api);
    assert.equal(of("odd_optional").notes.includes(`${api}.json: input 'weird key!'`), refuses, api);
    assert.equal(of("odd_required").notes.includes(`${api}.json: 'odd_required' is left out`), refuses, api);
  }
  assert.deepEqual(definitions.gemini(of("only_odd").formats.gemini), [["only_odd", undefined]]);
  assert.deepEqual(definitions.gemini(of("odd_default").formats.gemini)[0][1], undefined);
  assert.equal(of("no_inputs").notes, "");
});

test("a_description_that_is_too_long_ends_between_characters_and_the_notes_say_so", () => {
  const of = (name) => described.find(({ tool }) => tool.name === name);
  const [{ function: cut }] = of("long_in_characters").formats.openai;
  assert.equal([...cut.description].length, 1024);
  assert.equal(cut.description, [..."😀ö".repeat(600)].slice(0, 1023).join("") + "…");
  assert.match(of("long_in_characters").notes, /openai.json: the description of 'long_in_characters' ends/);
  assert.equal(of("long_description").formats.openai[0].function.description.length, 1024);
  assert.equal(of("long_description").notes, "");
  assert.equal(of("longer_description").formats.anthropic[0].description.length, 1025);
});

test("a_default_that_an_api_takes_no_keyword_for_is_told_and_a_sensitive_one_never", () => {
  const { formats } = described[0];
  const { properties } = formats.gemini[0].functionDeclarations[0].parameters;
  assert.equal(properties.deep.description, "How deep (default: false)");
  assert.equal(properties.kind.description, "(default: \"b\")");
  assert.ok(!formats.gemini[0].functionDeclarations[0].parameters.required.includes("kind"));
  assert.equal(formats.openai[0].function.parameters.properties.limit.description, "(default: 10.5)");
  assert.ok(!JSON.stringify(formats).includes("hunter2"));
});

test("required_and_ordered_keys_are_there", () => {
  for (const { tool, formats } of described)
    for (const api of APIS)
      for (const [, schema] of definitions[api](formats[api])) {
        if (!schema) continue;
        const keys = Object.keys(schema.properties);
        assert.ok((schema.required ?? []).every((key) => keys.includes(key)), `${api}: ${tool.name}`);
        if (api === "gemini") assert.deepEqual(schema.propertyOrdering, keys);
      }
});

test("mcp_the_sdk_takes_the_list", () => {
  for (const { formats } of described) ListToolsResultSchema.parse(formats.mcp);
  assert.throws(() => ListToolsResultSchema.parse({ tools: [{ name: "a" }] }));
});

// The types of the packages that the APIs' makers publish, to which each document must be assignable.
const TYPES = `import type OpenAI from "openai";
import type Anthropic from "@anthropic-ai/sdk";
import { Type, type Tool as GeminiTool } from "@google/genai";
import type { ListToolsResult } from "@modelcontextprotocol/sdk/types.js";
import type { ToolDefinition } from "@mariozechner/pi-coding-agent";
type PiTool = Pick<ToolDefinition, "name" | "label" | "description"> & { parameters: object };
`;
const TYPE_OF = {
  typebox: "PiTool[]", mcp: "ListToolsResult", anthropic: "Anthropic.Tool[]", gemini: "GeminiTool[]",
  openai: "OpenAI.Chat.Completions.ChatCompletionTool[]", "openai-responses": "OpenAI.Responses.FunctionTool[]",
};

// What the compiler complains of, by file; all of them in one run, for it takes its time.
function compile(files) {
  const directory = mkdtempSync(join(dirname(MODULES), "types-"));
  const paths = Object.entries({ "package.json": '{"type":"module"}', ...files }).map(([name, text]) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  });
  let told = "";
  try {
    execFileSync(process.execPath, [join(MODULES, "typescript/lib/tsc.js"), "--noEmit", "--strict", "--skipLibCheck",
      "--pretty", "false", "--target", "es2022", "--module", "nodenext", ...paths.slice(1)], { encoding: "utf8" });
  } catch (failed) {
    told = failed.stdout;
  } finally {
    rmSync(directory, { recursive: true });
  }
  return Object.fromEntries(Object.keys(files).map((name) => [name, told.split("\n").filter((line) => line.includes(`${name}(`))]));
}

function literal(api, value) {
  const text = JSON.stringify(value);
  return api === "gemini" ? text.replace(/"type":"([A-Z]+)"/g, '"type":Type.$1') : text;
}

// And seed/extensions/tool-loader.ts fits the types of the pi that it is written for.
test("the_official_packages_take_the_documents_and_the_extension_by_their_types", () => {
  const left_out = ["many_values", "too_many_values", "long_values", "few_long_values", "much_text", "proto"];
  const chosen = described.filter(({ tool }) => !left_out.includes(tool.name));
  const right = APIS.flatMap((api) => chosen.map(({ formats }, i) =>
    `export const ${api.replace("-", "_")}_${i}: ${TYPE_OF[api]} = ${literal(api, formats[api])};`));
  const wrong = APIS.filter((api) => api !== "typebox").map((api) =>
    `export const ${api.replace("-", "_")}: ${TYPE_OF[api]} = ${literal(api, described[0].formats[api]).replace(/"name"/, '"nome"')};`);
  const extension = readFileSync(join(HERE, "../../seed/extensions/tool-loader.ts"), "utf8");
  const told = compile({
    "right.mts": TYPES + right.join("\n"),
    "wrong.mts": TYPES + wrong.join("\n"),
    "tool-loader.ts": extension,
    "wrong-loader.ts": extension.replace('pi.on("tool_result"', 'pi.on("tool_results"'),
  });
  assert.deepEqual(told["right.mts"], []);
  assert.equal(told["wrong.mts"].length, wrong.length, told["wrong.mts"].join("\n"));
  assert.deepEqual(told["tool-loader.ts"], []);
  assert.ok(told["wrong-loader.ts"].length > 0);
});
