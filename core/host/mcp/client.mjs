// A client of a local MCP server: starts it, speaks lines of JSON with it, ends it.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const SESSION = "2025-11-25";
const STATELESS = "2026-07-28";
const META = "io.modelcontextprotocol/";
const CLIENT = { name: "pegfs", version: "1" };
const END_MS = 1000; // in which a server may end by itself

export class Client {
  #command;
  #process;
  #waiting = new Map(); // id -> { resolve, reject, onProgress }
  #lastId = 0;
  #meta; // of each request, where the server knows no sessions
  #ended;

  // command: [PROGRAM, ARGUMENT...]; onLog gets what the server tells about itself.
  constructor(command, { cwd, onLog = () => {} } = {}) {
    const [program, ...args] = command;
    this.#command = command.join(" ");
    this.#process = spawn(program, args, { cwd, stdio: ["pipe", "pipe", "inherit"] });
    this.#ended = new Promise((resolve) => {
      this.#process.on("error", (error) => this.#fail(`cannot be started: ${error.message}`, resolve));
      this.#process.on("close", (status, signal) => this.#fail(`ended with ${signal ?? `status ${status}`}`, resolve));
    });
    this.#process.stdin.on("error", () => {}); // its end says more
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#onLine(line, onLog));
  }

  #fail(what, resolve) {
    for (const { reject } of this.#waiting.values()) reject(new Error(`The MCP server '${this.#command}' ${what} before it answered.`));
    this.#waiting.clear();
    this.#process.stdin.destroy();
    this.gone = true;
    resolve();
  }

  #send(message) {
    this.#process.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  #onLine(line, onLog) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      onLog(line); // a server that prints to its own protocol
      return;
    }
    const { id, method, params } = message ?? {};
    if (method !== undefined && id !== undefined)
      this.#send(method === "ping" ? { id, result: {} } : { id, error: { code: -32601, message: "no such method" } });
    else if (method === "notifications/progress") this.#waiting.get(params?.progressToken)?.onProgress?.(params);
    else if (method === "notifications/message") onLog(typeof params?.data === "string" ? params.data : JSON.stringify(params?.data));
    else if (this.#waiting.has(id)) this.#answer(id, message);
  }

  #answer(id, { result, error }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) reject(Object.assign(new Error(`${error.message} (MCP error ${error.code})`), { code: error.code }));
    else resolve(result);
  }

  request(method, params = {}, { signal, onProgress } = {}) {
    const id = ++this.#lastId;
    const meta = { ...this.#meta, ...(onProgress && { progressToken: id }), ...params._meta };
    return new Promise((resolve, reject) => {
      if (this.gone) reject(new Error(`The MCP server '${this.#command}' has ended.`));
      this.#waiting.set(id, { resolve, reject, onProgress });
      signal?.addEventListener("abort", () => {
        if (!this.#waiting.delete(id)) return;
        this.#send({ method: "notifications/cancelled", params: { requestId: id, reason: String(signal.reason) } });
        reject(signal.reason);
      });
      this.#send({ id, method, params: Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params });
    });
  }

  // Opens a session, or, with a server that has none, names the protocol's version from here on.
  async open() {
    try {
      await this.request("initialize", { protocolVersion: SESSION, capabilities: {}, clientInfo: CLIENT });
      this.#send({ method: "notifications/initialized" });
    } catch (error) {
      if (error.code === undefined) throw error;
      this.#meta = { [META + "protocolVersion"]: STATELESS, [META + "clientCapabilities"]: {}, [META + "clientInfo"]: CLIENT };
    }
    return this;
  }

  async listTools() {
    const tools = [];
    let cursor;
    do {
      const page = await this.request("tools/list", cursor === undefined ? {} : { cursor });
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  async close() {
    this.#process.stdin.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), END_MS);
    await this.#ended;
    clearTimeout(timer);
  }
}
