// What core makes of a tool's inputs, compared with what other programs make of them: TypeBox 0.34
// (the documents that tools were written for), TypeBox 1 (what the pi agent converts and checks
// arguments with) and Ajv (a JSON Schema validator that knows neither).
//
// Environment: PEGFS_DESCRIBE, the program of describe.c; PEGFS_ORACLE_MODULES, a node_modules made
// from the lock file beside this file; PEGFS_DATA_DIR, tests/data.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run this by \`make check-oracle\``);
  return value;
}

const MODULES = setting("PEGFS_ORACLE_MODULES");
const DATA = process.env.PEGFS_DATA_DIR ?? join(dirname(fileURLToPath(import.meta.url)), "../data");

// The packages lie outside this directory, so their files are looked up by hand.
function load(name, entry = ".") {
  const dir = join(MODULES, name);
  const { exports } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
  const found = exports[entry].import;
  return import(pathToFileURL(join(dir, found.default ?? found)).href);
}

const old = { ...(await load("@sinclair/typebox")), ...(await load("@sinclair/typebox", "./value")) };
const pi = { ...(await load("typebox")), ...(await load("typebox", "./value")) };
const require = createRequire(join(MODULES, "index.js"));
const Ajv = require("ajv");
const Ajv2020 = require("ajv/dist/2020");

// Tools: the fixtures of the C tests, and one that has every kind of input.
const everything = {
  name: "everything",
  inputs: [
    { name: "text", type: "string", description: "A \"text\"\nof two lines" },
    { name: "count", type: "number" },
    { name: "flag", type: "boolean" },
    { name: "mode", type: "enum", values: ["single", "batch", "5", "true", "", "null"] },
    { name: "only", type: "enum", values: ["x"], description: "One value" },
    { name: "free", type: "string", optional: true },
    { name: "limit", type: "number", optional: true, default: 10.5 },
    { name: "deep", type: "boolean", optional: true, default: false },
    { name: "kind", type: "enum", values: ["a", "b"], optional: true, default: "b" },
    { name: "api_token", type: "string", optional: true, sensitive: true },
  ],
};
const nothing = { name: "nothing", inputs: [] };
const fixtures = readdirSync(join(DATA, "schema")).sort().map(
  (name) => JSON.parse(readFileSync(join(DATA, "schema", name, "tool.json"), "utf8")));
const tools = [everything, nothing, ...fixtures];

function describe(tool, requests = []) {
  const stdin = JSON.stringify({ ...tool, requests });
  const options = { input: stdin, encoding: "utf8", maxBuffer: 1 << 28 };
  return JSON.parse(execFileSync(setting("PEGFS_DESCRIBE"), [], options));
}

// The tool's inputs as a loader of tools writes them with TypeBox (R21 to R31).
function typeOf(Type, input) {
  const options = {};
  if (input.description) options.description = input.description;
  if (input.default !== undefined && !input.sensitive) options.default = input.default;
  switch (input.type) {
    case "number": return Type.Number(options);
    case "boolean": return Type.Boolean(options);
    case "enum": return Type.Union(input.values.map((value) => Type.Literal(value)), options);
    default: return Type.String(options);
  }
}

function objectOf(Type, tool) {
  const properties = {};
  for (const input of tool.inputs) {
    const type = typeOf(Type, input);
    properties[input.name] = input.optional ? Type.Optional(type) : type;
  }
  return Type.Object(properties);
}

// Values that are likely to be told apart by somebody.
const texts = ["", " ", "a", "x", "5", " 5 ", "-5", "+5", "5.", ".5", "5.0", "1e3", "1E-3", "1e999", "0x10",
  "0X1f", "0b101", "0o17", "-0x10", "0x", "1_000", "1,5", "5n", "Infinity", "-Infinity", "NaN", "true",
  "TRUE", "True", "false", "False", "yes", "no", "on", "0", "1", "-0", "00", "01", "null", "undefined",
  "single", "Single", "batch", "batch ", "single,batch", "b", "é", "日本", "😀", "a\nb", "\t5\n",
  "9007199254740993", "12345678901234567890", "0.1", "0.30000000000000004", "{\"a\":1}", "[1]", "__proto__"];
const numbers = [0, -0, 1, -1, 5, 7.5, 0.1, 0.1 + 0.2, 1e21, 1e20, 123456789012345680000, 1e-6, 1e-7, 1.5e-7,
  5e-324, 1.7976931348623157e308, 9007199254740991, -9007199254740991, 2, 1.0000000000000002, 4.35, 1e100];
const others = [true, false, null, [], ["a"], [5], {}, { a: 1 }, [null]];
const values = [...texts, ...numbers, ...others];

// JSON, with whole numbers beyond 64 bits, which pegfs refuses when written out, by their exponent.
function textOf(request) {
  const mark = (_, value) => (typeof value === "number" && Math.abs(value) >= 2 ** 63 && Math.abs(value) < 1e21
    ? `@${value.toExponential()}@` : value);
  return JSON.stringify(request, mark).replace(/"@([^@"]+)@"/g, "$1");
}

