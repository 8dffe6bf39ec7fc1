// A tool whose entry is index.sh: each call is one bash process.
//
//   standard input    the parameters as JSON
//   $PARAM_name       each parameter of a name that a shell variable can have: a string as it is,
//                     else its JSON; not where it is null. Exported to what the script starts, but
//                     for sensitive ones and large ones: other processes can read an environment,
//                     and the kernel refuses a large one.
//   $TOOL_DIR         the script's directory;  $TOOL_CALL_ID: the call's id
//   standard output   the text of the result;  standard error: the log
//   descriptor 3      each line is an update
//   exit status       other than 0: the call failed; the text is what it printed to both
//
// The variables are assigned by a prelude that bash reads from descriptor 4 (BASH_ENV), so that no
// value is ever in an argument or in the environment with which bash itself starts.

import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, unlinkSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePipes } from "./pipes.mjs";

const TAIL_MAX = 4096;
const LINE_MAX = 64 * 1024;
const EXPORT_MAX = 32 * 1024;
const EXPORT_ALL_MAX = 256 * 1024;

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function makePrelude(params, secrets) {
  let prelude = "unset BASH_ENV\n";
  let exported = 0;
  for (const [name, value] of Object.entries(params)) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value === null || text.includes("\0")) continue;
    const size = Buffer.byteLength(text);
    const hidden = secrets.includes(name) || size > EXPORT_MAX || exported + size > EXPORT_ALL_MAX;
    if (!hidden) exported += size;
    prelude += `${hidden ? "" : "export "}PARAM_${name}=${quote(text)}\n`;
  }
  return `${prelude}exec 4<&-\n`;
}

// A descriptor from which text can be read, also by the name /dev/fd/N; the file has no name.
function openText(dir, text) {
  const path = join(dir, "text");
  const fd = openSync(path, "wx+", 0o600);
  unlinkSync(path);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
  return fd;
}

function lineReader(onLine) {
  let rest = "";
  return {
    take(chunk) {
      const lines = (rest + chunk.toString("utf8")).split("\n");
      rest = lines.pop().slice(-LINE_MAX);
      lines.forEach(onLine);
    },
    end() {
      if (rest) onLine(rest);
    },
  };
}

// What one script prints: its output up to max bytes, the end of its errors, and its updates.
class Printed {
  #chunks = [];
  #size = 0;
  #max;
  errors = "";

  constructor(max, onUpdate) {
    this.#max = max;
    this.updates = lineReader((text) => onUpdate({ content: [{ type: "text", text }] }));
  }

  get isTooMuch() {
    return this.#size > this.#max;
  }

  get text() {
    return Buffer.concat(this.#chunks).toString("utf8");
  }

  takeOutput(chunk) {
    this.#size += chunk.length;
    if (!this.isTooMuch) this.#chunks.push(chunk);
  }

  takeErrors(chunk) {
    process.stderr.write(chunk);
    this.errors = (this.errors + chunk.toString("utf8")).slice(-TAIL_MAX);
  }
}

function makeResult(printed, child, max) {
  const result = (text, isError) => ({ content: [{ type: "text", text }], ...(isError && { isError }) });
  if (printed.isTooMuch)
    return result(`The tool printed more than the ${max} bytes allowed. Let it write large data to a file and print its path.`, true);
  if (child.exitCode === 0) return result(printed.text.replace(/\n$/, ""));
  const how = child.signalCode ? `ended by ${child.signalCode}` : `exit status ${child.exitCode}`;
  const said = [printed.text, printed.errors].map((text) => text.trim()).filter(Boolean).join("\n");
  return result(said ? `${said}\n(${how})` : `The tool failed without a word (${how}).`, true);
}

// The same shape as loadTool's.
export function loadShellTool(toolDir, entryName, settings) {
  const workDir = mkdtempSync(join(settings.cacheDir ?? tmpdir(), "sh-"));
  process.on("exit", () => rmSync(workDir, { recursive: true, force: true }));
  const pipes = makePipes(workDir, ["output", "errors", "updates"]);

  function start(message, signal) {
    const texts = [
      openText(workDir, JSON.stringify(message.params)),
      openText(workDir, makePrelude(message.params, message.secrets)),
    ];
    try {
      return spawn("bash", [join(toolDir, entryName)], {
        env: { ...process.env, BASH_ENV: "/dev/fd/4", TOOL_DIR: toolDir, TOOL_CALL_ID: message.id },
        stdio: [texts[0], pipes.output.writeFd, pipes.errors.writeFd, pipes.updates.writeFd, texts[1]],
        signal,
        killSignal: "SIGTERM",
      });
    } finally {
      texts.forEach(closeSync);
    }
  }

  function run(message, signal, onUpdate) {
    const printed = new Printed(settings.resultMax, onUpdate);
    for (const pipe of Object.values(pipes)) pipe.drain(() => {}); // of nobody
    pipes.output.onData = (chunk) => printed.takeOutput(chunk);
    pipes.errors.onData = (chunk) => printed.takeErrors(chunk);
    pipes.updates.onData = (chunk) => printed.updates.take(chunk);
    const child = start(message, signal);
    return new Promise((resolve, reject) => {
      child.on("error", (error) => {
        if (error.code === "ENOENT") reject(new Error("bash is required to run this tool but is not installed"));
        else if (error.name !== "AbortError") reject(error);
      });
      // What the script left running may hold the pipes open; it is ended once the call is over.
      child.on("exit", () => {
        for (const pipe of Object.values(pipes)) pipe.drain(pipe.onData);
        printed.updates.end();
        resolve(makeResult(printed, child, settings.resultMax));
      });
    });
  }

  return { isStale: () => false, run }; // bash reads the script at each call
}
