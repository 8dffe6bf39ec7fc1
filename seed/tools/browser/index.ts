// Control tabs of the user's Chrome through the Browser Relay, by the Chrome DevTools Protocol.

import { createHash, createHmac, randomBytes } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { dirname, extname, join, resolve } from 'node:path';
import type { Duplex } from 'node:stream';

type ToolResult = { content: Array<{ type: string; text: string }>; isError?: boolean };

type OnUpdate = (partial: { content: Array<{ type: string; text: string }> }) => void;

// Helpers that several tools share: the same text in each (tests/seed/lint.test.mjs compares them),
// because a tool can import nothing but Node's standard library.

/** The longest text given back; more goes to output_path. */
const TEXT_MAX = 50_000;

/** A failure that the agent can act on: its message is the whole error text. */
class Problem extends Error {}

function ok(text: string): ToolResult {
  return { content: [{ type: 'text', text }] };
}

function err(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

/** Any thrown value as an error result; `prefix` heads what is not a Problem. */
function failure(prefix: string, e: unknown): ToolResult {
  const message = e instanceof Error ? e.message : String(e);
  const text = e instanceof Problem ? message : `${prefix}: ${message}`;
  return err(text.length > 10_000 ? `${text.slice(0, 10_000)}…` : text);
}

function capText(text: string): string {
  if (text.length <= TEXT_MAX) return text;
  const splitsPair = /[\uD800-\uDBFF]/.test(text[TEXT_MAX - 1]);
  const end = splitsPair ? TEXT_MAX - 1 : TEXT_MAX;
  const rest = text.length - end;
  return `${text.slice(0, end)}\n… truncated (${rest} more characters); set output_path to get everything.`;
}

/** Progress for the agent. What a listener throws must not end the tool from inside a timer. */
function report(onUpdate: OnUpdate | undefined, text: string): void {
  try {
    onUpdate?.({ content: [{ type: 'text', text }] });
  } catch {
    // The listener's fault; the work goes on without it.
  }
}

function firstNonEmpty(...values: Array<string | undefined>): string | undefined {
  return values.find((value) => value !== undefined && value !== '');
}

/** A string parameter; undefined when it is not given (absent, null or empty). */
function asText(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (!['string', 'number', 'boolean'].includes(typeof value)) throw new Problem(`${name} must be a string.`);
  const text = String(value);
  if (text.includes('\0')) throw new Problem(`${name} must not contain NUL characters.`);
  return text;
}

/** A number parameter within a range; undefined when it is not given. */
function asNumber(name: string, value: unknown, min: number, max: number): number | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || text === '') return undefined;
  const number = Number(text);
  if (typeof value === 'boolean' || !(number >= min && number <= max)) {
    throw new Problem(`${name} must be a number from ${min} to ${max}, not "${text.slice(0, 40)}".`);
  }
  return number;
}

function asBoolean(name: string, value: unknown): boolean | undefined {
  const text = asText(name, value)?.trim().toLowerCase();
  if (text === undefined) return undefined;
  if (text === 'true' || text === '1') return true;
  if (text === 'false' || text === '0') return false;
  throw new Problem(`${name} must be true or false, not "${text.slice(0, 40)}".`);
}

function asChoice(name: string, value: unknown, choices: readonly string[]): string | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || choices.includes(text)) return text;
  throw new Problem(`Unknown ${name}: "${text.slice(0, 40)}". Available: ${choices.join(', ')}.`);
}

/** Where relative paths start: the user's own directory. */
function userRoot(): string {
  return firstNonEmpty(process.env.OFFICER_USER_ROOT, process.env.HOME) ?? process.cwd();
}

/** A path as the agent gave it, made absolute: then no program can take it for an option or a URL. */
function userPath(path: string): string {
  if (path === '~' || path.startsWith('~/')) return resolve(homedir(), path.slice(2));
  return resolve(userRoot(), path);
}

/** Make a directory and what lies above it. (Node's own recursive way never ends below /proc.) */
function makeDirs(path: string): void {
  if (existsSync(path)) return;
  makeDirs(dirname(path));
  try {
    mkdirSync(path);
  } catch (e) {
    // Another call may have made it just now.
    if (!existsSync(path)) throw e;
  }
}

/**
 * Write a file whole or not at all: to a temporary sibling, then renamed. Makes the parent
 * directory; replaces a regular file, never a directory, link or device. Returns what to tell the agent.
 */
function saveFile(path: string, data: string | Uint8Array): string {
  const temporary = join(dirname(path), `.saving-${randomBytes(6).toString('hex')}.tmp`);
  try {
    const old = lstatSync(path, { throwIfNoEntry: false });
    if (old?.isDirectory()) throw new Error('it is a directory; name a file in it');
    if (old && !old.isFile()) throw new Error('it is not a regular file');
    makeDirs(dirname(path));
    writeFileSync(temporary, data, { flag: 'wx' });
    renameSync(temporary, path);
    const size = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    return `${path} (${size} bytes${old ? ', replacing the file that was there' : ''})`;
  } catch (e) {
    rmSync(temporary, { force: true });
    throw new Problem(`Cannot write ${path}: ${e instanceof Error ? e.message : String(e)}.`);
  }
}

// Shared helpers for tools that talk to a server. (The same rule: one text, wherever they stand.)

/** How much is read of the body of an error. */
const HTTP_ERROR_BODY_MAX = 64 * 1024;

/** Secrets shorter than this are words that may stand in any text; they are not looked for. */
const SECRET_MIN = 8;

/** One call's dealings with servers: what ends it, who hears of progress, and what no text may show. */
type Session = { signal?: AbortSignal; onUpdate?: OnUpdate; secrets: Set<string> };

function addSecret(session: Session, secret: string | undefined): void {
  if (secret !== undefined && secret.length >= SECRET_MIN) session.secrets.add(secret);
}

/** A text without the session's secrets, as they are and as a URL or a form has them. */
function redact(session: Session, text: string): string {
  const forms = [...session.secrets].flatMap((secret) => [secret, encodeURIComponent(secret)]);
  forms.sort((a, b) => b.length - a.length);
  return forms.reduce((clean, form) => clean.replaceAll(form, '***'), text);
}

function tell(session: Session, text: string): void {
  report(session.onUpdate, redact(session, text));
}

/** What `work` gives or throws, with the session's secrets taken out. */
async function guarded(session: Session, work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    if (session.signal?.aborted) throw new Problem('Cancelled.');
    const result = await work();
    const content = result.content.map((block) => ({ ...block, text: redact(session, block.text) }));
    return { ...result, content };
  } catch (e) {
    const message = redact(session, e instanceof Error ? e.message : String(e));
    throw e instanceof Problem ? new Problem(message) : new Error(message);
  }
}

/** A token as it may stand in a header; an error tells what is wrong with it without showing it. */
function asToken(name: string, value: unknown): string | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || text === '') return undefined;
  if (text.length <= 4096 && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(text)) return text;
  throw new Problem(`${name} is not a valid token: it is longer than 4096 characters, or has blanks, quotes or other characters that no token has.`);
}

/** A text parameter of at most `max` characters; undefined if it is not given or blank. */
function asShortText(name: string, value: unknown, max: number): string | undefined {
  const text = asText(name, value)?.trim();
  if (text !== undefined && text.length > max) throw new Problem(`${name} is longer than ${max} characters.`);
  return text || undefined;
}

