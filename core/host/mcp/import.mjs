// pegfs import mcp: the tools of an MCP server as tool directories.
//
//     node import.mjs DIR PREFIX PROGRAM [ARGUMENT...]
//
// TOOL.md has the inputs that it can say, and the whole schema and annotations as they came; mcp.json
// the server's command and the definition of the tool, word for word.

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "./client.mjs";

const FRONT_MAX = 60 * 1024; // TOOL.md's front matter may have 64 KiB
const [into, prefix, ...command] = process.argv.slice(2);

function fail(text) {
  console.error(`pegfs import: ${text}`);
  process.exitCode = 1;
}

// JSON that is YAML, too: what YAML takes for the end of a line, or for no character, is escaped.
function yaml(value) {
  const whole = (_key, part) => (typeof part === "string" ? Buffer.from(part).toString() : part);
  return JSON.stringify(value, whole).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const TYPES = { string: "string", number: "number", integer: "number", boolean: "boolean" };
const COMPLEX = ["anyOf", "oneOf", "allOf", "not", "$ref", "const"];

// An input as TOOL.md says it; undefined where it cannot.
function inputOf(property, isRequired) {
  const type = TYPES[property?.type];
  if (!type || COMPLEX.some((key) => key in property)) return undefined;
  const { enum: values, default: given, description } = property;
  if (values && (type !== "string" || values.length === 0 || values.some((value) => typeof value !== "string" || value.trim() !== value || !value)))
    return undefined;
  const input = { type: values ? "enum" : type, description: description ?? "" };
  if (values) input.values = [...new Set(values)];
  if (!isRequired) input.optional = true;
  if (typeof given === type) input.default = given;
  return input;
}

function inputsOf(schema) {
  const simple = {}, complex = {};
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const input = inputOf(property, schema.required?.includes(name) ?? false);
    if (input) simple[name] = input;
    else complex[name] = property;
  }
  return { simple, complex };
}

function bodyOf(label, tool, complex) {
  const parts = [`# ${label.replace(/\s+/g, " ")}`, `A tool of the MCP server \`${command.join(" ").replaceAll("`", "'")}\`, which calls it \`${tool.name.replaceAll("`", "'")}\`.`];
  if (Object.keys(complex).length > 0)
    parts.push("Inputs that the table does not have, as JSON Schema (`schema.json` has all):",
      "```json\n" + JSON.stringify(complex, null, 2) + "\n```");
  return parts.join("\n\n") + "\n";
}

function manifest(name, tool, version) {
  const label = tool.title ?? tool.annotations?.title ?? name;
  const schema = tool.inputSchema ?? { type: "object" };
  const { simple, complex } = inputsOf(schema);
  const lines = [`name: ${yaml(name)}`, `label: ${yaml(label)}`,
    `description: ${yaml(tool.description || `${label}, a tool of an MCP server.`)}`, `version: ${version}`, "language: typescript"];
  if (Object.keys(simple).length > 0)
    lines.push("inputs:", ...Object.entries(simple).map(([key, input]) => `  ${yaml(key)}: ${yaml(input)}`));
  if (tool.annotations) lines.push(`annotations: ${yaml(tool.annotations)}`);
  const own = `parameters: ${yaml({ ...schema, type: "object" })}`;
  if (Buffer.byteLength([...lines, own].join("\n")) <= FRONT_MAX) lines.push(own);
  else console.error(`${name}: its schema is too large for TOOL.md, which has the simple inputs alone; mcp.json has all of it`);
  return `---\n${lines.join("\n")}\n---\n\n${bodyOf(label, tool, complex)}`;
}

function versionIn(directory) {
  return Number(/^version: (\d+)$/m.exec(readFileSync(join(directory, "TOOL.md"), "utf8"))?.[1] ?? 0);
}

// Writes one directory, whole; -> what became of it.
function write(tool) {
  const name = prefix + tool.name.replace(/[^A-Za-z0-9_-]/g, "_");
  const target = join(into, name);
  const definition = JSON.stringify({ command, cwd: process.cwd(), tool }, null, 2) + "\n";
  let version = 1;
  if (existsSync(target)) {
    if (!existsSync(join(target, "mcp.json"))) throw new Error(`'${target}' is there already and was not imported; choose another --prefix`);
    if (readFileSync(join(target, "mcp.json"), "utf8") === definition) return `${name} (unchanged)`;
    version = versionIn(target) + 1;
  }
  const made = mkdtempSync(join(into, ".import-"));
  for (const file of ["index.js", "client.mjs"]) copyFileSync(new URL(file, import.meta.url), join(made, file));
  writeFileSync(join(made, "mcp.json"), definition);
  writeFileSync(join(made, "TOOL.md"), manifest(name, tool, version));
  rmSync(target, { recursive: true, force: true });
  renameSync(made, target);
  return name;
}

const client = new Client(command, { onLog: (text) => console.error(text) });
try {
  await client.open();
  const tools = await client.listTools();
  mkdirSync(into, { recursive: true });
  for (const tool of tools) {
    try {
      console.log(write(tool));
    } catch (error) {
      fail(`${tool.name}: ${error.message}`);
    }
  }
  if (tools.length === 0) fail(`the MCP server '${command.join(" ")}' has no tools`);
} catch (error) {
  fail(error.message);
}
await client.close();
