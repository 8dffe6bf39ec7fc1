// An extension of the pi coding agent: every tool of a pegfs tree becomes a tool of pi, and runs through
// its `call` file. The tree is that of PEGFS_MOUNT, else /officer/tools; docs/integrations.md tells how
// this file is installed.
//
// What pi does and does not do with a tool, and so what is done here:
// - it takes no `isError` from a tool that returns: the hook `tool_result` says it, and the content stays;
// - it fills in no default, and makes 0, false or "" of null: pegfs fills them in, so an input with a
//   default is optional here, and null is left out;
// - it cuts nothing: a long text is cut as its own tools cut it, and says where the whole is;
// - it takes texts and pictures only: a block of another type becomes a text;
// - a tool without `promptSnippet` is not in its list of tools.
//
// No call holds a thread: `call` is read without waiting, again and again. A descriptor that goes
// away, with pi itself for one, cancels the call.
import { constants, type Stats } from "node:fs";
import { type FileHandle, mkdir, open, readFile, rmdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ExtensionAPI, formatSize, truncateHead } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

const MOUNT = process.env.PEGFS_MOUNT || "/officer/tools";
const OWN_TOOLS = new Set(["read", "bash", "edit", "write", "grep", "find", "ls"]);
const SLOWEST_LOOK_MS = 50;
const GIVE_UP_MS = 5000; // after cancelling: pegfs kills a tool that does not end after two seconds
const READ_SIZE = 65536;

type Property = { type: string; enum?: string[]; description?: string; default?: unknown };
type Schema = { properties: Record<string, Property>; required?: string[] };
// What tools.json and .pegfs/formats say of one tool. `directory` is its name in the tree, `name` one that every API takes.
type Tool = { name: string; directory: string; label: string; description: string; schema: Schema };
type Block = { type: string; text?: string; [key: string]: unknown };
type Result = { content: Block[]; details?: unknown; isError?: boolean };
type OnUpdate = ((partial: { content: any[]; details: unknown }) => void) | undefined;

// ---- which tools there are

// pi's own tools are not replaced by one that happens to have their name.
function nameInPi(name: string): string {
  return OWN_TOOLS.has(name) ? `${name}_tool` : name;
}

// An input that some API takes no name of is left out, as in .pegfs/formats/typebox.json.
function pick(schema: Schema, names: Set<string>): Schema {
  return {
    properties: Object.fromEntries(Object.entries(schema.properties).filter(([name]) => names.has(name))),
    required: schema.required?.filter((name) => names.has(name)),
  };
}

async function loadJson(name: string): Promise<any> {
  return JSON.parse(await readFile(join(MOUNT, name), "utf8"));
}

async function loadTools(): Promise<Tool[]> {
  const [tools, taken, names] = await Promise.all(
    ["tools.json", ".pegfs/formats/typebox.json", ".pegfs/formats/names.json"].map(loadJson));
  const schemas = new Map<string, Schema>(tools.map((tool: any) => [tool.name, tool.inputSchema]));
  return taken.filter((tool: any) => schemas.has(names[tool.name])).map((tool: any) => ({
    name: nameInPi(tool.name),
    directory: names[tool.name],
    label: tool.label,
    description: tool.description,
    schema: pick(schemas.get(names[tool.name])!, new Set(Object.keys(tool.parameters.properties))),
  }));
}

// The same for as long as the tree's content is: a text that changes gets another number.
async function treeMark(): Promise<string> {
  const { ino, mtimeMs }: Stats = await stat(join(MOUNT, "tools.json"));
  return `${ino} ${mtimeMs}`;
}

// ---- parameters

function typeOf(property: Property) {
  const { type, enum: values, ...options } = property;
  if (values) return Type.Unsafe<string>({ type: "string", enum: values, ...options });
  if (type === "number") return Type.Number(options);
  if (type === "boolean") return Type.Boolean(options);
  return Type.String(options);
}

function parametersOf(schema: Schema) {
  const required = new Set(schema.required ?? []);
  const entries = Object.entries(schema.properties).map(([name, property]) =>
    [name, required.has(name) && property.default === undefined ? typeOf(property) : Type.Optional(typeOf(property))]);
  return Type.Object(Object.fromEntries(entries));
}

function withoutNulls(request: unknown): any {
  if (typeof request !== "object" || request === null || Array.isArray(request)) return request;
  return Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null));
}

// ---- results

function cut(text: string, whole: string): string {
  const kept = truncateHead(text);
  if (!kept.truncated) return text;
  // A first line that is too long by itself is cut as well.
  const shown = kept.firstLineExceedsLimit ? Buffer.from(text).subarray(0, kept.maxBytes).toString() : kept.content;
  return `${shown}\n\n[Cut: ${kept.totalLines} lines, ${formatSize(kept.totalBytes)} in all. The whole text: ${whole}]`;
}