function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** All configured integrations; none if the variable is unset or not a JSON object. */
function resources(): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(firstNonEmpty(process.env.OFFICER_RESOURCES) ?? '{}'));
  } catch {
    return {};
  }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function asString(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

/** A value as one line of at most `max` characters, without control characters. */
function plain(value: unknown, max: number): string {
  const text = asString(value).slice(0, max * 4).replace(/[\s\x00-\x1f\x7f-\x9f]+/g, ' ').trim();
  return text.length > max ? `${text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')}…` : text;
}

function pause(session: Session, ms: number): Promise<void> {
  return new Promise((settle, reject) => {
    if (session.signal?.aborted) throw new Problem('Cancelled.');
    const cancel = (): void => {
      clearTimeout(timer);
      reject(new Problem('Cancelled.'));
    };
    const timer = setTimeout(() => {
      session.signal?.removeEventListener('abort', cancel);
      settle();
    }, ms);
    session.signal?.addEventListener('abort', cancel, { once: true });
  });
}

// ---- parameters -------------------------------------------------------------------------------

const ACTIONS = [
  'status', 'tabs', 'open', 'close', 'focus', 'navigate', 'back', 'forward', 'reload', 'snapshot', 'text', 'click', 'type', 'press', 'select', 'scroll', 'wait', 'evaluate', 'screenshot', 'pdf', 'dialog',
] as const;

type Params = {
  action: string;
  tab?: string;
  url?: string;
  ref?: string;
  selector?: string;
  text?: string;
  submit?: boolean;
  clear?: boolean;
  expression?: string;
  full_page?: boolean;
  accept?: boolean;
  timeout_seconds?: number;
  output_path?: string;
  relay_token?: string;
};

type Request = {
  action: string;
  tab?: string;
  url?: string;
  /** An element of the last snapshot: its number in the browser. */
  node?: number;
  selector?: string;
  text?: string;
  submit: boolean;
  clear: boolean;
  expression?: string;
  fullPage: boolean;
  accept: boolean;
  timeoutMs: number;
  outputPath?: string;
  relayToken?: string;
};

/** What each action cannot do without. */
const NEEDED: Record<string, ReadonlyArray<'url' | 'text' | 'expression' | 'output_path'>> = {
  open: ['url'], navigate: ['url'], type: ['text'], press: ['text'], select: ['text'], evaluate: ['expression'], screenshot: ['output_path'], pdf: ['output_path'],
};
const NEEDS_ELEMENT = ['click', 'type', 'select'];

/** Only pages of the web may be opened: no files of the user's machine, no settings of the browser. */
function asPageUrl(text: string): string {
  const url = parseUrl(text);
  if (url?.href === 'about:blank' || (url && /^https?:$/.test(url.protocol))) return url.href;
  throw new Problem(`"${plain(text, 200)}" cannot be opened: give a whole http or https address, such as https://example.org/page.`);
}

function asRef(value: unknown): number | undefined {
  const text = asText('ref', value)?.trim();
  if (text === undefined || text === '') return undefined;
  const [, digits] = /^\[?e(\d{1,9})\]?$/.exec(text) ?? [];
  if (digits) return Number(digits);
  throw new Problem(`ref must be an element of the last snapshot, such as e12, not "${plain(text, 40)}".`);
}

function readRequest(params: Params): Request {
  const { action, submit = false, clear = true, full_page = false, accept = true, timeout_seconds = 30 } = params ?? {};
  const chosen = asChoice('action', action, ACTIONS);
  if (!chosen) throw new Problem(`action parameter is required. Available: ${ACTIONS.join(', ')}.`);
  const url = asShortText('url', params.url, 8_000);
  const outputPath = asText('output_path', params.output_path);
  const request: Request = {
    action: chosen,
    tab: asShortText('tab', params.tab, 200),
    url: url && asPageUrl(url),
    node: asRef(params.ref),
    selector: asShortText('selector', params.selector, 4_000),
    // An empty text is one to type: it clears the field.
    text: params.text === '' && chosen === 'type' ? '' : asText('text', params.text),
    submit: asBoolean('submit', submit) ?? false,
    clear: asBoolean('clear', clear) ?? true,
    expression: asText('expression', params.expression),
    fullPage: asBoolean('full_page', full_page) ?? false,
    accept: asBoolean('accept', accept) ?? true,
    timeoutMs: (asNumber('timeout_seconds', timeout_seconds, 1, 300) ?? 30) * 1000,
    outputPath: outputPath && userPath(outputPath),
    relayToken: asToken('relay_token', params.relay_token),
  };
  const given = { url: request.url, text: request.text, expression: request.expression, output_path: request.outputPath };
  for (const name of NEEDED[chosen] ?? []) if (given[name] === undefined) throw new Problem(`${name} parameter is required for ${chosen} action.`);
  if (NEEDS_ELEMENT.includes(chosen) && request.node === undefined && !request.selector) {
    throw new Problem(`ref or selector parameter is required for ${chosen} action. Take a snapshot to see the refs.`);
  }
  return request;
}

// ---- the relay --------------------------------------------------------------------------------

/** How the token is shown to the relay: as it is or derived, in a header or in the address. */
type Proof = { token?: string; inQuery: boolean };

type Relay = { session: Session; host: string; port: number; proofs: Proof[]; timeoutMs: number };

const NOT_CONFIGURED = 'Browser Relay is not configured. Ask the user to set it up in Settings → Integrations.';
const NOT_CONNECTED = "No browser is connected to the Browser Relay. Ask the user to open Chrome and click the Browser Relay extension's icon on a tab.";
const ANSWER_MAX = 4 * 1024 * 1024;

function asPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text.trim()) && port >= 1 && port <= 65_535) return port;
  throw new Problem(`The port of the Browser Relay is no port number: "${plain(text, 40)}". Ask the user to correct it in Settings → Integrations.`);
}

/** The ways to show a token, in the order in which they are tried. Newer relays want one derived for their port. */
function proofsOf(session: Session, token: string | undefined, port: number): Proof[] {
  if (token === undefined) return [{ inQuery: false }];
  const derived = createHmac('sha256', token).update(`openclaw-extension-relay-v1:${port}`).digest('hex');
  addSecret(session, token);
  addSecret(session, derived);
  return [{ token, inQuery: false }, { token: derived, inQuery: false }, { token, inQuery: true }, { token: derived, inQuery: true }];
}

/** The relay of the configuration. Chrome answers only to numbers and localhost, so a host name is looked up. */
async function findRelay(session: Session, request: Request): Promise<Relay> {
  const resource = asRecord(resources()['browser-relay']);
  const port = firstNonEmpty(process.env.OFFICER_BROWSER_RELAY_PORT, asString(resource.port));
  if (!port) throw new Problem(NOT_CONFIGURED);
  const token =
    request.relayToken ??
    asToken('OFFICER_BROWSER_RELAY_TOKEN', process.env.OFFICER_BROWSER_RELAY_TOKEN) ??
    asToken('The token of the resource browser-relay', firstNonEmpty(asString(resource.token)));
  const name = firstNonEmpty(asString(resource.host)) ?? '127.0.0.1';
  const number = asPort(port);
  const host = isIP(name) ? name : await lookup(name).then(({ address }) => address, (e: { code?: string }) => {
    throw new Problem(`Cannot find the host of the Browser Relay, ${plain(name, 100)} (${e.code}). Ask the user to check it in Settings → Integrations.`);
  });
  return { session, host, port: number, proofs: proofsOf(session, token, number), timeoutMs: Math.min(request.timeoutMs, 30_000) };
}

function headersFor({ token, inQuery }: Proof): Record<string, string> {
  return token === undefined || inQuery ? {} : { 'x-openclaw-relay-token': token, authorization: `Bearer ${token}` };
}

function pathFor(path: string, { token, inQuery }: Proof): string {
  return token === undefined || !inQuery ? path : `${path}${path.includes('?') ? '&' : '?'}token=${encodeURIComponent(token)}`;
}

function relayProblem(relay: Relay, e: unknown): Problem {
  if (e instanceof Problem) return e;
  if (relay.session.signal?.aborted) return new Problem('Cancelled.');
  const { code, message } = e as { code?: string; message?: string };
  return new Problem(`Cannot reach the Browser Relay at ${relay.host}:${relay.port} (${code ?? message}). Is the Browser Relay running on port ${relay.port}? Ask the user to start it.`);
}

