// Loads a tool's entry file as the pi agent does, with jiti, and knows later whether the files it
// came from have changed.

import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { createJiti } from "jiti";

const PREPARED_MAX = 50; // files of one tool
const CODE = /\.(json|[cm]?[jt]sx?)$/;

// CommonJS modules and JSON files, which jiti leaves to Node.
const nativeModules = createRequire(import.meta.url).cache;

// A failure of the tool that has its whole text already.
export class ToolFault extends Error {
  constructor(kind, text) {
    super(text);
    this.kind = kind;
  }
}

function fingerprint(path) {
  const st = statSync(path, { bigint: true, throwIfNoEntry: false });
  return st ? `${st.dev}:${st.ino}:${st.size}:${st.mtimeNs}:${st.ctimeNs}` : "none";
}

// The files a tool was loaded from. A file that changed at about the time it was read may have been
// read before or after: it counts as changed, which costs one more load and no wrong answer.
class Files {
  #seen = new Map(); // path -> fingerprint

  add(path, sinceMs) {
    if (this.#seen.has(path)) return;
    const st = statSync(path, { throwIfNoEntry: false });
    this.#seen.set(path, st && st.ctimeMs < sinceMs - 20 ? fingerprint(path) : "in doubt");
  }

  haveChanged() {
    for (const [path, before] of this.#seen) if (fingerprint(path) !== before) return true;
    return false;
  }
}

function makeLoader(entry, cacheDir) {
  let fsCache = false;
  if (cacheDir) {
    mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
    fsCache = cacheDir;
  }
  return createJiti(entry, { moduleCache: false, fsCache, interopDefault: true });
}

const HOW =
  "Write in it: export async function execute(toolCallId, params, signal, onUpdate) { ... } " +
  "that returns { content: [{ type: \"text\", text }] }.";

// R37, R100 to R102: only a named export will do. `exports` is what the module made, untouched.
function findExecute(exports, entryName) {
  const isObject = exports !== null && (typeof exports === "object" || typeof exports === "function");
  const isModule = isObject && (exports.__esModule === true || exports[Symbol.toStringTag] === "Module");
  if (isModule && typeof exports.execute === "function") return exports.execute;
  const missing = `${entryName} has no named export "execute"`;
  if (isModule && "execute" in exports)
    throw new ToolFault("export", `The export "execute" of ${entryName} is no function but ${typeof exports.execute}. ${HOW}`);
  if (!isModule && typeof exports?.execute === "function")
    throw new ToolFault("export", `${missing}: it sets module.exports, which is no export. ${HOW}`);
  if (isModule && typeof exports.default?.execute === "function")
    throw new ToolFault("export", `${missing}: the function is a member of its default export. ${HOW}`);
  const names = isObject ? Object.keys(exports).filter((name) => name !== "__esModule") : [];
  const has = names.length > 0 ? `it exports ${names.slice(0, 20).join(", ")}` : "it exports nothing";
  throw new ToolFault("export", `${missing}: ${has}. ${HOW}`);
}

// Loads dir/entryName. Returns { run(message, signal, onUpdate), isStale() }; throws a ToolFault or
// what the tool threw.
export async function loadTool(dir, entryName, { cacheDir, generated }) {
  const entry = join(dir, entryName);
  const sinceMs = Date.now();
  const modules = {}; // filled by jiti: path -> module
  const files = new Files();
  const addLoaded = () => {
    for (const path of [...Object.keys(modules), ...Object.keys(nativeModules)])
      if (!path.includes("/node_modules/")) files.add(path, sinceMs);
  };
  const tool = {
    isStale() {
      addLoaded(); // also what was imported while the tool ran
      return files.haveChanged();
    },
  };
  let source;
  try {
    source = readFileSync(entry, "utf8");
  } catch (error) {
    throw new ToolFault("load", `${entryName} cannot be read: ${error.message}`);
  }
  const jiti = makeLoader(entry, cacheDir);
  // What pi's jiti.import() does, but with a table of modules that is ours to look into, and with
  // ES syntax in an index.js translated whatever a package.json beside it says (A19).
  await jiti.evalModule(source, {
    id: entry,
    filename: entry,
    ext: extname(entry),
    cache: modules,
    async: true,
    forceTranspile: true,
  });
  const execute = findExecute(modules[entry].exports, entryName);
  tool.run = ({ id, params }, signal, onUpdate) => execute(id, params, signal, onUpdate);
  addLoaded();
  // Native ES modules are in no table; those beside the entry are found here.
  for (const name of readdirSync(dir))
    if (CODE.test(name) && !generated.includes(name)) files.add(join(dir, name), sinceMs);
  return tool;
}

// Fills the cache for dir/entryName and the TypeScript beside it without running anything of it.
export async function prepareTool(dir, entryName, cacheDir) {
  const jiti = makeLoader(join(dir, entryName), cacheDir);
  const names = readdirSync(dir).filter((name) => name !== entryName && /\.[cm]?ts$/.test(name));
  for (const name of [entryName, ...names.slice(0, PREPARED_MAX)]) {
    const filename = join(dir, name);
    // As loadTool asks for an entry, and as jiti itself does for what an entry imports.
    const source = readFileSync(filename, "utf8");
    await jiti.transform({ source, filename, ts: /\.[cm]?ts$/.test(name), async: true, jsx: false });
  }
}