function validRequest(tool) {
  return describe(tool).example;
}

// Every value in every input of an otherwise valid request; every subset of keys of small requests.
function requestsFor(tool) {
  const valid = validRequest(tool);
  const requests = [{}, valid, { ...valid, further: 1 }, { ...valid, further: null }];
  for (const input of tool.inputs) {
    for (const value of values) requests.push({ ...valid, [input.name]: value });
    const { [input.name]: _, ...without } = valid;
    requests.push(without);
  }
  return requests;
}

// A generator of its own, so that each run tries the same requests.
function* randomRequests(tool, count) {
  let state = 20250131;
  const next = (below) => (state = (state * 1103515245 + 12345) % 2147483648) % below;
  for (let i = 0; i < count; i++) {
    const request = {};
    for (const input of tool.inputs) {
      if (next(4) > 0) request[input.name] = values[next(values.length)];
    }
    yield request;
  }
}

test("r24_r32_schema_is_valid_json_schema", () => {
  for (const tool of tools) {
    const { schema, typebox } = describe(tool);
    for (const validator of [new Ajv({ strict: true }), new Ajv2020({ strict: true })]) {
      for (const document of [schema, typebox]) {
        assert.ok(validator.validateSchema(document), `${tool.name}: ${validator.errorsText()}`);
        validator.compile(document);
      }
    }
  }
});

test("r24_typebox_document_is_what_typebox_writes", () => {
  for (const tool of tools) {
    const theirs = JSON.parse(JSON.stringify(objectOf(old.Type, tool)));
    assert.deepEqual(describe(tool).typebox, theirs, tool.name);
  }
});

test("r32_properties_keep_the_order_of_the_inputs", () => {
  for (const tool of tools) {
    const { schema, typebox } = describe(tool);
    const names = tool.inputs.map((input) => input.name);
    assert.deepEqual(Object.keys(schema.properties), names);
    assert.deepEqual(Object.keys(typebox.properties), names);
    assert.deepEqual(schema.required ?? [], names.filter((_, i) => !tool.inputs[i].optional));
    assert.equal("required" in schema, schema.required?.length > 0);
  }
});

test("r24_both_documents_and_both_typeboxes_accept_the_same_values", () => {
  let count = 0;
  for (const tool of tools) {
    const { schema, typebox } = describe(tool);
    const ajv = new Ajv({ strict: true });
    const judges = {
      schema: ajv.compile(schema),
      typebox: ajv.compile(typebox),
      "TypeBox 0.34": (value) => old.Value.Check(objectOf(old.Type, tool), value),
      "TypeBox 1": (value) => pi.Value.Check(objectOf(pi.Type, tool), value),
      "TypeBox 1 on our schema": (value) => pi.Value.Check(schema, value),
    };
    for (const request of [...requestsFor(tool), ...randomRequests(tool, 200), ...values]) {
      const verdicts = Object.entries(judges).map(([name, judge]) => [name, judge(request)]);
      const [, first] = verdicts[0];
      for (const [name, verdict] of verdicts)
        assert.equal(verdict, first, `${tool.name}: ${name} on ${JSON.stringify(request)}`);
      count++;
    }
  }
  assert.ok(count > 1000, `only ${count} values were tried`);
});

test("r36_example_is_a_valid_request_with_the_required_inputs_only", () => {
  for (const tool of tools) {
    const { schema, example } = describe(tool);
    assert.ok(new Ajv().compile(schema)(example), tool.name);
    assert.ok(pi.Value.Check(objectOf(pi.Type, tool), example), tool.name);
    assert.deepEqual(Object.keys(example), schema.required ?? []);
    for (const input of tool.inputs)
      if (input.sensitive && input.name in example && input.type === "string")
        assert.equal(example[input.name], `<${input.name.toUpperCase()}>`);
  }
});

// --- coercion

// What pi does with the arguments of a tool whose parameters are a TypeBox object.
function askPi(tool, request) {
  const type = objectOf(pi.Type, tool);
  const converted = pi.Value.Convert(type, structuredClone(request));
  return pi.Value.Check(type, converted) ? { params: converted } : { error: true };
}

// Where pegfs differs from pi on purpose. A row says which value of which type of input, and why.
const differences = [
  { why: "null means that the parameter is not given; pi makes it 0, false or \"null\"",
    applies: (input, value) => value === null },
  { why: "a blank text is no number; pi makes it 0, which hides a mistake",
    applies: (input, value) => input.type === "number" && typeof value === "string" && value.trim() === "" },
  { why: "the text of a BigInt (5n) is no number",
    applies: (input, value) => input.type === "number" && /^-?\d+n$/.test(value) },
];

function isDifferent(tool, request) {
  return tool.inputs.some((input) => input.name in request &&
    differences.some((difference) => difference.applies(input, request[input.name])));
}