async function readAll(response: IncomingMessage, max: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    size += (chunk as Buffer).length;
    if (size > max) break;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

type Wire = { socket: Duplex; head: Buffer };
type Reply = { status: number; text: string; wire?: Wire };

/** One request to the relay; with `upgrade` it becomes a WebSocket if the relay agrees. */
function askOnce(relay: Relay, path: string, proof: Proof, upgrade: Record<string, string>): Promise<Reply> {
  return new Promise((settle, reject) => {
    const { host, port, session, timeoutMs } = relay;
    const headers = { ...headersFor(proof), ...upgrade };
    const request = httpRequest({ host, port, path: pathFor(path, proof), headers, agent: false, signal: session.signal });
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs / 1000} seconds`)), timeoutMs);
    request.on('response', (response) => {
      readAll(response, response.statusCode === 200 ? ANSWER_MAX : HTTP_ERROR_BODY_MAX).then((text) => settle({ status: response.statusCode ?? 0, text }), reject).finally(() => clearTimeout(timer));
    });
    request.on('upgrade', (response, socket, head) => {
      clearTimeout(timer);
      // From now on the connection is the WebSocket's, which hears of errors itself.
      socket.on('error', () => {});
      settle({ status: response.statusCode ?? 0, text: asString(response.headers['sec-websocket-accept']), wire: { socket, head } });
    });
    request.on('error', (e) => {
      clearTimeout(timer);
      reject(relayProblem(relay, e));
    });
    request.end();
  });
}

/** Ask, with another proof each time that the relay says 401; the one that it takes is used from then on. */
async function ask(relay: Relay, path: string, upgrade: Record<string, string> = {}): Promise<Reply> {
  for (;;) {
    const reply = await askOnce(relay, path, relay.proofs[0], upgrade);
    if (reply.status !== 401) return reply;
    const { token } = relay.proofs[0];
    if (token === undefined) throw new Problem('The Browser Relay wants a token and none is configured. Ask the user to add it in Settings → Integrations.');
    if (relay.proofs.length === 1) throw new Problem('The Browser Relay rejected the token. Ask the user to check it in Settings → Integrations.');
    relay.proofs.shift();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// ---- WebSocket --------------------------------------------------------------------------------

// As much of RFC 6455 as a client needs: text messages, pings and the end. No extensions are asked
// for, so none are used.

const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const MESSAGE_MAX = 256 * 1024 * 1024;
const OP_TEXT = 1;
const OP_CLOSE = 8;
const OP_PING = 9;
const OP_PONG = 10;

/** A frame as a client sends it: masked, whole. */
function frameOf(opcode: number, payload: Buffer): Buffer {
  const mask = randomBytes(4);
  const long = payload.length > 0xffff;
  const head = Buffer.alloc(payload.length < 126 ? 2 : long ? 10 : 4);
  head[0] = 0x80 | opcode;
  head[1] = 0x80 | (payload.length < 126 ? payload.length : long ? 127 : 126);
  if (head.length === 4) head.writeUInt16BE(payload.length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(payload.length), 2);
  const masked = Buffer.from(payload);
  for (let i = 0; i < masked.length; i += 1) masked[i] ^= mask[i & 3];
  return Buffer.concat([head, mask, masked]);
}

type Frame = { opcode: number; isLast: boolean; payload: Buffer };

/** Frames out of the bytes as they come, however they are cut. */
class FrameReader {
  chunks: Buffer[] = [];
  size = 0;
  /** How many bytes must be there before it is worth to look again. */
  needed = 2;

  add(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.size += chunk.length;
  }

  /** The next whole frame, if it is there. */
  next(): Frame | undefined {
    if (this.size < this.needed) return undefined;
    const bytes = this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks);
    this.chunks = [bytes];
    const short = bytes[1] & 0x7f;
    const maskSize = bytes[1] & 0x80 ? 4 : 0;
    const headSize = (short < 126 ? 2 : short === 126 ? 4 : 10) + maskSize;
    this.needed = headSize;
    if (this.size < headSize) return undefined;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length > MESSAGE_MAX) throw new Problem('The browser sent more than 256 MiB at once. Ask for less.');
    this.needed = headSize + length;
    if (this.size < this.needed) return undefined;
    const payload = Buffer.from(bytes.subarray(headSize, this.needed));
    if (maskSize) for (let i = 0; i < length; i += 1) payload[i] ^= bytes[headSize - 4 + (i & 3)];
    const rest = bytes.subarray(this.needed);
    this.chunks = rest.length > 0 ? [rest] : [];
    this.size = rest.length;
    this.needed = 2;
    return { opcode: bytes[0] & 15, isLast: (bytes[0] & 0x80) !== 0, payload };
  }
}

/** Reads messages off a wire and tells of its end, once. */
class WebSocketLink {
  wire: Wire;
  onText: (text: string) => void;
  onEnd: (code: number, reason: string) => void;
  reader = new FrameReader();
  parts: Buffer[] = [];
  partsSize = 0;
  isEnded = false;

  constructor(wire: Wire, onText: (text: string) => void, onEnd: (code: number, reason: string) => void) {
    this.wire = wire;
    this.onText = onText;
    this.onEnd = onEnd;
    wire.socket.on('data', (chunk: Buffer) => this.take(chunk));
    wire.socket.on('close', () => this.end(1006, ''));
    wire.socket.on('error', (e: Error) => this.end(1006, e.message));
    if (wire.head.length > 0) this.take(wire.head);
  }

  take(chunk: Buffer): void {
    try {
      this.reader.add(chunk);
      for (let frame = this.reader.next(); frame && !this.isEnded; frame = this.reader.next()) this.handle(frame);
    } catch (e) {
      this.end(1009, e instanceof Error ? e.message : String(e));
    }
  }

  handle({ opcode, isLast, payload }: Frame): void {
    if (opcode === OP_PING) this.write(OP_PONG, payload);
    else if (opcode === OP_CLOSE) this.end(payload.length >= 2 ? payload.readUInt16BE(0) : 1005, payload.toString('utf8', 2));
    else if (opcode < OP_CLOSE) {
      this.parts.push(payload);
      this.partsSize += payload.length;
      if (this.partsSize > MESSAGE_MAX) throw new Problem('The browser sent more than 256 MiB at once. Ask for less.');
      if (!isLast) return;
      const text = Buffer.concat(this.parts).toString('utf8');
      this.parts = [];
      this.partsSize = 0;
      this.onText(text);
    }
  }

  write(opcode: number, payload: Buffer): void {
    if (!this.isEnded) this.wire.socket.write(frameOf(opcode, payload));
  }

  end(code: number, reason: string): void {
    if (this.isEnded) return;
    this.write(OP_CLOSE, Buffer.from([3, 232]));
    this.isEnded = true;
    this.wire.socket.end();
    // What is left unread must not keep the process waiting.
    setTimeout(() => this.wire.socket.destroy(), 200).unref();
    this.onEnd(code, reason);
  }
}

// ---- the DevTools protocol --------------------------------------------------------------------

type Fields = Record<string, unknown>;
type Waiting = { method: string; sessionId?: string; settle: (result: Fields) => void; reject: (e: Error) => void; timer: NodeJS.Timeout };

/** The browser said no to a command. */
class CommandProblem extends Problem {}

/** No answer came in time. */
class LateProblem extends Problem {}

/** A dialog is open in the page, and nothing else goes on there until it is answered. */
class DialogProblem extends Problem {}

type Event = { method: string; params: Fields; sessionId?: string };

/** A connection to the browser: commands with answers, and events. */
class Cdp {
  session: Session;
  timeoutMs: number;
  link?: WebSocketLink;
  lastId = 0;
  waiting = new Map<number, Waiting>();
  listeners = new Set<(event: Event) => void>();
  ended?: Problem;

  constructor(session: Session, timeoutMs: number) {
    this.session = session;
    this.timeoutMs = timeoutMs;
  }

  start(wire: Wire): void {
    this.link = new WebSocketLink(wire, (text) => this.receive(asRecord(parseJson(text))), (code, reason) => this.fail(endProblem(code, reason)));
    this.session.signal?.addEventListener('abort', this.cancel, { once: true });
    if (this.session.signal?.aborted) this.cancel();
  }

  cancel = (): void => {
    this.fail(new Problem('Cancelled.'));
    this.close();
  };

  close(): void {
    this.session.signal?.removeEventListener('abort', this.cancel);
    this.link?.end(1000, '');
  }

  fail(problem: Problem): void {
    this.ended ??= problem;
    for (const [id] of this.waiting) this.finish(id, undefined, this.ended);
  }

  finish(id: number, result: Fields | undefined, problem?: Error): void {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    this.waiting.delete(id);
    clearTimeout(waiting.timer);
    if (problem) waiting.reject(problem);
    else waiting.settle(result ?? {});
  }

  receive(message: Fields): void {
    if (typeof message.id === 'number') {
      const error = asRecord(message.error);
      const said = plain(firstNonEmpty(asString(error.message), asString(message.error)), 500);
      this.finish(message.id, asRecord(message.result), said ? new CommandProblem(said) : undefined);
      return;
    }
    const event = { method: asString(message.method), params: asRecord(message.params), sessionId: asString(message.sessionId) || undefined };
    if (event.method === 'Page.javascriptDialogOpening') this.stopForDialog(event);
    if (event.method === 'Target.detachedFromTarget') this.stopSession(asString(event.params.sessionId), new Problem('The tab was closed, or the browser let go of it. Look at the tabs with action tabs.'));
    if (event.method === 'Inspector.targetCrashed') this.stopSession(event.sessionId, new Problem('The page crashed. Load it again with action navigate.'));
    for (const listener of this.listeners) listener(event);
  }

  /** A dialog keeps what runs in its page from ever answering. */
  stopForDialog({ params, sessionId }: Event): void {
    const text = plain(params.message, 1_000);
    const problem = new DialogProblem(`A dialog is open: ${plain(params.type, 20)} "${text}". Answer it with action dialog (accept true or false${params.type === 'prompt' ? ', text is what to enter' : ''}).`);
    this.stopSession(sessionId, problem);
  }

  /** What waits for an answer of a tab gets this instead. */
  stopSession(sessionId: string | undefined, problem: Problem): void {
    if (!sessionId) return;
    for (const [id, waiting] of this.waiting) if (waiting.sessionId === sessionId) this.finish(id, undefined, problem);
  }

  send(method: string, params: Fields = {}, sessionId?: string, timeoutMs = this.timeoutMs): Promise<Fields> {
    if (this.ended) return Promise.reject(this.ended);
    this.lastId += 1;
    const id = this.lastId;
    return new Promise((settle, reject) => {
      const late = new LateProblem(`The browser did not answer ${method} within ${timeoutMs / 1000} seconds. If a dialog is open in the tab, answer it with action dialog; else the page is busy: try again later or with a larger timeout_seconds.`);
      const timer = setTimeout(() => this.finish(id, undefined, late), timeoutMs);
      this.waiting.set(id, { method, sessionId, settle, reject, timer });
      this.link?.write(OP_TEXT, Buffer.from(JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })));
    });
  }
}

function endProblem(code: number, reason: string): Problem {
  const detail = [code, plain(reason, 200)].filter(Boolean).join(' ');
  if (code === 1011 || /extension/i.test(reason)) return new Problem(`The browser was disconnected from the Browser Relay (${detail}). ${NOT_CONNECTED.slice(NOT_CONNECTED.indexOf('Ask'))}`);
  return new Problem(`The connection to the browser ended (${detail}). The browser or the Browser Relay may have been closed; try again.`);
}

/** The path of the browser's WebSocket. Host and port of the address are ours, whatever it says. */
async function socketPath(relay: Relay): Promise<string> {
  const reply = await ask(relay, '/json/version');
  if (reply.status === 503) throw new Problem(NOT_CONNECTED);
  if (reply.status !== 200) throw new Problem(`What answers at ${relay.host}:${relay.port} is no Browser Relay (status ${reply.status}). Ask the user to check the port in Settings → Integrations.`);
  const version = parseJson(reply.text);
  if (version === undefined) throw new Problem(`What answers at ${relay.host}:${relay.port} is no Browser Relay. Ask the user to check the port in Settings → Integrations.`);
  const address = parseUrl(asString(asRecord(version).webSocketDebuggerUrl));
  if (!address) throw new Problem(NOT_CONNECTED);
  address.searchParams.delete('token');
  return address.pathname + address.search;
}

async function connect(relay: Relay, request: Request): Promise<Cdp> {
  const key = randomBytes(16).toString('base64');
  const path = await socketPath(relay);
  const reply = await ask(relay, path, { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key });
  if (reply.status === 503) throw new Problem(NOT_CONNECTED);
  if (!reply.wire) throw new Problem(`The Browser Relay refuses the connection (status ${reply.status}${reply.text ? `: ${plain(reply.text, 200)}` : ''}).`);
  if (reply.text !== createHash('sha1').update(key + WEBSOCKET_GUID).digest('base64')) {
    reply.wire.socket.destroy();
    throw new Problem(`What answers at ${relay.host}:${relay.port} does not speak WebSocket as it should.`);
  }
  const cdp = new Cdp(relay.session, Math.max(2_000, request.timeoutMs));
  cdp.start(reply.wire);
  return cdp;
}

// ---- tabs -------------------------------------------------------------------------------------

type Tab = { id: string; title: string; url: string };

/** A tab that commands go to. */
type Page = { cdp: Cdp; tab: Tab; sessionId: string; request: Request; mainFrame?: string };

async function listTabs(cdp: Cdp): Promise<Tab[]> {
  const { targetInfos } = await cdp.send('Target.getTargets');
  return asList(targetInfos).map(asRecord).filter(({ type, url }) => type === 'page' && !/^(devtools|chrome-extension):/.test(asString(url)))
    .map(({ targetId, title, url }) => ({ id: asString(targetId), title: plain(title, 200), url: plain(url, 1_000) }));
}

function describeTabs(tabs: Tab[]): string {
  return tabs.map(({ id, title, url }, i) => `${i + 1}. ${title || '(no title)'}\n   ${url}\n   tab ${id}`).join('\n');
}

/** The tab that is meant: by its id or the beginning of it, else the first. */
async function findTab(cdp: Cdp, wanted: string | undefined): Promise<Tab> {
  const tabs = await listTabs(cdp);
  if (tabs.length === 0) throw new Problem('No tab is attached. Open one with action open, or ask the user to click the Browser Relay extension\'s icon on a tab.');
  if (!wanted) return tabs[0];
  const found = tabs.filter(({ id }) => id === wanted);
  const matching = found.length > 0 ? found : tabs.filter(({ id }) => id.toLowerCase().startsWith(wanted.toLowerCase()));
  if (matching.length === 1) return matching[0];
  throw new Problem(`${matching.length === 0 ? 'There is no tab' : 'More than one tab begins with'} "${plain(wanted, 60)}". Tabs:\n${capText(describeTabs(tabs.slice(0, 50)))}`);
}

async function attach(cdp: Cdp, tab: Tab, request: Request): Promise<Page> {
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId: tab.id, flatten: true }).catch((e: unknown) => {
    if (e instanceof CommandProblem) throw new Problem(`The tab ${tab.id} cannot be reached (${e.message}). Look at the tabs with action tabs.`);
    throw e;
  });
  const page: Page = { cdp, tab, sessionId: asString(sessionId), request };
  const enabled = onPage(page, 'Page.enable', {}, Math.min(request.timeoutMs, 10_000));
  // While a dialog is open the page answers nothing but its dismissal.
  if (request.action === 'dialog') enabled.catch(() => {});
  else await enabled.catch((e: unknown) => {
    if (!(e instanceof LateProblem)) throw e;
    throw new Problem('The tab does not answer. Most likely a dialog is open in it: answer it with action dialog. Otherwise the page is busy; try again later.');
  });
  return page;
}

function onPage(page: Page, method: string, params: Fields = {}, timeoutMs?: number): Promise<Fields> {
  return page.cdp.send(method, params, page.sessionId, timeoutMs);
}

/** Where the tab is now; works while a dialog is open too. */
async function whereabouts(page: Page): Promise<Tab> {
  const { targetInfo } = await page.cdp.send('Target.getTargetInfo', { targetId: page.tab.id });
  const { title, url } = asRecord(targetInfo);
  return { id: page.tab.id, title: plain(title, 200), url: plain(url, 1_000) };
}

async function standing(page: Page): Promise<string> {
  const { id, title, url } = await whereabouts(page);
  return `${title ? `${title}\n` : ''}${url}\ntab ${id}`;
}

/** A script in the page that takes and gives plain data. */
async function evaluate(page: Page, expression: string, timeoutMs?: number): Promise<unknown> {
  const reply = await onPage(page, 'Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true, userGesture: true }, timeoutMs);
  const { exceptionDetails } = reply;
  if (exceptionDetails) throw new Problem(`The page's script failed: ${exceptionText(asRecord(exceptionDetails))}`);
  return asRecord(reply.result).value;
}

function exceptionText(details: Fields): string {
  const { description, value } = asRecord(details.exception);
  return asString(firstNonEmpty(asString(description), value === undefined ? '' : asString(value) || JSON.stringify(value), asString(details.text))).slice(0, 2_000);
}

// ---- loading ----------------------------------------------------------------------------------

type Watch = { loaded: Promise<boolean>; hasStarted: () => boolean; stop: () => void };

/** Watch the page from now on: does something start to load, and has the page loaded? */
function watchLoading(page: Page, timeoutMs: number): Watch {
  let isStarted = false;
  let stop = (): void => {};
  const loaded = new Promise<boolean>((settle) => {
    const finish = (isLoaded: boolean): void => {
      clearTimeout(timer);
      page.cdp.listeners.delete(listen);
      settle(isLoaded);
    };
    const listen = ({ method, params, sessionId }: Event): void => {
      if (sessionId !== page.sessionId) return;
      // Frames inside of the page load for themselves; the page's own navigation has no parent.
      if (method === 'Page.frameRequestedNavigation' || method === 'Page.frameStartedNavigating' || method === 'Page.frameStartedLoading') isStarted ||= isMainFrame(page, params);
      if (method === 'Page.loadEventFired' || isRestored(method, params)) finish(true);
      if (method === 'Page.javascriptDialogOpening') finish(false);
    };
    const timer = setTimeout(() => finish(false), timeoutMs);
    stop = () => finish(false);
    page.cdp.listeners.add(listen);
  });
  return { loaded, hasStarted: () => isStarted, stop };
}

/** Going back may bring a page out of the cache as it was, which fires no load; nor does a place in the same page. */
function isRestored(method: string, params: Fields): boolean {
  return method === 'Page.navigatedWithinDocument' || (method === 'Page.frameNavigated' && params.type === 'BackForwardCacheRestore' && asRecord(params.frame).parentId === undefined);
}

/** In Chrome the id of a tab is also that of its outermost frame; a relay may have ids of its own. */
function isMainFrame(page: Page, params: Fields): boolean {
  const frameId = asString(params.frameId);
  return frameId === page.tab.id || frameId === page.mainFrame || page.mainFrame === undefined;
}

async function findMainFrame(page: Page): Promise<void> {
  const { frameTree } = await onPage(page, 'Page.getFrameTree');
  page.mainFrame = asString(asRecord(asRecord(frameTree).frame).id) || undefined;
}

/** The status of the page's own request, if it is an error's. */
async function errorStatus(page: Page): Promise<string> {
  const status = await evaluate(page, "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0", 5_000).catch(() => 0);
  return Number(status) >= 400 ? `The server answered with status ${Number(status)}.` : '';
}

async function loadingResult(page: Page, isLoaded: boolean): Promise<ToolResult> {
  const late = isLoaded ? '' : `The page is still loading after ${page.request.timeoutMs / 1000} seconds; action wait waits for more.`;
  return ok([await standing(page), isLoaded ? await errorStatus(page) : late].filter(Boolean).join('\n'));
}

async function navigate(page: Page, url: string): Promise<ToolResult> {
  tell(page.cdp.session, `Opening ${plain(url, 200)}...`);
  const watch = watchLoading(page, page.request.timeoutMs);
  try {
    const { errorText, loaderId } = await onPage(page, 'Page.navigate', { url });
    if (errorText) throw new Problem(navigationProblem(url, asString(errorText)));
    // Without a loader it is a place in the same page.
    return await loadingResult(page, loaderId === undefined || (await watch.loaded));
  } finally {
    watch.stop();
  }
}

function navigationProblem(url: string, why: string): string {
  const hint = {
    'net::ERR_NAME_NOT_RESOLVED': 'There is no such host; check the address.',
    'net::ERR_CONNECTION_REFUSED': 'Nothing answers there.',
    'net::ERR_ABORTED': 'The address is a download, or the page stopped it.',
    'net::ERR_INTERNET_DISCONNECTED': 'The browser has no internet.',
  }[why];
  return [`${plain(url, 300)} could not be opened: ${plain(why, 100)}.`, hint].filter(Boolean).join(' ');
}

async function openTab(cdp: Cdp, request: Request): Promise<ToolResult> {
  const { targetId } = await cdp.send('Target.createTarget', { url: 'about:blank' });
  const tab = { id: asString(targetId), title: '', url: 'about:blank' };
  for (let tries = 1; ; tries += 1) {
    try {
      const page = await attach(cdp, tab, request);
      const { content } = request.url === 'about:blank' ? ok(await standing(page)) : await navigate(page, request.url ?? '');
      return ok(`${content[0].text}\nThis is a new tab: pass its id as tab in the next calls.`);
    } catch (e) {
      // A relay hears of the new tab from its extension, a moment later.
      if (!(e instanceof Problem) || !/cannot be reached/.test(e.message) || tries === 10) throw e;
      await pause(cdp.session, 200);
    }
  }
}

async function goInHistory(page: Page, step: number): Promise<ToolResult> {
  const { currentIndex, entries } = await onPage(page, 'Page.getNavigationHistory');
  const entry = asRecord(asList(entries)[Number(currentIndex) + step]);
  if (entry.id === undefined) throw new Problem(`There is no page to go ${step < 0 ? 'back' : 'forward'} to in this tab.`);
  await findMainFrame(page);
  const watch = watchLoading(page, page.request.timeoutMs);
  try {
    await onPage(page, 'Page.navigateToHistoryEntry', { entryId: entry.id });
    return await settled(page, watch, 1_000);
  } finally {
    watch.stop();
  }
}

/** After something that may or may not load a page: wait briefly for a start, and then for its end. */
async function settled(page: Page, watch: Watch, startMs: number): Promise<ToolResult> {
  let isLoaded: boolean | undefined;
  void watch.loaded.then((value) => { isLoaded = value; });
  for (let waited = 0; waited < startMs && !watch.hasStarted() && isLoaded === undefined; waited += 50) await pause(page.cdp.session, 50);
  if (watch.hasStarted() && isLoaded === undefined) isLoaded = await watch.loaded;
  return loadingResult(page, isLoaded ?? true);
}

async function reload(page: Page): Promise<ToolResult> {
  const watch = watchLoading(page, page.request.timeoutMs);
  try {
    await onPage(page, 'Page.reload');
    return await loadingResult(page, await watch.loaded);
  } finally {
    watch.stop();
  }
}

// ---- snapshot ---------------------------------------------------------------------------------

/** What a person could act on: these get a ref. */
const INTERACTIVE = new Set(
  'button link textbox searchbox combobox checkbox radio switch slider spinbutton menuitem menuitemcheckbox menuitemradio tab option treeitem listbox ComboBoxMenuSelect ComboBoxSelect PopUpButton DisclosureTriangle Date DateTime InputTime ColorWell'.split(' '),
);
const SILENT = new Set(['none', 'presentation', 'generic', 'InlineTextBox', 'LineBreak', 'ListMarker', 'GenericContainer', 'LayoutTable', 'LayoutTableRow', 'LayoutTableCell', 'RootWebArea', 'Section', 'paragraph', 'LabelText', 'MenuListPopup']);
const STATES = ['checked', 'pressed', 'selected', 'expanded', 'disabled', 'required', 'readonly', 'focused', 'level', 'valuetext'];

type Outline = { lines: string[]; notes: string[]; size: number };
const SNAPSHOT_MAX = 20 * 1024 * 1024;

function axText(value: unknown): string {
  return plain(asRecord(value).value, 300);
}

function propertiesOf(node: Fields): Map<string, unknown> {
  return new Map(asList(node.properties).map(asRecord).map(({ name, value }) => [asString(name), asRecord(value).value]));
}

function statesOf(properties: Map<string, unknown>): string {
  const states = STATES.map((name) => {
    const value = properties.get(name);
    if (value === undefined || value === false || value === 'false' || value === '') return name === 'expanded' && value === false ? 'collapsed' : '';
    return value === true || value === 'true' ? name : `${name} ${plain(value, 60)}`;
  });
  return states.filter(Boolean).join(', ');
}

/** The text in an element that has no name of its own, as far as it is near. */
function textBelow(node: Fields, byId: Map<string, Fields>, depth = 4): string {
  const below = depth > 0 ? asList(node.childIds).slice(0, 10).map((id) => byId.get(asString(id))) : [];
  const texts = below.map((child) => (child === undefined ? '' : axText(child.role) === 'StaticText' ? axText(child.name) : textBelow(child, byId, depth - 1)));
  return plain(texts.filter(Boolean).join(' '), 100);
}

/** One line of the outline: what it is, what it says, how it stands, and its ref. */
function describeNode(node: Fields, byId: Map<string, Fields>): string {
  const role = axText(node.role);
  const name = axText(node.name) || (role === 'generic' ? textBelow(node, byId) : '');
  const value = axText(node.value);
  const properties = propertiesOf(node);
  const isUsable = INTERACTIVE.has(role) || (properties.get('focusable') === true && role !== 'RootWebArea');
  const ref = isUsable && node.backendDOMNodeId !== undefined ? ` [e${Number(node.backendDOMNodeId)}]` : '';
  const url = plain(properties.get('url'), 200);
  const more = [value && value !== name ? `value "${value}"` : '', statesOf(properties)].filter(Boolean).join(', ');
  return `${role}${name ? ` "${name}"` : ''}${ref}${more ? ` (${more})` : ''}${role === 'link' && url ? ` → ${url}` : ''}`;
}

function isShown(node: Fields): boolean {
  const role = axText(node.role);
  if (node.ignored === true) return false;
  return !SILENT.has(role) || (role === 'generic' && propertiesOf(node).get('focusable') === true);
}

/** The accessibility tree of one frame as an outline; frames inside of it where they stand. */
async function outlineFrame(page: Page, frame: Fields, indent: number, outline: Outline): Promise<void> {
  const frameId = asString(asRecord(frame.frame).id);
  const { nodes } = await onPage(page, 'Accessibility.getFullAXTree', { frameId });
  const byId = new Map(asList(nodes).map(asRecord).map((node) => [asString(node.nodeId), node]));
  const inner = await innerFrames(page, asList(frame.childFrames).map(asRecord));
  const root = [...byId.values()].find(({ parentId }) => parentId === undefined);
  const stack: Array<{ node: Fields; depth: number; said: string }> = root ? [{ node: root, depth: indent, said: '' }] : [];
  for (let at = stack.pop(); at && outline.size < SNAPSHOT_MAX; at = stack.pop()) {
    const { node, depth, said } = at;
    const name = axText(node.name);
    // Text that its element is already named by would stand there twice.
    const isRepeated = axText(node.role) === 'StaticText' && (name === '' || said.includes(name));
    const shown = isShown(node) && !isRepeated;
    if (shown) {
      const line = `${'  '.repeat(depth)}- ${axText(node.role) === 'StaticText' ? name : describeNode(node, byId)}`;
      outline.lines.push(line);
      outline.size += line.length;
    }
    const child = inner.get(Number(node.backendDOMNodeId));
    if (child) await outlineInner(page, child, depth + 1, outline);
    const below = asList(node.childIds).map((id) => byId.get(asString(id))).filter((next) => next !== undefined);
    for (const next of below.reverse()) stack.push({ node: next, depth: Math.min(depth + (shown ? 1 : 0), 30), said: shown ? name || said : said });
  }
}

/** A frame may be of another site and in another process, where this session does not reach. */
async function outlineInner(page: Page, frame: Fields, indent: number, outline: Outline): Promise<void> {
  try {
    await outlineFrame(page, frame, indent, outline);
  } catch (e) {
    if (!(e instanceof CommandProblem)) throw e;
    outline.lines.push(`${'  '.repeat(indent)}- (the content of this frame cannot be read; open its address in a tab: ${plain(asRecord(frame.frame).url, 300)})`);
  }
}

/** The frames inside of a frame, by the element that holds each. */
async function innerFrames(page: Page, frames: Fields[]): Promise<Map<number, Fields>> {
  const found = new Map<number, Fields>();
  for (const frame of frames.slice(0, 100)) {
    const owner = await onPage(page, 'DOM.getFrameOwner', { frameId: asRecord(frame.frame).id }).catch((e: unknown) => {
      if (e instanceof CommandProblem) return {} as Fields;
      throw e;
    });
    if (owner.backendNodeId !== undefined) found.set(Number(owner.backendNodeId), frame);
  }
  return found;
}

async function snapshot(page: Page): Promise<ToolResult> {
  const { frameTree } = await onPage(page, 'Page.getFrameTree');
  const outline: Outline = { lines: [], notes: [], size: 0 };
  await onPage(page, 'Accessibility.enable');
  await onPage(page, 'DOM.enable');
  await outlineFrame(page, asRecord(frameTree), 0, outline);
  if (outline.lines.length === 0) outline.lines.push('(The page shows nothing.)');
  return longResult(page, outline.lines.join('\n'), `${outline.lines.length} lines`);
}

/** A text that may be long: into the file if one is named, else up to the cap. */
async function longResult(page: Page, text: string, what: string): Promise<ToolResult> {
  const where = await standing(page);
  const { outputPath } = page.request;
  if (outputPath) return ok(`${what} saved to ${saveFile(outputPath, `${text}\n`)}.\n${where}`);
  return ok(capText(`${where}\n\n${text}`));
}

// ---- elements ---------------------------------------------------------------------------------

type Target = { objectId: string; name: string };

function goneProblem(name: string): Problem {
  return new Problem(`There is no element ${name} in the page (any more). Take a new snapshot.`);
}

/** The element of the request, if it names one. */
async function findElement(page: Page): Promise<Target | undefined> {
  const { node, selector } = page.request;
  if (node !== undefined) {
    const name = `e${node}`;
    const { object } = await onPage(page, 'DOM.resolveNode', { backendNodeId: node }).catch((e: unknown) => {
      throw e instanceof CommandProblem ? goneProblem(name) : e;
    });
    return { objectId: asString(asRecord(object).objectId), name };
  }
  if (!selector) return undefined;
  const reply = await onPage(page, 'Runtime.evaluate', { expression: `document.querySelector(${JSON.stringify(selector)})` });
  if (reply.exceptionDetails) throw new Problem(`"${plain(selector, 200)}" is no valid CSS selector.`);
  const { objectId } = asRecord(reply.result);
  if (!objectId) throw new Problem(`No element matches the selector "${plain(selector, 200)}". Take a snapshot to see what is there.`);
  return { objectId: asString(objectId), name: plain(selector, 100) };
}

async function theElement(page: Page): Promise<Target> {
  const target = await findElement(page);
  if (!target) throw new Problem(`ref or selector parameter is required for ${page.request.action} action.`);
  return target;
}

/** Call a function with the element as `this`; it takes and gives plain data. */
async function callOn(page: Page, target: Target, code: string, ...args: unknown[]): Promise<unknown> {
  const reply = await onPage(page, 'Runtime.callFunctionOn', {
    objectId: target.objectId, functionDeclaration: code, arguments: args.map((value) => ({ value })), returnByValue: true, awaitPromise: true, userGesture: true,
  });
  if (reply.exceptionDetails) throw new Problem(`The page's script failed: ${exceptionText(asRecord(reply.exceptionDetails))}`);
  return asRecord(reply.result).value;
}

type Box = { x: number; y: number; width: number; height: number };

/** Where the element is in the window, scrolled into it; nothing if it is not drawn. */
async function boxOf(page: Page, target: Target): Promise<Box | undefined> {
  try {
    await onPage(page, 'DOM.scrollIntoViewIfNeeded', { objectId: target.objectId });
    const { quads } = await onPage(page, 'DOM.getContentQuads', { objectId: target.objectId });
    const boxes = asList(quads).map((quad) => asList(quad).map(Number)).map((quad) => {
      const [xs, ys] = [quad.filter((_, i) => i % 2 === 0), quad.filter((_, i) => i % 2 === 1)];
      const [x, y] = [Math.min(...xs), Math.min(...ys)];
      return { x, y, width: Math.max(...xs) - x, height: Math.max(...ys) - y };
    });
    return boxes.find(({ width, height }) => width > 0 && height > 0);
  } catch (e) {
    if (!(e instanceof CommandProblem)) throw e;
    if (/detached|no node|could not find/i.test(e.message)) throw goneProblem(target.name);
    return undefined;
  }
}

const DESCRIBE = `function () {
  const label = this.getAttribute?.('aria-label') || this.innerText || this.value || this.getAttribute?.('name') || '';
  return (this.tagName ?? '').toLowerCase() + (label ? ' "' + String(label).trim().slice(0, 80) + '"' : '');
}`;

/** What lies over the element at a point of the window, if anything does. Frames are not looked through. */
const COVERED_BY = `function (x, y) {
  if (this.ownerDocument.defaultView !== this.ownerDocument.defaultView.top) return '';
  let at = document.elementFromPoint(x, y);
  while (at?.shadowRoot?.elementFromPoint(x, y) && at.shadowRoot.elementFromPoint(x, y) !== at) at = at.shadowRoot.elementFromPoint(x, y);
  if (!at || at === this || this.contains(at) || at.contains(this) || at.closest('label')?.control === this || this.closest('label')?.contains(at)) return '';
  return at.tagName.toLowerCase() + (at.id ? '#' + at.id : '');
}`;

async function mouseClick(page: Page, box: Box): Promise<void> {
  const place = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await onPage(page, 'Input.dispatchMouseEvent', { type: 'mouseMoved', ...place });
  await onPage(page, 'Input.dispatchMouseEvent', { type: 'mousePressed', ...place, button: 'left', buttons: 1, clickCount: 1 });
  await onPage(page, 'Input.dispatchMouseEvent', { type: 'mouseReleased', ...place, button: 'left', buttons: 0, clickCount: 1 });
}

/** Do something to the page and tell what came of it: a new address, a new tab, a dialog. A tab in the background would not react. */
async function acting(page: Page, act: () => Promise<string>): Promise<ToolResult> {
  await onPage(page, 'Page.bringToFront');
  const before = new Set((await listTabs(page.cdp)).map(({ id }) => id));
  await findMainFrame(page);
  const watch = watchLoading(page, page.request.timeoutMs);
  try {
    const done = await act();
    const { content } = await settled(page, watch, 300);
    const opened = (await listTabs(page.cdp)).filter(({ id }) => !before.has(id));
    return ok([done, content[0].text, opened.length ? `A new tab was opened:\n${describeTabs(opened)}` : ''].filter(Boolean).join('\n'));
  } catch (e) {
    if (!(e instanceof DialogProblem)) throw e;
    return ok(`${e.message}\n${await standing(page)}`);
  } finally {
    watch.stop();
  }
}

async function click(page: Page): Promise<ToolResult> {
  const target = await theElement(page);
  return acting(page, async () => {
    const what = plain(await callOn(page, target, DESCRIBE), 120);
    const box = await boxOf(page, target);
    if (!box) {
      await callOn(page, target, 'function () { this.click(); }');
      return `Clicked ${target.name} (${what}), which is not visible, by script.`;
    }
    const cover = plain(await callOn(page, target, COVERED_BY, box.x + box.width / 2, box.y + box.height / 2), 80);
    await mouseClick(page, box);
    return `Clicked ${target.name} (${what}).${cover ? ` Something lies over it there and got the click: ${cover}.` : ''}`;
  });
}

// ---- keyboard ---------------------------------------------------------------------------------

type Key = { key: string; code: string; windowsVirtualKeyCode: number; text?: string };

const NAMED_KEYS: Record<string, Key> = Object.fromEntries(
  [
    ['Enter', 13, '\r'], ['Tab', 9], ['Escape', 27], ['Backspace', 8], ['Delete', 46], ['Insert', 45], ['Home', 36], ['End', 35], ['PageUp', 33], ['PageDown', 34],
    ['ArrowLeft', 37], ['ArrowUp', 38], ['ArrowRight', 39], ['ArrowDown', 40],
    ...Array.from({ length: 12 }, (_, i) => [`F${i + 1}`, 112 + i]),
  ].map(([name, code, text]) => [String(name).toLowerCase(), { key: String(name), code: String(name), windowsVirtualKeyCode: Number(code), ...(text ? { text: String(text) } : {}) }]),
);
const KEY_ALIASES: Record<string, string> = { return: 'enter', esc: 'escape', del: 'delete', left: 'arrowleft', right: 'arrowright', up: 'arrowup', down: 'arrowdown' };
const MODIFIERS: Record<string, number> = { alt: 1, option: 1, control: 2, ctrl: 2, meta: 4, cmd: 4, command: 4, shift: 8 };

function keyNamed(name: string): Key | undefined {
  const lower = name.toLowerCase();
  if (lower === 'space' || name === ' ') return { key: ' ', code: 'Space', windowsVirtualKeyCode: 32, text: ' ' };
  const named = NAMED_KEYS[KEY_ALIASES[lower] ?? lower];
  if (named) return named;
  if ([...name].length !== 1) return undefined;
  if (/^[a-z]$/i.test(name)) return { key: name, code: `Key${name.toUpperCase()}`, windowsVirtualKeyCode: name.toUpperCase().charCodeAt(0), text: name };
  if (/^\d$/.test(name)) return { key: name, code: `Digit${name}`, windowsVirtualKeyCode: name.charCodeAt(0), text: name };
  return { key: name, code: '', windowsVirtualKeyCode: 0, text: name };
}

/** `Control+Shift+a` as a key and its modifiers; `+` itself is a key too. */
function parseKeys(text: string): { key: Key; modifiers: number } {
  const names = text === '+' ? ['+'] : text.replace(/\+\+$/, '+Plus').split('+').map((name) => (name === 'Plus' ? '+' : name.trim() || name));
  const key = keyNamed(names[names.length - 1]);
  const modifiers = names.slice(0, -1).map((name) => MODIFIERS[name.toLowerCase()]);
  if (key && !modifiers.includes(undefined as never)) return { key, modifiers: modifiers.reduce((sum, bit) => sum | bit, 0) };
  throw new Problem(`"${plain(text, 60)}" is no key. Give one key such as Enter, Escape, ArrowDown or a, with modifiers as in Control+a. Use action type for text.`);
}

async function pressKey(page: Page, text: string): Promise<void> {
  const { key, modifiers } = parseKeys(text);
  const { text: typed, ...rest } = key;
  // With Control, Alt or Meta a key is a command and writes nothing.
  const writes = typed !== undefined && (modifiers & 7) === 0;
  const base = { ...rest, modifiers };
  await onPage(page, 'Input.dispatchKeyEvent', { ...base, type: writes ? 'keyDown' : 'rawKeyDown', ...(writes ? { text: typed } : {}) });
  await onPage(page, 'Input.dispatchKeyEvent', { ...base, type: 'keyUp' });
}

async function focusOn(page: Page, target: Target): Promise<void> {
  await onPage(page, 'DOM.focus', { objectId: target.objectId }).catch((e: unknown) => {
    if (!(e instanceof CommandProblem)) throw e;
    if (/focusable/i.test(e.message)) throw new Problem(`${target.name} cannot be typed into. Take a snapshot and use the ref of a textbox.`);
    throw goneProblem(target.name);
  });
}

/** Prepare a field for typing: say what it is, and put the selection on what is to be replaced, or at the end. */
const PREPARE_FIELD = `function (clear) {
  const kind = this.tagName === 'INPUT' ? this.type : this.tagName === 'TEXTAREA' ? 'textarea' : this.isContentEditable ? 'editable' : this.tagName.toLowerCase();
  if (this.disabled) return 'disabled';
  if (this.readOnly) return 'readonly';
  if (kind === 'editable') {
    const selection = this.ownerDocument.getSelection();
    selection.selectAllChildren(this);
    if (!clear) selection.collapseToEnd();
  } else if (this.select) {
    if (clear) this.select();
    else try { this.setSelectionRange(this.value.length, this.value.length); } catch { /* a number has no places */ }
  }
  return kind;
}`;

/** A field that is chosen in, not typed into, gets its value as a whole. */
const SET_VALUE = `function (value) {
  const set = Object.getOwnPropertyDescriptor(this.constructor.prototype, 'value').set;
  const before = this.value;
  set.call(this, value);
  if (value !== '' && this.value === '') {
    set.call(this, before);
    return '';
  }
  this.dispatchEvent(new Event('input', { bubbles: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
  return this.value;
}`;
const VALUE_FIELDS = ['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'];
const NO_TEXT_FIELDS = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'select'];

async function fill(page: Page, target: Target, kind: string, text: string): Promise<string> {
  if (VALUE_FIELDS.includes(kind)) {
    const now = asString(await callOn(page, target, SET_VALUE, text));
    if (text !== '' && now === '') throw new Problem(`The field ${target.name} (${kind}) does not take "${plain(text, 60)}". Dates are written as 2025-03-31, times as 14:30, colours as #ff0000.`);
    return `Set ${target.name} (${kind}) to "${plain(now, 60)}".`;
  }
  if (text !== '') await onPage(page, 'Input.insertText', { text });
  else if (page.request.clear) await pressKey(page, 'Delete');
  return `Typed ${text.length} characters into ${target.name} (${kind}).`;
}

async function type(page: Page): Promise<ToolResult> {
  const { text = '', submit, clear } = page.request;
  const target = await theElement(page);
  return acting(page, async () => {
    await boxOf(page, target);
    await focusOn(page, target);
    const kind = plain(await callOn(page, target, PREPARE_FIELD, clear), 40);
    if (kind === 'disabled' || kind === 'readonly') throw new Problem(`The field ${target.name} is ${kind}; nothing can be typed into it.`);
    if (kind === 'file') throw new Problem('Files cannot be uploaded with this tool. Ask the user to do it.');
    if (NO_TEXT_FIELDS.includes(kind)) throw new Problem(`${target.name} is no text field but a ${kind}. Use action ${kind === 'select' ? 'select' : 'click'}.`);
    const done = await fill(page, target, kind, text);
    if (!submit) return done;
    await pressKey(page, 'Enter');
    return `${done} Pressed Enter.`;
  });
}

async function press(page: Page): Promise<ToolResult> {
  const keys = page.request.text ?? '';
  parseKeys(keys);
  const target = await findElement(page);
  return acting(page, async () => {
    if (target) await focusOn(page, target);
    await pressKey(page, keys);
    return `Pressed ${plain(keys, 60)}.`;
  });
}

const CHOOSE_OPTION = `function (wanted) {
  if (this.tagName !== 'SELECT') return { problem: 'is no list of options but a ' + this.tagName.toLowerCase() + '; click it instead' };
  if (this.disabled) return { problem: 'is disabled' };
  const options = [...this.options];
  const clean = (text) => text.replace(/\\s+/g, ' ').trim();
  const option = options.find((o) => o.value === wanted) ?? options.find((o) => clean(o.label || o.text) === clean(wanted)) ?? options.find((o) => clean(o.label || o.text).toLowerCase() === clean(wanted).toLowerCase());
  if (!option) return { problem: 'has no option "' + wanted.slice(0, 80) + '"; it has: ' + options.slice(0, 50).map((o) => clean(o.label || o.text)).join(', ') };
  if (option.disabled) return { problem: 'has that option, but it is disabled' };
  option.selected = true;
  this.dispatchEvent(new Event('input', { bubbles: true }));
  this.dispatchEvent(new Event('change', { bubbles: true }));
  return { chosen: clean(option.label || option.text) };
}`;

async function select(page: Page): Promise<ToolResult> {
  const target = await theElement(page);
  return acting(page, async () => {
    const { chosen, problem } = asRecord(await callOn(page, target, CHOOSE_OPTION, page.request.text));
    if (problem) throw new Problem(`${target.name} ${plain(problem, 2_000)}.`);
    return `Selected "${plain(chosen, 200)}" in ${target.name}.`;
  });
}

// ---- other actions ----------------------------------------------------------------------------

async function scroll(page: Page): Promise<ToolResult> {
  const target = await findElement(page);
  if (target) {
    if (!(await boxOf(page, target))) throw new Problem(`${target.name} is not visible, so it cannot be scrolled to.`);
  } else {
    const way = (page.request.text ?? 'down').trim().toLowerCase();
    const moves: Record<string, string> = { down: '0, innerHeight * 0.9', up: '0, -innerHeight * 0.9', top: '0, -1e9', bottom: '0, 1e9' };
    const pixels = Number(way);
    const move = moves[way] ?? (Number.isFinite(pixels) && way !== '' ? `0, ${pixels}` : undefined);
    if (!move) throw new Problem(`Unknown way to scroll: "${plain(way, 40)}". Available: down, up, top, bottom, a number of pixels, or a ref or selector.`);
    await evaluate(page, `scrollBy({ left: 0, top: [${move}][1], behavior: 'instant' })`);
  }
  const [y, height, all] = asList(await evaluate(page, '[scrollY, innerHeight, document.documentElement.scrollHeight].map(Math.round)'));
  return ok(`The window shows ${Number(y)} to ${Number(y) + Number(height)} of ${Number(all)} pixels.\n${await standing(page)}`);
}

/** What the wait is for, as a script that says whether it is there. */
function awaited({ text, selector, node }: Request): { what: string; script: string } {
  if (node !== undefined) throw new Problem('wait takes a text or a selector, not a ref.');
  if (selector) return { what: `the selector "${plain(selector, 100)}"`, script: `(() => { const e = document.querySelector(${JSON.stringify(selector)}); return !!e && (e.getClientRects().length > 0 || e.tagName === 'OPTION'); })()` };
  if (text) return { what: `the text "${plain(text, 100)}"`, script: `(document.body?.innerText ?? '').replace(/\\s+/g, ' ').includes(${JSON.stringify(text.replace(/\s+/g, ' '))})` };
  return { what: 'the page to have loaded', script: "document.readyState === 'complete'" };
}

async function wait(page: Page): Promise<ToolResult> {
  const { what, script } = awaited(page.request);
  const started = Date.now();
  tell(page.cdp.session, `Waiting for ${what}...`);
  for (;;) {
    const left = page.request.timeoutMs - (Date.now() - started);
    if (left <= 0) throw new Problem(`Waited ${page.request.timeoutMs / 1000} seconds for ${what}; it did not come. Take a snapshot to see what is there.`);
    const isThere = await evaluate(page, script, Math.max(1_000, left)).catch((e: unknown) => {
      // A page that is just replaced by another has nothing to answer with.
      if (e instanceof CommandProblem) return false;
      if (e instanceof Problem && e.message.includes('SyntaxError')) throw new Problem(`"${plain(page.request.selector, 200)}" is no valid CSS selector.`);
      throw e;
    });
    if (isThere === true) return ok(`Waited ${((Date.now() - started) / 1000).toFixed(1)} seconds for ${what}.\n${await standing(page)}`);
    await pause(page.cdp.session, 200);
  }
}

/** A value as the agent may read it: text as it is, data as JSON. */
function shownValue({ type: kind, value, unserializableValue, description }: Fields): string {
  if (unserializableValue !== undefined) return asString(unserializableValue);
  if (kind === 'undefined') return 'undefined';
  if (typeof value === 'string') return value;
  return value === undefined ? plain(description, 1_000) : JSON.stringify(value, null, 2);
}

async function runScript(page: Page, expression: string, more: Fields): Promise<Fields> {
  return onPage(page, 'Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true, userGesture: true, ...more }).catch((e: unknown) => {
    if (e instanceof CommandProblem) throw new Problem(`The expression's value cannot be returned (${e.message}). Return plain data: texts, numbers, lists, records.`);
    throw e;
  });
}

