// Makes of each host one text that needs no other file: for a container that has Node or Python, but
// none of the files of pegfs (core/host/enter). Run by make:
//
//     node core/host/bundle.mjs LIB_DIR        writes host/node/bundle.cjs and host/python/bundle.py
//
// ES modules cannot be read from a descriptor with their imports, CommonJS can: jiti, with which tools
// are loaded anyway, translates.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const libDir = resolve(process.argv[2]);
const read = (...names) => readFileSync(join(libDir, ...names), "utf8");

const list = (dir, ending) => readdirSync(join(libDir, "host", dir)).filter((name) => name.endsWith(ending)).sort();

const NODE_ENTRY = "node/host.mjs";
const NODE_MODULES = ["node", "sh"].flatMap((dir) => list(dir, ".mjs").map((name) => `${dir}/${name}`));
const PYTHON_ENTRY = "host.py", PYTHON_BUNDLE = "bundle.py";
const PYTHON_MODULES = list("python", ".py").filter((name) => name !== PYTHON_ENTRY && name !== PYTHON_BUNDLE);
const NAME = "/pegfs-host.cjs"; // of no file: it shows in stack traces

const { createJiti } = createRequire(join(libDir, "package.json"))("jiti");
const jiti = createJiti(import.meta.url, { fsCache: false, moduleCache: false });

function translate(name) {
  const source = read("host", name).replaceAll("import.meta.url", JSON.stringify(`file://${NAME}`));
  return jiti.transform({ source, filename: `/${name}`, async: false, ts: false });
}

const moduleOf = (name, code) =>
  `${JSON.stringify(name)}: function (exports, require, module) {\n${code}\n},\n`;

// The package's own entry does this, with imports that would look for files.
const JITI = `
const { createRequire } = require("node:module");
const createJiti = require("jiti/dist/jiti.cjs");
const onError = (error) => { throw error; };
const transform = (...args) => require("jiti/dist/babel.cjs")(...args);
exports.createJiti = (id, options = {}) =>
  createJiti(id, { transform, ...options }, { onError, nativeImport: (id) => import(id), createRequire });
`;

const modules = NODE_MODULES.map((name) => moduleOf(name, translate(name)));
modules.push(moduleOf("jiti", JITI));
for (const name of ["dist/jiti.cjs", "dist/babel.cjs"])
  modules.push(moduleOf(`jiti/${name}`, read("node_modules/jiti", name)));

writeFileSync(join(libDir, "host/node/bundle.cjs"), `
const sources = {
${modules.join("")}};
const loaded = new Map();
function load(name) {
  if (!loaded.has(name)) {
    const module = { exports: {} };
    loaded.set(name, module);
    const near = (path) => require("node:path").posix.join(name, "..", path);
    sources[name].call(module.exports, module.exports, (path) => {
      const found = path.startsWith(".") ? near(path) : path;
      return found in sources ? load(found) : require(path);
    }, module);
  }
  return loaded.get(name).exports;
}
load(${JSON.stringify(NODE_ENTRY)});
`);

// A Python string takes what JSON escapes.
const sources = Object.fromEntries(PYTHON_MODULES.map((name) => [name.slice(0, -3), read("host/python", name)]));
writeFileSync(join(libDir, "host/python", PYTHON_BUNDLE),
  `PEGFS_SOURCES = ${JSON.stringify(sources)}\nexec(compile(${JSON.stringify(read("host/python", PYTHON_ENTRY))}, "pegfs-host.py", "exec"))\n`);