// pi never applies a default, so it is asked with those that pegfs fills in.
function withDefaults(tool, request) {
  const defaults = tool.inputs.filter((input) => input.default !== undefined);
  return { ...Object.fromEntries(defaults.map((input) => [input.name, input.default])), ...request };
}

function compare(tool, requests) {
  const { checked } = describe(tool, requests.map(textOf));
  requests.forEach((request, i) => {
    if (isDifferent(tool, request)) return;
    const ours = checked[i];
    const theirs = askPi(tool, withDefaults(tool, JSON.parse(JSON.stringify(request))));
    const label = `${tool.name}: ${JSON.stringify(request)} -> ${JSON.stringify(ours)}`;
    assert.equal("error" in ours, "error" in theirs, label);
    if ("params" in ours)
      assert.deepEqual(ours.params, JSON.parse(JSON.stringify(theirs.params)), label);
  });
  return requests.length;
}

test("t14_coercion_agrees_with_pi_but_for_the_listed_differences", () => {
  let count = 0;
  for (const tool of tools)
    count += compare(tool, [...requestsFor(tool), ...randomRequests(tool, 200)]);
  assert.ok(count > 1000, `only ${count} requests were tried`);
});

test("t14_each_listed_difference_is_real", () => {
  const samples = [
    [{ name: "v", type: "string" }, null], [{ name: "v", type: "number" }, null],
    [{ name: "v", type: "boolean" }, null], [{ name: "v", type: "number" }, " "],
    [{ name: "v", type: "number" }, "5n"],
  ];
  for (const [input, value] of samples) {
    const tool = { name: "differs", inputs: [input] };
    assert.ok(isDifferent(tool, { v: value }));
    const { checked: [ours] } = describe(tool, [JSON.stringify({ v: value })]);
    assert.ok("error" in ours, JSON.stringify(value));
    assert.ok("params" in askPi(tool, { v: value }), JSON.stringify(value));
  }
  for (const { applies } of differences)
    assert.ok(samples.some(([input, value]) => applies(input, value)));
});

test("t14_differences_before_the_check_are_as_written_down", () => {
  // JSON.parse, which pi's arguments come from, takes what a strict reader refuses.
  const tool = { name: "strict", inputs: [{ name: "v", type: "string" }] };
  const strict = ['{"v":"a","v":"b"}', '{"v":"a\\u0000b"}', '{"v":"\\ud800"}', '{"v":12345678901234567890}'];
  const { checked } = describe(tool, strict);
  strict.forEach((text, i) => {
    JSON.parse(text);
    assert.ok("error" in checked[i], text);
  });
  // Whole numbers beyond 2^53 keep their digits as text; JavaScript rounds them.
  const [exact] = describe(tool, ['{"v":9007199254740993}']).checked;
  assert.equal(exact.params.v, "9007199254740993");
});

test("a8_a_default_is_filled_in_where_pi_leaves_it_out", () => {
  const required = { name: "n", type: "number", default: 7 };
  const tool = { name: "defaults", inputs: [required, ...everything.inputs.slice(6, 9)] };
  const { checked } = describe(tool, ["{}", '{"n":null,"limit":null}']);
  for (const { params } of checked)
    assert.deepEqual(params, { n: 7, limit: 10.5, deep: false, kind: "b" });
  assert.ok("error" in askPi(tool, {}));
});

test("jsnumber_prints_as_javascript_does", () => {
  const tool = { name: "numbers", inputs: [{ name: "v", type: "string" }] };
  const many = [...numbers];
  let state = 1;
  for (let i = 0; i < 3000; i++) {
    state = (state * 1103515245 + 12345) % 2147483648;
    many.push((state / 1000) * 10 ** ((state % 600) - 300), state / 1024, -state / 7);
  }
  const { checked } = describe(tool, many.map((number) => textOf({ v: number })));
  many.forEach((number, i) => assert.equal(checked[i].params.v, String(Number(JSON.stringify(number)))));
});

test("r29_no_error_names_a_value_of_a_sensitive_input", () => {
  const secret = "s3cr3t-Value";
  for (const type of ["string", "number", "boolean", "enum"]) {
    const input = { name: "api_token", type, sensitive: true, values: ["one", "two"] };
    const tool = { name: "secret", inputs: [input, { name: "must", type: "string" }] };
    const requests = [{ api_token: secret }, { api_token: [secret] }, { api_tokne: secret }, { [`x`]: secret }];
    const texts = [...requests.map((request) => JSON.stringify(request)),
      `{"api_token":${secret}}`, `{"api_token":"${secret}`, `{"api_token":"${secret}\\ud800"}`,
      `{"api_token":"a","api_token":"${secret}"}`, `{"api_token":"${secret}"} ${secret}`, `"${secret}"`];
    const { checked } = describe(tool, texts);
    assert.ok(!JSON.stringify(checked.map(({ error }) => error)).includes(secret));
    assert.ok(checked.every((answer) => "error" in answer));
  }
});