async function runExpression(page: Page): Promise<ToolResult> {
  const { expression = '', outputPath } = page.request;
  let reply = await runScript(page, expression, {});
  // An await outside of a function is no JavaScript but for the console's kind. Nothing has run yet.
  const isSyntax = asRecord(asRecord(reply.exceptionDetails).exception).className === 'SyntaxError';
  if (isSyntax && /\bawait\b/.test(expression)) reply = await runScript(page, expression, { replMode: true });
  if (reply.exceptionDetails) throw new Problem(`The expression failed: ${exceptionText(asRecord(reply.exceptionDetails))}`);
  const text = shownValue(asRecord(reply.result));
  return outputPath ? ok(`${text.length} characters saved to ${saveFile(outputPath, `${text}\n`)}.`) : ok(capText(text));
}

async function pageText(page: Page): Promise<ToolResult> {
  const target = await findElement(page);
  const text = asString(target ? await callOn(page, target, "function () { return this.innerText ?? this.textContent ?? ''; }") : await evaluate(page, "document.body?.innerText ?? document.documentElement?.textContent ?? ''"));
  return longResult(page, text.replace(/\n{3,}/g, '\n\n').trim() || '(The page has no text.)', `${text.length} characters`);
}

/** Chrome draws no more than this in one picture. */
const PICTURE_MAX = 16_384;