function blockOf(block: Block, whole: string): Block {
  if (block.type === "text" && typeof block.text === "string") return { type: "text", text: cut(block.text, whole) };
  if (block.type === "image" && typeof block.data === "string") return block;
  return { type: "text", text: cut(JSON.stringify(block), whole) };
}

function detailsOf({ details }: Result): object {
  if (details === undefined || details === null) return {};
  return typeof details === "object" && !Array.isArray(details) ? details : { details };
}

// ---- a call

function isCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException)?.code ?? "");
}

// pi's id of the call, as far as it is one of pegfs; its own have 13 hexadecimal digits.
function idOf(toolCallId: string): string {
  const id = toolCallId.replace(/[^A-Za-z0-9._-]/g, "_").replace(/^[^A-Za-z0-9]+/, "").slice(0, 56);
  return id === "" || /^[0-9a-f]{13}$/.test(id) ? `call-${id}` : id;
}

// A directory of the call's own, by which it can be followed and cancelled; null where there can be none.
async function reserve(tool: Tool, toolCallId: string): Promise<string | null> {
  const id = idOf(toolCallId);
  for (let attempt = 1; attempt < 100; attempt++) {
    const directory = join(MOUNT, tool.directory, "calls", attempt === 1 ? id : `${id}-${attempt}`);
    try {
      await mkdir(directory);
      return directory;
    } catch (error) {
      if (!isCode(error, "EEXIST")) return null;
    }
  }
  return null;
}

// What is written to a file line by line, without waiting for more. One that is not there has none.
class Lines {
  private rest = Buffer.alloc(0);
  private position = 0;

  constructor(private readonly path: string) {}

  async read(): Promise<string[]> {
    let file: FileHandle | undefined;
    try {
      file = await open(this.path, "r");
      const buffer = Buffer.alloc(READ_SIZE);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length, this.position);
        if (bytesRead === 0) break;
        this.position += bytesRead;
        this.rest = Buffer.concat([this.rest, buffer.subarray(0, bytesRead)]);
      }
    } catch {
      // Progress is a comfort: the result says what counts.
    } finally {
      await file?.close();
    }
    const end = this.rest.lastIndexOf(10) + 1;
    const lines = this.rest.subarray(0, end).toString().split("\n").slice(0, -1);
    this.rest = this.rest.subarray(end);
    return lines;
  }
}

// The bytes that are there; null where the answer is still to come.
async function readSome(file: FileHandle, buffer: Buffer): Promise<Buffer | null> {
  try {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    if (isCode(error, "EAGAIN", "EINTR")) return null;
    throw error;
  }
}

class Call {
  private readonly progress: Lines | null;

  constructor(
    private readonly tool: Tool,
    private readonly directory: string | null,
    private readonly signal: AbortSignal | undefined,
    private readonly onUpdate: OnUpdate,
  ) {
    this.progress = directory && onUpdate ? new Lines(join(directory, "progress")) : null;
  }

  // Where a person, or the model, finds what the call left.
  get place(): string {
    return this.directory ?? join(MOUNT, this.tool.directory);
  }

  async run(request: unknown): Promise<Result> {
    const file = await open(join(this.place, "call"), constants.O_RDWR | constants.O_NONBLOCK);
    try {
      const refusal = await this.send(file, request);
      return this.parse(await this.answer(file), refusal);
    } finally {
      await file.close();
    }
  }

  // A request that is refused is answered like any other: with the reason.
  private async send(file: FileHandle, request: unknown): Promise<unknown> {
    try {
      await file.writeFile(JSON.stringify(request));
      return undefined;
    } catch (error) {
      return error;
    }
  }

  private async answer(file: FileHandle): Promise<Buffer> {
    const pieces: Buffer[] = [];
    const buffer = Buffer.alloc(READ_SIZE);
    let pause = 1;
    let giveUp = Infinity;
    for (;;) {
      const piece = await readSome(file, buffer).catch(() => Buffer.alloc(0));
      if (piece?.length === 0) break;
      if (piece) {
        pieces.push(Buffer.from(piece));
        continue;
      }
      if (this.signal?.aborted && giveUp === Infinity) {
        await this.cancel();
        giveUp = Date.now() + GIVE_UP_MS;
      }
      if (Date.now() > giveUp) break;
      await this.tell();
      await this.wait(pause);
      pause = Math.min(pause * 2, SLOWEST_LOOK_MS);
    }
    await this.tell();
    return Buffer.concat(pieces);
  }