/** The part of the page to draw: all of it, or an element. */
async function clipOf(page: Page): Promise<Fields> {
  const target = await findElement(page);
  const box = target && (await boxOf(page, target));
  if (target && !box) throw new Problem(`${target.name} is not visible, so there is nothing to draw.`);
  if (!box && !page.request.fullPage) return {};
  const metrics = await onPage(page, 'Page.getLayoutMetrics');
  const { width, height } = asRecord(metrics.cssContentSize);
  const { pageX, pageY } = asRecord(metrics.cssVisualViewport);
  const clip = box
    ? { x: box.x + Number(pageX), y: box.y + Number(pageY), width: box.width, height: box.height }
    : { x: 0, y: 0, width: Math.min(Number(width), PICTURE_MAX), height: Math.min(Number(height), PICTURE_MAX) };
  return { clip: { ...clip, scale: 1 }, captureBeyondViewport: true };
}

async function screenshot(page: Page): Promise<ToolResult> {
  const path = page.request.outputPath ?? '';
  const formats: Record<string, string> = { '.jpg': 'jpeg', '.jpeg': 'jpeg', '.webp': 'webp' };
  const format = formats[extname(path).toLowerCase()] ?? 'png';
  // Nothing is drawn of a tab that lies behind another.
  await onPage(page, 'Page.bringToFront');
  const { data } = await onPage(page, 'Page.captureScreenshot', { format, ...(format === 'png' ? {} : { quality: 85 }), ...(await clipOf(page)) });
  const saved = saveFile(path, Buffer.from(asString(data), 'base64'));
  return ok(`Screenshot (${format}) saved to ${saved}.\n${await standing(page)}`);
}

async function pdf(page: Page): Promise<ToolResult> {
  const { data } = await onPage(page, 'Page.printToPDF', { printBackground: true, preferCSSPageSize: true }).catch((e: unknown) => {
    if (e instanceof CommandProblem) throw new Problem(`This browser cannot print to PDF (${e.message}). Use action screenshot with full_page.`);
    throw e;
  });
  const saved = saveFile(page.request.outputPath ?? '', Buffer.from(asString(data), 'base64'));
  return ok(`PDF saved to ${saved}.\n${await standing(page)}`);
}

async function answerDialog(page: Page): Promise<ToolResult> {
  const { accept, text } = page.request;
  await onPage(page, 'Page.handleJavaScriptDialog', { accept, ...(text === undefined ? {} : { promptText: text }) }).catch((e: unknown) => {
    if (e instanceof CommandProblem) throw new Problem(`No dialog is open in this tab (${e.message}).`);
    throw e;
  });
  return ok(`${accept ? 'Accepted' : 'Dismissed'} the dialog.\n${await standing(page)}`);
}

async function closeTab(cdp: Cdp, request: Request): Promise<ToolResult> {
  if (!request.tab) throw new Problem(`tab parameter is required for close action. Tabs:\n${capText(describeTabs((await listTabs(cdp)).slice(0, 50)))}`);
  const tab = await findTab(cdp, request.tab);
  await cdp.send('Target.closeTarget', { targetId: tab.id });
  for (let tries = 0; (await listTabs(cdp)).some(({ id }) => id === tab.id); tries += 1) {
    if (tries === 50) throw new Problem(`The tab ${tab.id} does not close. A dialog may ask whether to leave the page: answer it with action dialog.`);
    await pause(cdp.session, 100);
  }
  return ok(`Closed the tab "${tab.title}" (${tab.url}).`);
}