  private async cancel(): Promise<void> {
    if (!this.directory) return; // closing the file does it
    await writeFile(join(this.directory, "cancel"), "cancelled by pi\n").catch(() => {});
  }

  private async tell(): Promise<void> {
    for (const line of (await this.progress?.read()) ?? [])
      try {
        const partial = JSON.parse(line);
        const content = partial.content.map((block: Block) => blockOf(block, join(this.place, "progress")));
        this.onUpdate?.({ content, details: partial.details });
      } catch {
        // A line that is cut off by a limit is none.
      }
  }

  private wait(ms: number): Promise<void> {
    if (this.signal?.aborted) ms = Math.max(ms, 10);
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      if (!this.signal?.aborted) this.signal?.addEventListener("abort", done, { once: true });
    });
  }

  private parse(bytes: Buffer, refusal: unknown): Result {
    const failed = (text: string): Result => ({ content: [{ type: "text", text }], isError: true });
    try {
      const result = JSON.parse(bytes.toString());
      if (Array.isArray(result.content)) return result;
    } catch {
      // Below.
    }
    if (this.signal?.aborted) return failed(`The call of ${this.tool.name} was cancelled.`);
    if (refusal) return failed(`The call of ${this.tool.name} was refused: ${(refusal as Error).message}`);
    return failed(`The call of ${this.tool.name} left no result; ${this.place} has what is known of it.`);
  }
}

// ---- the extension

export default async function (pi: ExtensionAPI) {
  const known = new Map<string, string>(); // name -> what was registered
  const gone = new Set<string>(); // registered, and no longer in the tree
  const failed = new Set<string>(); // ids of calls whose result is an error
  let mark = "";
  let complaint = "";

  async function execute(tool: Tool, id: string, params: unknown, signal: AbortSignal | undefined, onUpdate: OnUpdate) {
    if (signal?.aborted) throw new Error(`The call of ${tool.name} was cancelled.`);
    const directory = await reserve(tool, id);
    const call = new Call(tool, directory, signal, onUpdate);
    const result = await call.run(params).catch(async (error) => {
      if (directory) await rmdir(directory).catch(() => {}); // nothing came of it
      throw isCode(error, "ENOENT") ? new Error(`The tool ${tool.name} is no longer in ${MOUNT}.`) : error;
    });
    if (result.isError === true) failed.add(id);
    return {
      content: result.content.map((block) => blockOf(block, join(call.place, "result.txt"))) as any[],
      details: { ...detailsOf(result), call: call.place },
    };
  }

  function register(tool: Tool) {
    pi.registerTool({
      name: tool.name,
      label: tool.label,
      description: tool.description,
      promptSnippet: tool.description.split("\n", 1)[0],
      promptGuidelines: [`Each tool of ${MOUNT} has instructions: read ${MOUNT}/NAME/prompt.md before you use one for the first time.`],
      parameters: parametersOf(tool.schema),
      prepareArguments: withoutNulls,
      execute: (id, params, signal, onUpdate) => execute(tool, id, params, signal, onUpdate as OnUpdate),
    });
  }

  // Registers what is new or different; returns the names that are there.
  async function load(): Promise<Set<string>> {
    const tools = await loadTools();
    for (const tool of tools) {
      const text = JSON.stringify(tool);
      if (known.get(tool.name) !== text) register(tool);
      known.set(tool.name, text);
    }
    return new Set(tools.map((tool) => tool.name));
  }

  // pi has no way to take a tool back, but it need not be active. Others than ours are left as they are.
  function activate(there: Set<string>) {
    const active = new Set(pi.getActiveTools());
    const before = active.size;
    let back = 0;
    for (const name of known.keys())
      if (!there.has(name)) {
        gone.add(name);
        active.delete(name);
      } else if (gone.delete(name)) {
        active.add(name);
        back++;
      }
    if (active.size !== before || back > 0) pi.setActiveTools([...active]);
  }

  // Whether it is the tree of before; a tree that is away for a moment leaves all as it is.
  async function refresh(apply: (there: Set<string>) => void) {
    try {
      const now = await treeMark();
      if (now === mark) return;
      apply(await load());
      mark = now;
      complaint = "";
    } catch (error) {
      complaint = `The tools of ${MOUNT} cannot be looked at: ${(error as Error).message}`;
    }
  }

  await refresh(() => {});
  pi.on("session_start", async (_event, ctx) => {
    await refresh(activate);
    if (complaint && ctx.hasUI) ctx.ui.notify(complaint, "warning");
  });
  pi.on("before_agent_start", async () => refresh(activate));
  pi.on("tool_result", async (event) => (failed.delete(event.toolCallId) ? { isError: true } : undefined));
}