async function focusTab(cdp: Cdp, request: Request): Promise<ToolResult> {
  const tab = await findTab(cdp, request.tab);
  await cdp.send('Target.activateTarget', { targetId: tab.id });
  return ok(`Brought to the front: ${tab.title || '(no title)'}\n${tab.url}\ntab ${tab.id}`);
}

async function tabList(cdp: Cdp): Promise<ToolResult> {
  const tabs = await listTabs(cdp);
  return ok(capText(tabs.length === 0 ? 'No tab is attached. Open one with action open.' : describeTabs(tabs)));
}

/** How things stand with relay and browser; that none is connected is an answer here, no error. */
async function status(relay: Relay, request: Request): Promise<ToolResult> {
  const state = await ask(relay, '/extension/status');
  const where = `The Browser Relay answers at ${relay.host}:${relay.port}.`;
  if (state.status === 200 && asRecord(parseJson(state.text)).connected === false) return ok(`${where}\n${NOT_CONNECTED}`);
  let cdp: Cdp | undefined;
  try {
    cdp = await connect(relay, request);
    const { product } = await cdp.send('Browser.getVersion');
    const tabs = await listTabs(cdp);
    return ok(`${where}\nThe browser is connected (${plain(product, 100)}); tabs: ${tabs.length}.`);
  } catch (e) {
    if (e instanceof Problem && e.message === NOT_CONNECTED) return ok(`${where}\n${NOT_CONNECTED}`);
    throw e;
  } finally {
    cdp?.close();
  }
}

const PAGE_ACTIONS: Record<string, (page: Page) => Promise<ToolResult>> = {
  navigate: (page) => navigate(page, page.request.url ?? ''),
  back: (page) => goInHistory(page, -1),
  forward: (page) => goInHistory(page, 1),
  reload, snapshot, click, type, press, select, scroll, wait, screenshot, pdf,
  text: pageText,
  evaluate: runExpression,
  dialog: answerDialog,
};

async function act(session: Session, request: Request): Promise<ToolResult> {
  const relay = await findRelay(session, request);
  if (request.action === 'status') return status(relay, request);
  const cdp = await connect(relay, request);
  try {
    if (request.action === 'tabs') return await tabList(cdp);
    if (request.action === 'open') return await openTab(cdp, request);
    if (request.action === 'close') return await closeTab(cdp, request);
    if (request.action === 'focus') return await focusTab(cdp, request);
    const page = await attach(cdp, await findTab(cdp, request.tab), request);
    return await PAGE_ACTIONS[request.action](page);
  } finally {
    cdp.close();
  }
}

// ---- entry ------------------------------------------------------------------------------------

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const request = readRequest(params);
    const session: Session = { signal, onUpdate, secrets: new Set() };
    return await guarded(session, () => act(session, request));
  } catch (e) {
    return failure('Browser failed', e);
  }
}
