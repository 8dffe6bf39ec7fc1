// Fetch an address and give the main content of what is there as Markdown, text or clean HTML.

import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lookup as dnsLookup } from 'node:dns';
import { existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest, validateHeaderName, validateHeaderValue } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { brotliDecompress, constants as zlibConstants, gunzip, inflate, inflateRaw } from 'node:zlib';

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

function asInteger(name: string, value: unknown, min: number, max: number): number | undefined {
  const number = asNumber(name, value, min, max);
  if (number !== undefined && !Number.isSafeInteger(number)) {
    throw new Problem(`${name} must be a whole number, not ${number}.`);
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

function hasCommand(cmd: string): boolean {
  try {
    execSync(`which ${cmd}`, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Check early that programs are there; `debianPackage` tells the user what to install. */
function requireCommands(cmds: readonly string[], debianPackage: string): void {
  for (const cmd of cmds) {
    if (hasCommand(cmd)) continue;
    throw new Problem(`${cmd} is required but not installed in the container. (Debian package: ${debianPackage})`);
  }
}

/** What a child program needs of the environment; our tokens and settings are not its business. */
function childEnv(): NodeJS.ProcessEnv {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'TESSDATA_PREFIX', 'FONTCONFIG_FILE', 'FONTCONFIG_PATH'];
  const env: NodeJS.ProcessEnv = { LC_ALL: 'C.UTF-8', OMP_THREAD_LIMIT: '1' };
  for (const name of names) if (process.env[name] !== undefined) env[name] = process.env[name];
  return env;
}

type RunOptions = {
  timeoutMs: number;
  signal?: AbortSignal;
  input?: string;
  cwd?: string;
  env?: Record<string, string>;
  maxOutput?: number;
  maxError?: number;
  onOutput?: (chunk: string) => void;
};

/** `stopped` says why we killed the program; `stderr` is the tail of what it wrote. */
type RunResult = { code: number | null; stdout: Buffer; stderr: string; stopped?: 'timeout' | 'overflow' };

/**
 * Run a program with an argument array, never through a shell. Standard input is `input` or nothing;
 * its output is kept, or given to `onOutput` as it comes. It is ended (SIGTERM, then SIGKILL) at the
 * time limit, on cancellation, and when it writes more than `maxOutput` bytes to be kept. Cancellation
 * and a program that cannot be started reject with a Problem.
 */
function run(cmd: string, args: readonly string[], options: RunOptions): Promise<RunResult> {
  const { timeoutMs, signal, input, cwd, onOutput } = options;
  const { maxOutput = 16 * 1024 * 1024, maxError = 64 * 1024 } = options;
  const env = { ...childEnv(), ...options.env };
  return new Promise((settle, reject) => {
    if (signal?.aborted) throw new Problem('Cancelled.');
    const stdin = input === undefined ? 'ignore' : 'pipe';
    const child = spawn(cmd, args, { cwd, env, stdio: [stdin, 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    let size = 0;
    let stderr = '';
    let stopped: 'timeout' | 'overflow' | 'cancelled' | undefined;
    let killTimer: NodeJS.Timeout | undefined;
    const stop = (why: typeof stopped): void => {
      if (stopped) return;
      stopped = why;
      child.kill('SIGTERM');
      killTimer = setTimeout(() => child.kill('SIGKILL'), 2_000);
    };
    const timer = setTimeout(() => stop('timeout'), timeoutMs);
    const cancel = (): void => stop('cancelled');
    const cleanUp = (): void => {
      clearTimeout(timer);
      clearTimeout(killTimer);
      signal?.removeEventListener('abort', cancel);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (onOutput) onOutput(chunk.toString());
      else if (size <= maxOutput) chunks.push(chunk);
      else stop('overflow');
    });
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString()).slice(-maxError);
    });
    // A program that ends before it has read its input: its exit status tells the story.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
    child.on('error', (e) => {
      cleanUp();
      reject(new Problem(`Cannot run ${cmd}: ${e.message}.`));
    });
    child.on('close', (code) => {
      cleanUp();
      if (stopped === 'cancelled') reject(new Problem(`Cancelled: ${cmd} was stopped.`));
      else settle({ code, stdout: Buffer.concat(chunks), stderr, stopped });
    });
  });
}

/** The end of a program's error output, for an error text. */
function lastLines(text: string, count = 20): string {
  return text.trim().split('\n').slice(-count).join('\n');
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

const FORMATS = ['markdown', 'text', 'html', 'raw'] as const;
const URL_MAX = 8_000;

/** Headers that are the transport's own business. */
const OWN_HEADERS = /^(host|connection|keep-alive|content-.*|transfer-encoding|accept-encoding|upgrade|te|trailer|expect|proxy-.*|range|if-.*)$/;

type Params = {
  url: string;
  format?: string;
  extract?: string;
  max_chars?: number;
  start?: number;
  timeout_seconds?: number;
  headers?: string;
  include_links?: boolean;
  output_path?: string;
};

type Request = {
  url: URL;
  format: string;
  /** The main content only, or the whole page. */
  article: boolean;
  max: number;
  start: number;
  timeoutMs: number;
  headers: Record<string, string>;
  links: boolean;
  outputPath?: string;
};

/** The extra headers: a JSON object of texts. */
function readHeaders(text: string | undefined): Record<string, string> {
  if (text === undefined) return {};
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(parseObject(text))) {
    if (typeof value !== 'string' && typeof value !== 'number') throw new Problem(`headers: the value of "${plain(name, 60)}" must be a text.`);
    const key = name.toLowerCase();
    if (OWN_HEADERS.test(key)) throw new Problem(`headers: "${plain(name, 60)}" cannot be set.`);
    try {
      validateHeaderName(key);
      validateHeaderValue(key, String(value));
    } catch {
      throw new Problem(`headers: "${plain(name, 60)}" is no valid header.`);
    }
    headers[key] = String(value);
  }
  return headers;
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Problem('headers must be a JSON object as a string, such as {"Accept-Language": "de"}.');
}

/** An address that may be asked for: http or https, without a name and password. */
function asTarget(text: string, base?: URL): URL {
  const shown = plain(text, 200);
  const url = parseUrl(text, base);
  if (!url) throw new Problem(`"${shown}" is no valid address. Give a whole one, such as https://example.org/page.`);
  if (!/^https?:$/.test(url.protocol)) throw new Problem(`Refused: only http and https addresses can be fetched, not ${plain(url.protocol, 30)}`);
  if (url.username || url.password) throw new Problem('Refused: the address has a name or password in it. Pass credentials as an Authorization header in headers.');
  return url;
}

function readRequest(params: Params): Request {
  const { format = 'markdown', extract = 'article', max_chars = 20000, start = 0, timeout_seconds = 30, include_links = true, url, headers, output_path } = params ?? {};
  const address = asShortText('url', url, URL_MAX);
  if (!address) throw new Problem('url parameter is required: the http or https address to fetch.');
  const outputPath = asText('output_path', output_path);
  return {
    url: asTarget(address),
    format: asChoice('format', format, FORMATS) ?? 'markdown',
    article: (asChoice('extract', extract, ['article', 'full']) ?? 'article') === 'article',
    max: asInteger('max_chars', max_chars, 1, TEXT_MAX) ?? 20_000,
    start: asInteger('start', start, 0, Number.MAX_SAFE_INTEGER) ?? 0,
    timeoutMs: (asNumber('timeout_seconds', timeout_seconds, 1, 120) ?? 30) * 1000,
    headers: readHeaders(asText('headers', headers)),
    links: asBoolean('include_links', include_links) ?? true,
    outputPath: outputPath && userPath(outputPath),
  };
}

// ---- which addresses may be asked -------------------------------------------------------------

/** Networks that are not the public internet, by IANA's registries of special addresses. */
const PRIVATE_V4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4';
const PRIVATE_V6 =
  '::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8';

/** A list of networks from texts such as 10.0.0.0/8; what is none is left out. */
function asNetworks(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [, address, bits] = /^\[?([0-9a-f:.]+)\]?(?:\/(\d{1,3}))?$/i.exec(text.trim()) ?? [];
    const family = isIP(address ?? '');
    const longest = family === 4 ? 32 : 128;
    if (family !== 0 && Number(bits ?? longest) <= longest) list.addSubnet(address, Number(bits ?? longest), family === 4 ? 'ipv4' : 'ipv6');
  }
  return list;
}

const PRIVATE_NETWORKS = asNetworks([...PRIVATE_V4.split(' '), ...PRIVATE_V6.split(' ')]);

/** `::ffff:10.0.0.1` is 10.0.0.1, however it is written; URLs and the system write it in hexadecimal or dotted. */
function unmapped(address: string): string {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (dotted) return dotted;
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address) ?? [];
  if (!high) return address;
  const [a, b] = [parseInt(high, 16), parseInt(low, 16)];
  return `${a >> 8}.${a & 255}.${b >> 8}.${b & 255}`;
}

function isIn(networks: BlockList, address: string): boolean {
  const bare = unmapped(address.replace(/%.*$/, ''));
  return networks.check(bare, isIP(bare) === 4 ? 'ipv4' : 'ipv6');
}

/** What the user has opened: hosts, hosts with a port, and networks. */
type Allowed = { names: Set<string>; networks: BlockList };

function readAllowed(): Allowed {
  const entries = asList(asRecord(resources()['web-fetch']).allow_private).map(asString).filter(Boolean);
  return { names: new Set(entries.map((entry) => entry.trim().toLowerCase())), networks: asNetworks(entries) };
}

function portOf(url: URL): string {
  return url.port || (url.protocol === 'https:' ? '443' : '80');
}

function isAllowedHost(allowed: Allowed, url: URL): boolean {
  const bare = url.hostname.replace(/^\[|\]$/g, '');
  return [url.hostname, bare, `${url.hostname}:${portOf(url)}`].some((name) => allowed.names.has(name));
}

function refusal(host: string, address: string): Problem {
  return new Problem(`Refused: ${host} resolves to a private address (${address}). Only addresses on the public internet can be fetched; the user can allow others in Settings → Integrations (resource web-fetch, allow_private).`);
}

type Lookup = NonNullable<Parameters<typeof httpRequest>[1]['lookup']>;

/**
 * The name look-up of a connection: the addresses that are checked here are those that are then
 * connected to, so a name that changes its address in between gains nothing.
 */
function checkedLookup(allowed: Allowed, url: URL): Lookup {
  return (host, options, callback) => {
    dnsLookup(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, []);
      const refused = addresses.find(({ address }) => isIn(PRIVATE_NETWORKS, address) && !isIn(allowed.networks, address));
      if (refused && !isAllowedHost(allowed, url)) return callback(refusal(url.hostname, refused.address), []);
      if (options.all) return callback(null, addresses);
      return callback(null, addresses[0].address, addresses[0].family);
    });
  };
}

/** Addresses that are numbers are never looked up, so they are checked before the request. */
function checkLiteral(allowed: Allowed, url: URL): void {
  const bare = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(bare) === 0 || isAllowedHost(allowed, url)) return;
  if (isIn(PRIVATE_NETWORKS, bare) && !isIn(allowed.networks, bare)) throw refusal(url.hostname, unmapped(bare));
}

// ---- transport --------------------------------------------------------------------------------

/** The largest body, as it comes and again as it is unpacked. */
const BODY_MAX = 10 * 1024 * 1024;
const REDIRECTS_MAX = 10;
const USER_AGENT = 'Mozilla/5.0 (compatible; web_fetch/1; reads single pages for a user)';

/** What is sent on to another server when one redirects there; anything else may be a secret. */
const HARMLESS_HEADERS = ['accept', 'accept-language', 'user-agent'];

type Page = { url: URL; status: number; reason: string; headers: IncomingHttpHeaders; body: Buffer; redirects: number };

/** One call's way through the network: `signal` ends it, by the user or at the time limit. */
type Journey = { session: Session; signal: AbortSignal; isLate: () => boolean; allowed: Allowed; timeoutMs: number };

/** Why a connection failed, in words. */
function connectionProblem(journey: Journey, url: URL, e: unknown): Problem {
  if (e instanceof Problem) return e;
  if (journey.session.signal?.aborted) return new Problem('Cancelled.');
  if (journey.isLate()) return new Problem(`${url.host} did not send the page within ${journey.timeoutMs / 1000} seconds. Try again later, or with a larger timeout_seconds.`);
  const { code = '', message = String(e) } = e as { code?: string; message?: string };
  if (/^(ENOTFOUND|EAI_|ENODATA)/.test(code)) return new Problem(`Cannot find the host ${url.hostname} (${code}). Check the address for typing errors.`);
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|EPROTO/.test(code)) return new Problem(`No secure connection to ${url.host} is possible (${code}).`);
  if (/^HPE_/.test(code)) return new Problem(`${url.host} does not answer as a web server does (${code}).`);
  return new Problem(`Cannot reach ${url.host} (${code || message}).`);
}

/** Send the request and give the answer's head; the body is still to be read. */
function open(journey: Journey, url: URL, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((settle, reject) => {
    checkLiteral(journey.allowed, url);
    const lookup = checkedLookup(journey.allowed, url);
    const options = { headers, lookup, agent: false as const, signal: journey.signal, maxHeaderSize: 65_536 };
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options);
    request.on('response', settle);
    request.on('error', reject);
    request.end();
  });
}

function sizeProblem(url: URL): Problem {
  return new Problem(`The page at ${url.host} is larger than ${BODY_MAX / 1048576} MiB. It cannot be fetched.`);
}

/** The body as it comes; of more than `limit` the beginning, or a Problem if `whole` is asked for. */
async function readBody(response: IncomingMessage, url: URL, limit: number, whole: boolean): Promise<Buffer> {
  if (whole && Number(response.headers['content-length']) > limit) throw sizeProblem(url);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size <= limit) continue;
    if (whole) throw sizeProblem(url);
    break;
  }
  return Buffer.concat(chunks).subarray(0, limit);
}

type Unpacker = (data: Buffer, options: Record<string, number>) => Promise<Buffer>;
const UNPACKERS: Record<string, Unpacker> = {
  gzip: promisify(gunzip) as Unpacker,
  'x-gzip': promisify(gunzip) as Unpacker,
  br: promisify(brotliDecompress) as Unpacker,
  // By the standard deflate is in zlib's wrapping; some servers send it bare.
  deflate: (data, options) => ((data[0] & 15) === 8 ? promisify(inflate) : promisify(inflateRaw))(data, options) as Promise<Buffer>,
};

/** The body without its content encodings. A body that ends too early gives what there is of it. */
async function unpack(body: Buffer, encoding: string | undefined, url: URL): Promise<Buffer> {
  const layers = (encoding ?? '').toLowerCase().split(',').map((name) => name.trim()).filter((name) => name && name !== 'identity');
  if (layers.length > 3) throw new Problem(`${url.host} packs its answer ${layers.length} times over. It is not read.`);
  let data = body;
  for (const name of layers.reverse()) {
    const unpacker = UNPACKERS[name];
    if (!unpacker) throw new Problem(`${url.host} answers in the encoding "${plain(name, 40)}", which is not known here.`);
    if (data.length === 0) return data;
    const { BROTLI_OPERATION_FLUSH, Z_SYNC_FLUSH } = zlibConstants;
    const finishFlush = name === 'br' ? BROTLI_OPERATION_FLUSH : Z_SYNC_FLUSH;
    try {
      data = await unpacker(data, { maxOutputLength: BODY_MAX, finishFlush });
    } catch (e) {
      const { code } = e as { code?: string };
      if (code === 'ERR_BUFFER_TOO_LARGE') throw sizeProblem(url);
      throw new Problem(`The answer of ${url.host} is damaged: it is no ${name} data (${code ?? String(e)}).`);
    }
  }
  return data;
}

/** Where an answer sends us on to, if it does. */
function redirectTarget(response: IncomingMessage, url: URL): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0) || response.headers.location === undefined) return undefined;
  // Node reads headers byte by byte; addresses in them are usually UTF-8.
  const location = Buffer.from(response.headers.location, 'latin1').toString('utf8');
  const next = asTarget(location, url);
  if (!next.hash) next.hash = url.hash;
  return next;
}

/** `open`, once more if the connection broke before an answer came. */
async function openTwice(journey: Journey, url: URL, headers: Record<string, string>): Promise<IncomingMessage> {
  try {
    return await open(journey, url, headers);
  } catch (e) {
    const { code = '' } = e as { code?: string };
    if (journey.signal.aborted || !['ECONNRESET', 'EPIPE', 'EAI_AGAIN'].includes(code)) throw e;
    tell(journey.session, `The connection to ${url.host} failed (${code}); trying once more...`);
    await pause(journey.session, 500);
    return open(journey, url, headers);
  }
}

/** Follow the way from address to address until a page comes. */
async function travel(journey: Journey, first: URL, given: Record<string, string>): Promise<Page> {
  const seen = new Set<string>();
  let url = first;
  let headers = given;
  for (let redirects = 0; ; redirects += 1) {
    if (seen.has(url.href)) throw new Problem(`${first.host} redirects in a circle, back to ${plain(url.href, 200)}.`);
    if (redirects > REDIRECTS_MAX) throw new Problem(`${first.host} redirects more than ${REDIRECTS_MAX} times. The last address was ${plain(url.href, 200)}.`);
    seen.add(url.href);
    try {
      const response = await openTwice(journey, url, headers);
      const next = redirectTarget(response, url);
      if (!next) {
        const status = response.statusCode ?? 0;
        const isFine = status < 400;
        const body = await readBody(response, url, isFine ? BODY_MAX : HTTP_ERROR_BODY_MAX, isFine);
        const plainBody = await unpack(body, response.headers['content-encoding'], url);
        return { url, status, reason: response.statusMessage ?? '', headers: response.headers, body: plainBody, redirects };
      }
      response.destroy();
      tell(journey.session, `${url.host} redirects to ${plain(next.href, 200)}`);
      if (next.origin !== url.origin) headers = Object.fromEntries(Object.entries(headers).filter(([name]) => HARMLESS_HEADERS.includes(name)));
      url = next;
    } catch (e) {
      throw connectionProblem(journey, url, e);
    }
  }
}

/** Fetch the page; all of it, redirects included, within the time limit. */
async function fetchPage(session: Session, request: Request): Promise<Page> {
  const userAgent = asString(asRecord(resources()['web-fetch']).user_agent).replace(/[^\x20-\x7e]+/g, ' ').trim();
  const headers = {
    'user-agent': userAgent || USER_AGENT,
    accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,text/*;q=0.8,application/json;q=0.8,*/*;q=0.5',
    'accept-language': 'en;q=0.9,*;q=0.5',
    ...request.headers,
    'accept-encoding': 'gzip, deflate, br',
  };
  const abort = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    abort.abort();
  }, request.timeoutMs);
  const cancel = (): void => abort.abort();
  session.signal?.addEventListener('abort', cancel, { once: true });
  try {
    const journey = { session, signal: abort.signal, isLate: () => late, allowed: readAllowed(), timeoutMs: request.timeoutMs };
    tell(session, `Fetching ${request.url.host}...`);
    return await travel(journey, request.url, headers);
  } finally {
    clearTimeout(timer);
    session.signal?.removeEventListener('abort', cancel);
  }
}

// ---- what kind of content, and in which characters --------------------------------------------

type Kind = 'html' | 'json' | 'xml' | 'text' | 'pdf' | 'binary';

/** The media type without parameters, and its charset. */
function mediaType(headers: IncomingHttpHeaders): { type: string; charset?: string } {
  const value = headers['content-type'] ?? '';
  const charset = /;\s*charset\s*=\s*["']?([^"';,\s]+)/i.exec(value)?.[1];
  return { type: value.split(/[;,]/)[0].trim().toLowerCase(), charset };
}

const TEXT_TYPES = /^(text\/.*|application\/((x-)?(javascript|ecmascript|yaml|toml|sh|sql|csv|ndjson|jsonlines|tex|perl|httpd-php)|graphql|mbox|rtf|x-www-form-urlencoded)|message\/.*)$/;

/** Does it begin like UTF-8 or UTF-16 with its mark? */
function byteOrderMark(body: Buffer): string | undefined {
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8';
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be';
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le';
  return undefined;
}

function sniff(body: Buffer): Kind {
  if (body.subarray(0, 1024).includes('%PDF-')) return 'pdf';
  if (!byteOrderMark(body) && body.subarray(0, 4096).includes(0)) return 'binary';
  const head = body.toString('latin1', 0, 4096).replace(/^\xef\xbb\xbf/, '').trimStart();
  if (/^<\?xml/i.test(head) && !/<html[\s>]/i.test(head)) return 'xml';
  if (/^<(!doctype html|html|head|body|title|meta|script|div|p|h1|table|a|!--)[\s>-]/i.test(head)) return 'html';
  if (/^<(rss|feed|rdf:RDF)[\s>]/i.test(head)) return 'xml';
  if (/^[[{]/.test(head)) return 'json';
  // Magic numbers of media and archives are mostly control characters.
  const odd = [...head.slice(0, 512)].filter((c) => c < ' ' && !'\t\n\r\f\x1b'.includes(c)).length;
  return odd > 0 && !byteOrderMark(body) ? 'binary' : 'text';
}

function kindOf(type: string, body: Buffer): Kind {
  if (type === 'application/pdf' || type === 'application/x-pdf') return 'pdf';
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (/^(application|text)\/json$|\+json$/.test(type)) return 'json';
  if (/^(application|text)\/xml$|\+xml$/.test(type) && type !== 'image/svg+xml') return 'xml';
  if (type === 'image/svg+xml') return 'text';
  const sniffed = sniff(body);
  if (TEXT_TYPES.test(type)) return sniffed === 'binary' || sniffed === 'pdf' ? sniffed : 'text';
  return type === '' || /^(application|binary)\/(octet-stream|unknown|x-unknown|download|force-download)$/.test(type) ? sniffed : 'binary';
}

/** The charset that the beginning of a document names, for HTML in a meta element, for XML in its declaration. */
function declaredCharset(body: Buffer, kind: Kind): string | undefined {
  const head = body.toString('latin1', 0, 1024);
  const xml = /^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)/i.exec(head)?.[1];
  if (xml || kind !== 'html') return xml;
  const meta = head.replace(/<!--[\s\S]*?(-->|$)/g, '');
  return /<meta\s[^>]{0,300}?charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(meta)?.[1];
}

/** What the bytes 128 to 159 are in windows-1252, and what &#128; to &#159; mean on the web. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

function decoderFor(label: string | undefined): TextDecoder | undefined {
  try {
    return label ? new TextDecoder(label.trim()) : undefined;
  } catch {
    // A name that nobody knows says nothing.
    return undefined;
  }
}

function isUtf8(body: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(body, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** The body as text: by its mark, else the header, else what it says itself, else UTF-8 if it is that, else windows-1252. */
function decode(body: Buffer, kind: Kind, charset: string | undefined): string {
  // What a document says in ASCII of its own charset cannot be UTF-16.
  const declared = declaredCharset(body, kind)?.replace(/^utf-?16.*$/i, 'utf-8');
  const decoder = decoderFor(byteOrderMark(body)) ?? decoderFor(charset) ?? decoderFor(declared);
  const chosen = decoder ?? new TextDecoder(isUtf8(body) ? 'utf-8' : 'windows-1252');
  const text = chosen.decode(body);
  // Some versions of Node decode windows-1252 as if it were Latin-1.
  return chosen.encoding === 'windows-1252' ? text.replace(/[\x80-\x9f]/g, (char) => WINDOWS_1252[char.charCodeAt(0) - 0x80]) : text;
}

// ---- HTML into a tree -------------------------------------------------------------------------

// A tolerant reader in one pass, linear in the size of the page: every look ahead either finds what
// it seeks or consumes the rest. Depth and number of elements are limited, as browsers limit depth,
// so that everything after it may simply recurse.

type Element = {
  tag: string;
  attrs: Record<string, string>;
  children: Array<Element | string>;
  parent?: Element;
  /** Is it or has it a block? Filled in when first asked for. */
  blocky?: boolean;
  /** Length and commas of its own text. Filled in when first asked for. */
  own?: { length: number; commas: number };
};

type Tree = { root: Element; isCut: boolean };

const DEPTH_MAX = 256;
const ELEMENTS_MAX = 100_000;

const words = (text: string): Set<string> => new Set(text.split(/\s+/));

const VOID_TAGS = words('area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr');
const RAW_TAGS = words('script style xmp iframe noembed noframes title textarea');
const HEAD_TAGS = words('title meta link base script style noscript template basefont bgsound');
const BLOCK_TAGS = words(
  'address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search section select summary table tbody td tfoot th thead tr ul',
);
const CLOSES_P = words(
  'address article aside blockquote center details dialog dir div dl dd dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol p pre search section summary table ul',
);
const INLINE_FORMAT = words('a abbr acronym b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span strike strong sub sup tt u var');
const KEPT_ATTRIBUTES = words(
  'alt aria-hidden charset class colspan content data-lang data-language data-lazy-src data-original data-src data-srcset datetime encoding height hidden href http-equiv id itemprop lang name property rel role rowspan src srcset start style title type url width xml:lang',
);

/** An open element of `close` is ended by the start of the key, unless one of `within` stands between. */
const IMPLIED_ENDS: Record<string, { close: Set<string>; within: Set<string> }> = {
  li: { close: words('li'), within: words('ul ol menu dir table td th') },
  dt: { close: words('dt dd'), within: words('dl ul ol table td th') },
  dd: { close: words('dt dd'), within: words('dl ul ol table td th') },
  td: { close: words('td th'), within: words('tr table') },
  th: { close: words('td th'), within: words('tr table') },
  tr: { close: words('tr td th caption colgroup'), within: words('table') },
  tbody: { close: words('tbody thead tfoot tr td th caption colgroup'), within: words('table') },
  thead: { close: words('tbody thead tfoot tr td th caption colgroup'), within: words('table') },
  tfoot: { close: words('tbody thead tfoot tr td th caption colgroup'), within: words('table') },
  option: { close: words('option'), within: words('select datalist') },
  optgroup: { close: words('option optgroup'), within: words('select') },
  body: { close: words('head'), within: words('html') },
};
const P_BARRIERS = words('table td th caption button object template');
const CELL_BARRIERS = words('td th caption');
const TABLE_PARTS = words('table tbody thead tfoot tr td th caption');

/** Names of characters from U+00A0 to U+00FF, in order; these work without the semicolon too. */
const LATIN_NAMES =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'.split(' ');
const OTHER_NAMES =
  'quot " amp & lt < gt > apos \' OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ Alpha Α Beta Β Gamma Γ Delta Δ Epsilon Ε Zeta Ζ Eta Η Theta Θ Iota Ι Kappa Κ Lambda Λ Mu Μ Nu Ν Xi Ξ Omicron Ο Pi Π Rho Ρ Sigma Σ Tau Τ Upsilon Υ Phi Φ Chi Χ Psi Ψ Omega Ω alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ omicron ο pi π rho ρ sigmaf ς sigma σ tau τ upsilon υ phi φ chi χ psi ψ omega ω ndash – mdash — horbar ― lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › oline ‾ frasl ⁄ euro € image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → darr ↓ harr ↔ crarr ↵ lArr ⇐ uArr ⇑ rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ loz ◊ spades ♠ clubs ♣ hearts ♥ diams ♦ check ✓ star ☆ starf ★ phone ☎ female ♀ male ♂ num # excl ! dollar $ percnt % lpar ( rpar ) ast * plus + comma , period . sol / colon : semi ; equals = quest ? commat @ lsqb [ rsqb ] lbrack [ rbrack ] bsol \\ lowbar _ grave ` lcub { rcub } lbrace { rbrace } verbar | vert | hyphen ‐ dash ‐ Ccaron Č ccaron č Dcaron Ď dcaron ď Ecaron Ě ecaron ě Ncaron Ň ncaron ň Rcaron Ř rcaron ř Zcaron Ž zcaron ž Lstrok Ł lstrok ł Aogon Ą aogon ą Eogon Ę eogon ę Sacute Ś sacute ś Cacute Ć cacute ć Nacute Ń nacute ń Zdot Ż zdot ż inodot ı Gbreve Ğ gbreve ğ Scedil Ş scedil ş'.split(' ');

const CHARACTERS = new Map<string, string>([
  ...LATIN_NAMES.map((name, i): [string, string] => [name, String.fromCharCode(0xa0 + i)]),
  ...OTHER_NAMES.flatMap((name, i): Array<[string, string]> => (i % 2 === 0 ? [[name, OTHER_NAMES[i + 1]]] : [])),
  ['ensp', '\u2002'], ['emsp', '\u2003'], ['thinsp', '\u2009'], ['zwnj', '\u200c'], ['zwj', '\u200d'], ['lrm', '\u200e'], ['rlm', '\u200f'],
  ['NewLine', '\n'], ['Tab', '\t'], ['hairsp', '\u200a'], ['numsp', '\u2007'],
]);
const WITHOUT_SEMICOLON = new Set([...LATIN_NAMES, 'quot', 'amp', 'lt', 'gt']);

function numericCharacter(digits: string): string {
  const code = /^x/i.test(digits) ? parseInt(digits.slice(1), 16) : parseInt(digits, 10);
  if (code >= 0x80 && code <= 0x9f) return WINDOWS_1252[code - 0x80];
  if (!(code > 0 && code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) return '\ufffd';
  return String.fromCodePoint(code);
}

function decodeEntities(text: string, inAttribute: boolean): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#(x[0-9a-f]{1,8}|[0-9]{1,9});?|([a-z][a-z0-9]{1,31})(;?))/gi, (whole, digits, name, end, at) => {
    if (digits) return numericCharacter(digits);
    const full = CHARACTERS.get(name);
    if (full !== undefined && (end || WITHOUT_SEMICOLON.has(name))) {
      const isPartOfWord = inAttribute && !end && /^[=0-9a-z]/i.test(text.slice(at + whole.length, at + whole.length + 1));
      return isPartOfWord ? whole : full;
    }
    // "&copyright": the longest name that it begins with. In an address it is a parameter.
    for (let length = Math.min(6, name.length); length > 1 && !inAttribute; length -= 1) {
      const start = name.slice(0, length);
      if (WITHOUT_SEMICOLON.has(start)) return CHARACTERS.get(start) + name.slice(length) + end;
    }
    return whole;
  });
}

type Builder = {
  root: Element;
  stack: Element[];
  /** How many of each tag are on the stack. */
  open: Map<string, number>;
  /** Elements too deep for the stack: their end tags end nothing. */
  tooDeep: Map<string, number>;
  count: number;
  isXml: boolean;
};

function newElement(tag: string, attrs: Record<string, string> = {}, children: Element['children'] = []): Element {
  return { tag, attrs, children };
}

function startBuilder(isXml: boolean): Builder {
  const root = newElement('#root');
  return { root, stack: [root], open: new Map(), tooDeep: new Map(), count: 0, isXml };
}

function top(builder: Builder): Element {
  return builder.stack[builder.stack.length - 1];
}

/** End the elements on the stack from place `from` on. */
function popTo(builder: Builder, from: number): void {
  for (const element of builder.stack.splice(from)) builder.open.set(element.tag, (builder.open.get(element.tag) ?? 1) - 1);
}

function isOpen(builder: Builder, tags: Iterable<string>): boolean {
  for (const tag of tags) if ((builder.open.get(tag) ?? 0) > 0) return true;
  return false;
}

/** End what the start of a tag ends: the outermost of `close` that no `within` encloses. */
function endImplied(builder: Builder, close: Set<string>, within: Set<string>): void {
  if (!isOpen(builder, close)) return;
  let found = 0;
  for (let i = builder.stack.length - 1; i > 0 && !within.has(builder.stack[i].tag); i -= 1) {
    if (close.has(builder.stack[i].tag)) found = i;
  }
  if (found > 0) popTo(builder, found);
}

const P_ONLY = words('p');

function endBefore(builder: Builder, tag: string): void {
  const current = top(builder).tag;
  if (current === 'head' && !HEAD_TAGS.has(tag)) popTo(builder, builder.stack.length - 1);
  if (CLOSES_P.has(tag)) endImplied(builder, P_ONLY, P_BARRIERS);
  const implied = IMPLIED_ENDS[tag];
  if (implied) endImplied(builder, implied.close, implied.within);
  const isHeading = /^h[1-6]$/;
  if ((isHeading.test(tag) && isHeading.test(top(builder).tag)) || (tag === 'a' && top(builder).tag === 'a')) popTo(builder, builder.stack.length - 1);
}

function addText(builder: Builder, text: string): void {
  if (text === '') return;
  const parent = top(builder);
  if (parent.tag === 'head' && !builder.isXml && text.trim() !== '') popTo(builder, builder.stack.length - 1);
  top(builder).children.push(text);
}

function addElement(builder: Builder, tag: string, attrs: Record<string, string>, isClosed: boolean): void {
  if (!builder.isXml) {
    if ((tag === 'html' || tag === 'body') && isOpen(builder, [tag])) return;
    endBefore(builder, tag);
  }
  const parent = top(builder);
  const element: Element = { tag, attrs, children: [], parent };
  parent.children.push(element);
  builder.count += 1;
  const isForeign = isOpen(builder, ['svg', 'math']) || tag === 'svg' || tag === 'math';
  if (builder.isXml || isForeign ? isClosed : VOID_TAGS.has(tag)) return;
  if (builder.stack.length >= DEPTH_MAX && !RAW_TAGS.has(tag)) {
    builder.tooDeep.set(tag, (builder.tooDeep.get(tag) ?? 0) + 1);
    return;
  }
  builder.stack.push(element);
  builder.open.set(tag, (builder.open.get(tag) ?? 0) + 1);
}

function endElement(builder: Builder, tag: string): void {
  const tooDeep = builder.tooDeep.get(tag) ?? 0;
  if (tooDeep > 0) {
    builder.tooDeep.set(tag, tooDeep - 1);
    return;
  }
  if (tag === 'br') addElement(builder, 'br', {}, false);
  // What follows </body> still belongs to the page.
  if (!isOpen(builder, [tag]) || (!builder.isXml && (tag === 'body' || tag === 'html'))) return;
  let crossesBlock = false;
  for (let i = builder.stack.length - 1; i > 0; i -= 1) {
    const { tag: found } = builder.stack[i];
    if (found === tag) {
      if (!crossesBlock || !INLINE_FORMAT.has(tag)) return popTo(builder, i);
      // <b><p>...</b>: the bold ends, the paragraph goes on.
      builder.stack.splice(i, 1);
      builder.open.set(tag, (builder.open.get(tag) ?? 1) - 1);
      return;
    }
    if (builder.isXml) continue;
    if (CELL_BARRIERS.has(found) && !TABLE_PARTS.has(tag)) return;
    crossesBlock ||= BLOCK_TAGS.has(found);
  }
}

/** Where the next tag, comment or declaration begins; a "<" before anything else is text. */
function nextMarkup(html: string, from: number): number {
  for (let at = html.indexOf('<', from); at >= 0; at = html.indexOf('<', at + 1)) {
    const code = html.charCodeAt(at + 1) | 32;
    if (code >= 97 && code <= 122) return at;
    const next = html[at + 1];
    if (next === '!' || next === '?') return at;
    const after = html.charCodeAt(at + 2) | 32;
    if (next === '/' && after >= 97 && after <= 122) return at;
  }
  return html.length;
}

/** Where what stands at `at` ends, a comment or declaration. CDATA is text in XML. */
function skipDeclaration(builder: Builder, html: string, at: number): number {
  const endOf = (mark: string, from: number): number => {
    const found = html.indexOf(mark, from);
    return found < 0 ? html.length : found + mark.length;
  };
  if (html.startsWith('<![CDATA[', at) && builder.isXml) {
    const end = endOf(']]>', at + 9);
    addText(builder, html.slice(at + 9, end).replace(/\]\]>$/, ''));
    return end;
  }
  if (!html.startsWith('<!--', at)) return endOf('>', at);
  const short = /^<!--(-?)>/.exec(html.slice(at, at + 6));
  return short ? at + short[0].length : endOf('-->', at + 4);
}

type Tag = { name: string; attrs: Record<string, string>; isClosed: boolean; end: number };

const NO_ATTRIBUTES: Record<string, string> = Object.freeze({});

/** The tag that begins at `at`, just behind "<" or "</". */
function readTag(html: string, at: number, isXml: boolean): Tag {
  const nameEnd = /[^\s/>]+/y;
  nameEnd.lastIndex = at;
  const written = nameEnd.exec(html)?.[0] ?? '';
  const name = (isXml ? written : written.toLowerCase()).slice(0, 80);
  let attrs = NO_ATTRIBUTES;
  let end = at + written.length;
  const attribute = /([^\s/>=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?/y;
  const gap = /[\s/=]*/y;
  for (;;) {
    gap.lastIndex = end;
    const skipped = gap.exec(html)?.[0] ?? '';
    end += skipped.length;
    if (end >= html.length) return { name, attrs, isClosed: false, end };
    if (html[end] === '>') return { name, attrs, isClosed: skipped.endsWith('/'), end: end + 1 };
    attribute.lastIndex = end;
    const match = attribute.exec(html);
    if (!match) return { name, attrs, isClosed: false, end: html.length };
    end += match[0].length;
    const key = match[1].toLowerCase();
    if (!KEPT_ATTRIBUTES.has(key) || key in attrs) continue;
    if (attrs === NO_ATTRIBUTES) attrs = {};
    attrs[key] = decodeEntities(match[2] ?? match[3] ?? match[4] ?? '', true);
  }
}

/** What stands in an element whose content is no markup, up to its end tag. Returns where that begins. */
function addRaw(builder: Builder, html: string, tag: string, from: number): number {
  const close = new RegExp(`</${tag}(?=[\\s/>])`, 'gi');
  close.lastIndex = from;
  const end = close.exec(html)?.index ?? html.length;
  const text = html.slice(from, end);
  top(builder).children.push(tag === 'title' || tag === 'textarea' ? decodeEntities(text, false) : text);
  return end;
}

function parseMarkup(html: string, isXml = false): Tree {
  const builder = startBuilder(isXml);
  let at = 0;
  while (at < html.length && builder.count < ELEMENTS_MAX) {
    const markup = nextMarkup(html, at);
    addText(builder, decodeEntities(html.slice(at, markup), false));
    if (markup >= html.length) return { root: builder.root, isCut: false };
    const second = html[markup + 1];
    if (second === '!' || second === '?') {
      at = skipDeclaration(builder, html, markup);
      continue;
    }
    const isEnd = second === '/';
    const tag = readTag(html, markup + (isEnd ? 2 : 1), isXml);
    at = tag.end;
    if (isEnd) {
      endElement(builder, tag.name);
      continue;
    }
    addElement(builder, tag.name === 'image' && !isXml ? 'img' : tag.name, tag.attrs, tag.isClosed);
    const isRaw = !isXml && RAW_TAGS.has(tag.name) && !isOpen(builder, ['svg', 'math']);
    if (isRaw && top(builder).tag === tag.name) at = addRaw(builder, html, tag.name, at);
  }
  return { root: builder.root, isCut: at < html.length };
}

// ---- looking at the tree ----------------------------------------------------------------------

function isElement(node: Element | string): node is Element {
  return typeof node !== 'string';
}

/** Every element below, in order. */
function elementsOf(root: Element): Element[] {
  const found: Element[] = [];
  const collect = (element: Element): void => {
    for (const child of element.children) {
      if (!isElement(child)) continue;
      found.push(child);
      collect(child);
    }
  };
  collect(root);
  return found;
}

function textOf(element: Element): string {
  const parts: string[] = [];
  const collect = (node: Element): void => {
    for (const child of node.children) {
      if (!isElement(child)) parts.push(child);
      else if (child.tag === 'br') parts.push('\n');
      else if (!NEVER_SHOWN.has(child.tag)) collect(child);
    }
  };
  collect(element);
  return parts.join('');
}

function isBlocky(node: Element | string): boolean {
  if (!isElement(node)) return false;
  node.blocky ??= BLOCK_TAGS.has(node.tag) || node.children.some(isBlocky);
  return node.blocky;
}

function namesOf(element: Element): string {
  return `${element.attrs.class ?? ''} ${element.attrs.id ?? ''}`;
}

// ---- what of a page is shown ------------------------------------------------------------------

const NEVER_SHOWN = words('script style noscript template link meta title base head svg math canvas object embed applet iframe frame frameset param source track map area audio video input select button textarea option optgroup datalist progress meter');
const NOT_ARTICLE = words('nav aside footer dialog menu');
const HIDDEN_ROLES = words('dialog alertdialog menu menubar navigation complementary search toolbar tooltip banner contentinfo');

function isHidden(element: Element): boolean {
  const { hidden, style = '', 'aria-hidden': ariaHidden } = element.attrs;
  if (hidden !== undefined && hidden !== 'until-found') return true;
  if (ariaHidden === 'true' && element.tag !== 'img') return true;
  return style !== '' && /(^|[;\s])(display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style);
}

/** What is never shown, of any page. */
function dropAlways(root: Element): Set<Element> {
  return new Set(elementsOf(root).filter((element) => NEVER_SHOWN.has(element.tag) || isHidden(element)));
}

/** Sums over an element and what is below it, without what is dropped. */
type Measure = {
  length: number;
  linkLength: number;
  commas: number;
  /** Paragraphs, and blocks that serve as one. */
  paragraphs: number;
  images: number;
  items: number;
  itemLength: number;
  inputs: number;
  headingLength: number;
};

const NOTHING: Measure = { length: 0, linkLength: 0, commas: 0, paragraphs: 0, images: 0, items: 0, itemLength: 0, inputs: 0, headingLength: 0 };

function addMeasure(sum: Measure, part: Measure): void {
  sum.length += part.length;
  sum.linkLength += part.linkLength;
  sum.commas += part.commas;
  sum.paragraphs += part.paragraphs;
  sum.images += part.images;
  sum.items += part.items;
  sum.itemLength += part.itemLength;
  sum.inputs += part.inputs;
  sum.headingLength += part.headingLength;
}

const SEPARATORS = new Set(',،、，;；');

/** The text right in an element: its length with white space as one character each time, and its commas. */
function ownText(element: Element): { length: number; commas: number } {
  if (element.own) return element.own;
  let length = 0;
  let commas = 0;
  for (const text of element.children) {
    if (isElement(text)) continue;
    let wasSpace = length === 0;
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i);
      const isSpace = code <= 32 || code === 160;
      if (!isSpace || !wasSpace) length += 1;
      wasSpace = isSpace;
      if ((code === 44 || code === 59 || code > 1_500) && SEPARATORS.has(text[i])) commas += 1;
    }
    if (wasSpace && text.trim() === '' && length === 1) length = 0;
  }
  element.own = { length, commas };
  return element.own;
}

/** What an element itself adds to the sums of what is in it. */
function measureSelf(sum: Measure, element: Element): void {
  const { tag, attrs } = element;
  if (tag === 'a') sum.linkLength = attrs.href?.startsWith('#') ? sum.length * 0.3 : sum.length;
  else if (tag === 'li') {
    sum.items += 1;
    sum.itemLength = sum.length;
  } else if (tag === 'img') sum.images += 1;
  else if (/^h[1-6]$/.test(tag)) sum.headingLength = sum.length;
  else if ((tag === 'p' || tag === 'div' || tag === 'blockquote' || tag === 'pre') && sum.length > 0 && !element.children.some(isBlocky)) sum.paragraphs += 1;
}

/** What is in these belongs together, whatever it looks like. */
const SHELTERS = words('code pre figure td th');

/** Measure a tree from its leaves up; `visit` sees each element with its sums and may drop it. */
function measureAll(root: Element, dropped: Set<Element>, visit?: (element: Element, sums: Measure, isSheltered: boolean) => boolean): Map<Element, Measure> {
  const measures = new Map<Element, Measure>();
  const walk = (element: Element, isSheltered: boolean): Measure => {
    const shelters = isSheltered || SHELTERS.has(element.tag);
    const sum = { ...NOTHING, ...ownText(element) };
    for (const child of element.children) {
      if (!isElement(child)) continue;
      if (child.tag === 'input' && child.attrs.type !== 'hidden') sum.inputs += 1;
      else if (!dropped.has(child)) addMeasure(sum, walk(child, shelters));
    }
    measureSelf(sum, element);
    if (visit?.(element, sum, isSheltered)) {
      dropped.add(element);
      return NOTHING;
    }
    measures.set(element, sum);
    return sum;
  };
  walk(root, false);
  return measures;
}

function density(sums: Measure): number {
  return sums.length === 0 ? 0 : Math.min(1, sums.linkLength / sums.length);
}

// ---- finding the article ----------------------------------------------------------------------

// The way of the well-known readers: leave out what is named like an extra, let paragraphs vote for
// what encloses them, take the best and what belongs to it, then clean that of lists of links.

const EXTRA_NAMES =
  /-ad-|ad-?break|advert|agegate|banner|breadcrumb|byline-?share|combx|comment|community|consent|cookie|disqus|extra|footer|foot-|gdpr|(^|[\s_-])(site|page|main|global|top|nav)?-?header\b|legends|menu|modal|nav(bar|igation)?\b|newsletter|outbrain|pager|pagination|popup|promo|recirc|recommend|related|remark|replies|rss|share|sharing|shoutbox|sidebar|skyscraper|social|sponsor|subscri|supplemental|taboola|toolbar|widget|yom-remote/i;
const CONTENT_NAMES = /article|body|column|content|main|shadow/i;
const GOOD_NAMES = /article|blog|body|content|entry|hentry|main|page|post|story|text/i;
const BAD_NAMES = /-ad-|advert|banner|combx|comment|com-|contact|cookie|footer|footnote|gdpr|hidden|masthead|media|meta|newsletter|outbrain|promo|related|scroll|share|sharing|shoutbox|shopping|sidebar|skyscraper|social|sponsor|subscri|tags|tool|widget/i;

/** How strictly a page is read. What is too strict leaves nothing, then a looser pass follows. */
type Strictness = { names: boolean; weights: boolean; cleaning: boolean };
const PASSES: Strictness[] = [
  { names: true, weights: true, cleaning: true },
  { names: false, weights: true, cleaning: true },
  { names: false, weights: false, cleaning: true },
  { names: false, weights: false, cleaning: false },
];
/** An article of fewer characters calls for a looser pass. */
const ARTICLE_MIN = 500;

function classWeight(element: Element, strictness: Strictness): number {
  if (!strictness.weights) return 0;
  let weight = 0;
  for (const name of [element.attrs.class, TITLED.has(element.tag) ? undefined : element.attrs.id]) {
    if (!name) continue;
    if (BAD_NAMES.test(name)) weight -= 25;
    if (GOOD_NAMES.test(name)) weight += 25;
  }
  return weight;
}

const NEVER_EXTRA = words('html body article main a table tbody thead tr td th code pre h1 h2 h3 h4 h5 h6');
/** The ids of these are made from their headings and say what they are about. */
const TITLED = words('section details dt dd li p span');

/** Drop what is no part of any article by its tag, role or name, unless most of the page is in it. */
function dropExtras(root: Element, always: Set<Element>, all: Map<Element, Measure>, strictness: Strictness): Set<Element> {
  const dropped = new Set(always);
  const most = Math.max(1_000, (all.get(root)?.length ?? 0) * 0.6);
  const isExtra = (element: Element): boolean => {
    if (NOT_ARTICLE.has(element.tag) || HIDDEN_ROLES.has(element.attrs.role ?? '')) return true;
    if (!strictness.names || NEVER_EXTRA.has(element.tag)) return false;
    const names = TITLED.has(element.tag) ? element.attrs.class ?? '' : namesOf(element);
    return EXTRA_NAMES.test(names) && !CONTENT_NAMES.test(names);
  };
  const walk = (element: Element, inCell: boolean): void => {
    for (const child of element.children) {
      if (!isElement(child) || dropped.has(child)) continue;
      if (!inCell && isExtra(child) && (all.get(child)?.length ?? 0) < most) dropped.add(child);
      else walk(child, inCell || child.tag === 'td' || child.tag === 'pre' || child.tag === 'code');
    }
  };
  walk(root, false);
  return dropped;
}

const FIRST_SCORES: Record<string, number> = {
  article: 10, main: 8, div: 5, section: 3, pre: 3, td: 3, blockquote: 3, address: -3, ol: -3, ul: -3, dl: -3, dd: -3, dt: -3, li: -3, form: -3, h1: -5, h2: -5, h3: -5, h4: -5, h5: -5, h6: -5, th: -5,
};
const VOTERS = words('p td pre div section article main blockquote h2 h3 h4 h5 h6 center body dd');
const LEVELS = 5;

/** The votes of every text for what encloses it: in full for the parent, less the farther up. */
function vote(root: Element, dropped: Set<Element>, measures: Map<Element, Measure>, strictness: Strictness): Map<Element, number> {
  const scores = new Map<Element, number>();
  const walk = (element: Element): void => {
    const own = { ...NOTHING, ...ownText(element) };
    for (const child of element.children) {
      if (!isElement(child) || dropped.has(child)) continue;
      if (isBlocky(child)) walk(child);
      else addMeasure(own, measures.get(child) ?? NOTHING);
    }
    if (own.length < 25 || (BLOCK_TAGS.has(element.tag) && !VOTERS.has(element.tag))) return;
    const score = 1 + own.commas + Math.min(3, Math.floor(own.length / 100));
    let voted = element.children.some(isBlocky) ? element : element.parent;
    for (let level = 0; level < LEVELS && voted && voted.tag !== '#root'; level += 1, voted = voted.parent) {
      const before = scores.get(voted) ?? (FIRST_SCORES[voted.tag] ?? 0) + classWeight(voted, strictness);
      scores.set(voted, before + score / (level === 0 ? 1 : level === 1 ? 2 : level * 3));
    }
  };
  walk(root);
  for (const [element, score] of scores) scores.set(element, score * (1 - density(measures.get(element) ?? NOTHING)));
  return scores;
}

function ancestorsOf(element: Element): Element[] {
  const found: Element[] = [];
  for (let at = element.parent; at && at.tag !== '#root'; at = at.parent) found.push(at);
  return found;
}

/** The best of all, or what encloses several that are almost as good, or a parent that is better still. */
function chooseTop(scores: Map<Element, number>): Element | undefined {
  const ranked = [...scores].sort((a, b) => b[1] - a[1]).slice(0, 5);
  if (ranked.length === 0 || ranked[0][1] <= 0) return undefined;
  let [best, bestScore] = ranked[0];
  const rivals = ranked.slice(1).filter(([, score]) => score >= bestScore * 0.75).map(([element]) => new Set(ancestorsOf(element)));
  if (rivals.length >= 3) {
    const common = ancestorsOf(best).find((ancestor) => ancestor.tag !== 'body' && ancestor.tag !== 'html' && rivals.filter((set) => set.has(ancestor)).length >= 3);
    if (common) best = common;
  }
  bestScore = scores.get(best) ?? bestScore;
  let last = bestScore;
  for (const ancestor of ancestorsOf(best)) {
    if (ancestor.tag === 'body' || ancestor.tag === 'html') break;
    const score = scores.get(ancestor);
    if (score === undefined) continue;
    if (score < bestScore / 3) break;
    if (score > last) {
      best = ancestor;
      break;
    }
    last = score;
  }
  const isAlone = (element: Element): boolean => element.parent?.children.filter((node) => isElement(node) || node.trim() !== '').length === 1;
  while (best.parent && !/^(body|html|#root)$/.test(best.parent.tag) && isAlone(best)) best = best.parent;
  return best;
}

/** The chosen element and those of its siblings that go with it. */
function joinSiblings(best: Element, scores: Map<Element, number>, measures: Map<Element, Measure>, dropped: Set<Element>): Element[] {
  const bestScore = scores.get(best) ?? 0;
  const least = Math.max(10, bestScore * 0.2);
  const siblings = (best.parent?.children ?? [best]).filter(isElement).filter((sibling) => !dropped.has(sibling));
  return siblings.filter((sibling) => {
    if (sibling === best) return true;
    const bonus = sibling.attrs.class && sibling.attrs.class === best.attrs.class ? bestScore * 0.2 : 0;
    if ((scores.get(sibling) ?? -Infinity) + bonus >= least) return true;
    if (sibling.tag !== 'p') return false;
    const sums = measures.get(sibling) ?? NOTHING;
    if (sums.length > 80) return density(sums) < 0.25;
    return sums.length > 0 && sums.linkLength === 0 && /\.( |$)/.test(textOf(sibling).trim());
  });
}

const CLEANED_TAGS = words('form fieldset table ul ol div section header');

/** Is this part of an article none of it: links, forms, headings without text? */
function isClutter(element: Element, sums: Measure, strictness: Strictness): boolean {
  const { tag } = element;
  const weight = classWeight(element, strictness);
  if (/^h[12]$/.test(tag)) return weight < 0;
  if (!CLEANED_TAGS.has(tag)) return false;
  if (sums.length < 500 && /(^|[\s_-])(share|sharing|sharedaddy|social)([\s_-]|$)/i.test(namesOf(element))) return true;
  if (tag === 'table' && isDataTable(element)) return false;
  if (weight < 0) return true;
  if (sums.commas >= 10) return false;
  const { length, images, paragraphs, items, inputs } = sums;
  const isList = tag === 'ul' || tag === 'ol' || sums.itemLength > length * 0.9;
  const links = density(sums);
  if (images > 1 && paragraphs / images < 0.5 && !isList && length < 200 * images) return true;
  if (!isList && items - 100 > paragraphs) return true;
  if (inputs > Math.floor(paragraphs / 3) && length < 1_000) return true;
  if (!isList && length < 25 && (images === 0 || images > 2) && sums.headingLength < length * 0.9 && links > 0) return true;
  if (weight < 25 && links > (isList ? 0.5 : 0.2) && length > 0) return images === 0 || length > 20 * images;
  return weight >= 25 && links > 0.5;
}

type Article = { root: Element; dropped: Set<Element>; length: number };

function findOnce(root: Element, always: Set<Element>, all: Map<Element, Measure>, strictness: Strictness): Article | undefined {
  const dropped = dropExtras(root, always, all, strictness);
  const measures = measureAll(root, dropped);
  const scores = vote(root, dropped, measures, strictness);
  const best = chooseTop(scores);
  if (!best) return undefined;
  const chosen = newElement('div', {}, joinSiblings(best, scores, measures, dropped));
  const kept = new Set<Element | string>([chosen, ...chosen.children]);
  const clean = (element: Element, sums: Measure, isSheltered: boolean): boolean =>
    strictness.cleaning && !isSheltered && !kept.has(element) && isClutter(element, sums, strictness);
  const length = measureAll(chosen, dropped, clean).get(chosen)?.length ?? 0;
  return { root: chosen, dropped, length };
}

/** What the page itself calls its main content, if it says so of one element and most of the text is there. */
function findMain(root: Element, always: Set<Element>, all: Map<Element, Measure>): Article | undefined {
  const isMain = ({ tag, attrs }: Element): boolean => tag === 'main' || attrs.role === 'main';
  const mains = elementsOf(root).filter((element) => isMain(element) && all.has(element));
  const [main] = mains;
  if (mains.length !== 1 || (all.get(main)?.length ?? 0) < (all.get(root)?.length ?? 0) / 4) return undefined;
  const dropped = dropExtras(root, always, all, PASSES[0]);
  return { root: main, dropped, length: measureAll(main, dropped).get(main)?.length ?? 0 };
}

/** The main content of a page, by what it says or else by its looks; the whole page where none stands out. */
function findArticle(root: Element, always: Set<Element>): Article {
  const all = measureAll(root, always);
  const article = findByLooks(root, always, all);
  const main = findMain(root, always, all);
  if (!main || article.length >= main.length * 0.6) return article;
  // A real article amid links is the better one; manuals and lists of links are wanted whole.
  const linksOf = ({ root: top, dropped }: Article): number => density(measureAll(top, dropped).get(top) ?? NOTHING);
  return linksOf(main) > 0.5 && linksOf(article) < 0.2 && article.length >= 3 * ARTICLE_MIN ? article : main;
}

function findByLooks(root: Element, always: Set<Element>, all: Map<Element, Measure>): Article {
  const tried: Article[] = [];
  for (const strictness of PASSES) {
    const article = findOnce(root, always, all, strictness);
    if (!article) continue;
    if (article.length >= ARTICLE_MIN) return article;
    tried.push(article);
  }
  const longest = tried.sort((a, b) => b.length - a.length)[0];
  const whole = { root, dropped: always, length: all.get(root)?.length ?? 0 };
  // Of a short page all is likely wanted; a few words out of a long one are likely a mistake.
  if (!longest || longest.length < Math.min(140, whole.length / 4)) {
    const withoutExtras = dropExtras(root, always, all, PASSES[3]);
    const length = measureAll(root, withoutExtras).get(root)?.length ?? 0;
    return length > 0 ? { root, dropped: withoutExtras, length } : whole;
  }
  return longest;
}

// ---- what a page says of itself ---------------------------------------------------------------

type About = { title: string; author: string; published: string; language: string; canonical: string; description: string; site: string };

/** The first record of a page's JSON-LD that has a headline. */
function linkedData(elements: Element[]): Record<string, unknown> {
  for (const element of elements) {
    if (element.tag !== 'script' || !/ld\+json/i.test(element.attrs.type ?? '')) continue;
    try {
      const data: unknown = JSON.parse(element.children.filter((child) => !isElement(child)).join('').replace(/^\s*<!\[CDATA\[|\]\]>\s*$/g, ''));
      const records = [data].flat().map(asRecord).flatMap((record) => [record, ...asList(record['@graph']).map(asRecord)]);
      const found = records.find((record) => typeof record.headline === 'string');
      if (found) return found;
    } catch {
      // Not JSON; the page may say it elsewhere.
    }
  }
  return {};
}

/** A person or persons, as texts or records. */
function peopleOf(value: unknown): string {
  const names = [value].flat().slice(0, 10).map((person) => plain(person, 100) || plain(asRecord(person).name, 100));
  return names.filter(Boolean).join(', ');
}

function readAbout(root: Element, base: URL): About {
  const elements = elementsOf(root);
  const meta = new Map<string, string>();
  for (const { tag, attrs } of elements) {
    const value = plain(attrs.content, 500);
    if (tag !== 'meta' || !value) continue;
    for (const name of `${attrs.name ?? ''} ${attrs.property ?? ''} ${attrs.itemprop ?? ''}`.toLowerCase().split(/\s+/)) if (name && !meta.has(name)) meta.set(name, value);
  }
  const data = linkedData(elements);
  const first = (...names: string[]): string => names.map((name) => meta.get(name) ?? '').find(Boolean) ?? '';
  const titleElement = elements.find(({ tag, parent }) => tag === 'title' && parent?.tag !== 'svg');
  const html = elements.find(({ tag }) => tag === 'html');
  const canonical = elements.find(({ tag, attrs }) => tag === 'link' && attrs.rel?.toLowerCase() === 'canonical')?.attrs.href;
  const pageTitle = plain(titleElement?.children.filter((child) => !isElement(child)).join(''), 300);
  const author = first('author', 'article:author', 'dc.creator', 'parsely-author');
  return {
    title: plain(data.headline, 300) || plain(first('og:title', 'twitter:title', 'dc.title'), 300) || pageTitle,
    author: plain(peopleOf(data.author), 200) || (/^https?:/.test(author) ? '' : plain(author, 200)),
    published: plain(data.datePublished, 60) || plain(first('article:published_time', 'datepublished', 'date', 'dc.date', 'parsely-pub-date', 'pubdate'), 60),
    language: plain(html?.attrs.lang ?? html?.attrs['xml:lang'], 20) || plain(data.inLanguage, 20) || first('og:locale').slice(0, 20),
    canonical: (canonical && safeTarget(canonical, base)) || '',
    description: plain(first('description', 'og:description'), 500),
    site: plain(first('og:site_name'), 100),
  };
}

/** The address against which a page's links are meant. */
function baseOf(root: Element, url: URL): URL {
  const href = elementsOf(root).find(({ tag, attrs }) => tag === 'base' && attrs.href !== undefined)?.attrs.href;
  const base = href === undefined ? undefined : parseUrl(href.trim(), url);
  return base && /^https?:$/.test(base.protocol) && base.href.length <= URL_MAX ? base : url;
}

const LINK_SCHEMES = /^(https?|mailto|tel|ftp|xmpp|magnet|geo|news|sms):$/;
const LINK_MAX = 2_000;

/** A link's whole address, or nothing if following it would run something or show something from inside the page. */
function safeTarget(href: string, base: URL): string | undefined {
  const url = href.length > LINK_MAX ? undefined : parseUrl(href.trim(), base);
  return url && LINK_SCHEMES.test(url.protocol) && url.href.length <= LINK_MAX ? url.href : undefined;
}

// ---- tables -----------------------------------------------------------------------------------

type Cell = { element?: Element; isHeader: boolean };

const COLUMNS_MAX = 60;

/** The rows of a table itself, not those of tables inside it. */
function rowsOf(table: Element): Element[] {
  return table.children.filter(isElement).flatMap((child) => {
    if (child.tag === 'tr') return [child];
    return /^(thead|tbody|tfoot)$/.test(child.tag) ? child.children.filter(isElement).filter(({ tag }) => tag === 'tr') : [];
  });
}

function cellsOf(row: Element): Element[] {
  return row.children.filter(isElement).filter(({ tag }) => tag === 'td' || tag === 'th');
}

function span(element: Element, name: string): number {
  const value = parseInt(element.attrs[name] ?? '1', 10);
  return value >= 1 ? Math.min(value, COLUMNS_MAX) : 1;
}

/** Rows and columns with a cell for each place; what a cell spans beyond its first place is empty. */
function gridOf(table: Element): Cell[][] {
  const pending: number[] = [];
  return rowsOf(table).map((row) => {
    const cells: Cell[] = [];
    const fill = (): void => {
      while (pending[cells.length] > 0 && cells.length < COLUMNS_MAX) {
        pending[cells.length] -= 1;
        cells.push({ isHeader: false });
      }
    };
    for (const element of cellsOf(row)) {
      fill();
      for (let i = 0; i < span(element, 'colspan') && cells.length < COLUMNS_MAX; i += 1) {
        pending[cells.length] = span(element, 'rowspan') - 1;
        cells.push({ element: i === 0 ? element : undefined, isHeader: element.tag === 'th' });
      }
    }
    fill();
    return cells;
  });
}

/** A table of data, not one that only places things on the page. */
function isDataTable(table: Element): boolean {
  const { role } = table.attrs;
  if (role === 'presentation' || role === 'none') return false;
  const rows = rowsOf(table).map(cellsOf);
  const columns = rows.reduce((most, cells) => Math.max(most, cells.length), 0);
  if (rows.length < 2 || columns < 2) return false;
  const holds = (cell: Element): boolean => elementsOf(cell).some(({ tag }) => /^(table|h[1-6]|form|article|section|pre|blockquote)$/.test(tag));
  if (rows.some((cells) => cells.some(holds))) return false;
  const isNamed = table.children.some((child) => isElement(child) && /^(caption|thead)$/.test(child.tag)) || rows.some((cells) => cells.some(({ tag }) => tag === 'th'));
  const words = rows.flat().reduce((sum, cell) => sum + textOf(cell).length, 0);
  return isNamed || words / rows.flat().length < 200;
}

// ---- Markdown and text ------------------------------------------------------------------------

type Style = {
  base: URL;
  links: boolean;
  plain: boolean;
  dropped: Set<Element>;
  /** Characters that link targets may still take, so that no page gets much longer than it is. */
  budget: { links: number };
  /** How deep in lists and quotes; from some depth on no more is indented. */
  depth: number;
  /** The target of a link around blocks, for the first text in them. */
  href?: { target?: string };
};

const NESTING_MAX = 8;

function escapeMarkdown(text: string): string {
  return text
    .replace(/[\\`]/g, '\\$&')
    .replace(/\*(?! )|(?<! )\*/g, '\\*')
    .replace(/(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu, '\\_')
    .replace(/\](?=[(:[])/g, '\\]')
    .replace(/<(?=[a-z/!?])/gi, '\\<')
    .replace(/&(?=#?[a-z0-9]{1,31};)/gi, '\\&')
    .replace(/~(?=~)/g, '\\~');
}

/** A line of text that would be a heading, list item, quote, rule or table. */
function escapeLineStart(line: string): string {
  return line.replace(/^(#{1,6}(?= |$)|>|[-+](?= |$)|={2,}|-{2,}|\|)/, '\\$1').replace(/^(\d{1,9})([.)])(?= |$)/, '$1\\$2');
}

function cleanSpaces(text: string): string {
  return text.replace(/[\u00ad\u200b\u2060\ufeff]/g, '').replace(/[\s\u0000-\u001f\u007f]+/g, ' ');
}

/** Put marks around a text, spaces outside. */
function wrapped(mark: string, text: string): string {
  const inner = text.trim();
  if (inner === '' || inner.includes(mark)) return text;
  const start = text.slice(0, text.length - text.trimStart().length);
  const end = text.slice(text.trimEnd().length);
  return `${start}${mark}${inner}${mark}${end}`;
}

function fenceFor(text: string, least: number, mark = '`'): string {
  const runs = text.match(/`+/g) ?? [];
  return mark.repeat(Math.max(least, ...runs.slice(0, 10_000).map((run) => run.length + 1)));
}

function inlineCode(element: Element, style: Style): string {
  const text = cleanSpaces(textOf(element)).trim();
  if (style.plain || text === '') return text;
  const fence = fenceFor(text, 1);
  const pad = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return `${fence}${pad}${text}${pad}${fence}`;
}

function linkTarget(element: Element, style: Style): string | undefined {
  const href = element.attrs.href ?? '';
  // A place in the same page is no use outside of it.
  if (!style.links || style.plain || href === '' || href.startsWith('#')) return undefined;
  const target = safeTarget(href, style.base)?.replace(/[()\s<>\\]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);
  if (target === undefined || style.budget.links < target.length) return undefined;
  style.budget.links -= target.length;
  return target;
}

function linked(text: string, target: string | undefined): string {
  const label = text.trim();
  if (target === undefined || label === '') return text;
  const start = text.startsWith(' ') ? ' ' : '';
  const end = text.endsWith(' ') ? ' ' : '';
  const safe = label.includes('![') ? label : label.replace(/(?<!\\)[[\]]/g, '\\$&');
  return `${start}[${safe.replace(/\n+/g, ' ')}](${target})${end}`;
}

/** Pictures that only count readers, or stand in for one that comes later. */
function pictureSource(element: Element): string | undefined {
  const { attrs } = element;
  const fromSet = (attrs.srcset ?? attrs['data-srcset'])?.trim().split(/[\s,]/)[0];
  const sources = [attrs['data-src'], attrs['data-original'], attrs['data-lazy-src'], attrs.src, fromSet];
  if (/^[01](px)?$/.test(attrs.width ?? '') || /^[01](px)?$/.test(attrs.height ?? '')) return undefined;
  return sources.find((source) => source !== undefined && source.trim() !== '' && !/^\s*data:/i.test(source));
}

function picture(element: Element, style: Style): string {
  const alt = cleanSpaces(element.attrs.alt ?? '').trim();
  if (style.plain) return '';
  const source = style.links ? pictureSource(element) : undefined;
  const target = source && linkTarget(newElement('a', { href: source }), style);
  if (!target || !/^https?:/.test(target)) return '';
  return `![${escapeMarkdown(alt).replace(/(?<!\\)[[\]]/g, '\\$&')}](${target})`;
}

/** The text of what stands in a line. A line break is "\n"; there are no others. */
function inline(node: Element | string, style: Style): string {
  if (!isElement(node)) return style.plain ? cleanSpaces(node) : escapeMarkdown(cleanSpaces(node));
  if (style.dropped.has(node)) return '';
  const inside = (): string => node.children.map((child) => inline(child, style)).join('');
  switch (node.tag) {
    case 'br':
      return '\n';
    case 'wbr':
      return '';
    case 'img':
      return picture(node, style);
    case 'code':
    case 'tt':
    case 'kbd':
    case 'samp':
      return node.children.some((child) => isElement(child) && child.tag === 'a') ? inside() : inlineCode(node, style);
    case 'strong':
    case 'b':
      return style.plain ? inside() : wrapped('**', inside());
    case 'em':
    case 'i':
      return style.plain ? inside() : wrapped('*', inside());
    case 'del':
    case 's':
    case 'strike':
      return style.plain ? inside() : wrapped('~~', inside());
    case 'q':
      return `"${inside()}"`;
    case 'sup':
      return superscript(inside());
    case 'a':
      return linked(inside(), linkTarget(node, style));
    default:
      // A block amid a line, as in a cell of a table or a link around a card.
      return BLOCK_TAGS.has(node.tag) ? ` ${inside()} ` : inside();
  }
}

/** 10², not 102; footnote marks as they are. */
function superscript(text: string): string {
  return /^[\d+−-]{1,3}$/.test(text) ? `^${text}` : text;
}

function tidyLine(text: string): string {
  return text.replace(/ *\n */g, '\n').replace(/ {2,}/g, ' ').trim();
}

/** A run of inline content as paragraphs: one break is a line, several end the paragraph. */
function paragraphs(nodes: Array<Element | string>, style: Style): string[] {
  let text = tidyLine(nodes.map((node) => inline(node, style)).join(''));
  if (text === '') return [];
  if (style.href?.target) {
    text = linked(text, style.href.target);
    style.href.target = undefined;
  }
  return text.split(/\n{2,}/).map((paragraph) => paragraph.split('\n')).map((lines) => (style.plain ? lines.join('\n') : lines.map(escapeLineStart).join('  \n')));
}

function indented(text: string, indent: string, first = indent): string {
  return text.split('\n').map((line, i) => (line === '' && i > 0 ? '' : (i === 0 ? first : indent) + line)).join('\n');
}

function listBlock(list: Element, style: Style): string[] {
  const isOrdered = list.tag === 'ol';
  const first = parseInt(list.attrs.start ?? '1', 10);
  let number = Number.isSafeInteger(first) && first >= 0 ? first : 1;
  const isDeep = style.depth >= NESTING_MAX;
  const inner = { ...style, depth: style.depth + 1 };
  const items: string[] = [];
  for (const child of list.children) {
    if (isElement(child) ? style.dropped.has(child) : child.trim() === '') continue;
    const item = isElement(child) && child.tag === 'li' ? child : newElement('li', {}, [child]);
    const parts = blocks(item, inner);
    if (parts.length === 0) continue;
    const isNestedList = isElement(child) && (child.tag === 'ul' || child.tag === 'ol');
    const marker = isNestedList ? '  ' : isOrdered ? `${number}. ` : '- ';
    if (!isNestedList) number += 1;
    // A list right below an item's text needs no blank line.
    const text = parts.reduce((whole, part, i) => (i === 0 ? part : `${whole}${/^(- |\d+\. )/.test(part) ? '\n' : '\n\n'}${part}`), '');
    items.push(isDeep ? text : indented(text, ' '.repeat(marker.length), marker));
  }
  return items.length === 0 ? [] : [items.join(items.some((item) => item.includes('\n\n')) ? '\n\n' : '\n')];
}

function codeLanguage(pre: Element): string {
  const candidates = [pre, ...elementsOf(pre).filter(({ tag }) => tag === 'code'), ...(pre.parent ? [pre.parent] : [])];
  for (const { attrs } of candidates) {
    const named = attrs['data-lang'] ?? attrs['data-language'] ?? /(?:^|\s)(?:language|lang|highlight-source|highlight|brush)[-:]\s?([\w+#.-]+)/.exec(attrs.class ?? '')?.[1];
    if (named && /^[\w+#.-]{1,30}$/.test(named)) return named.toLowerCase();
  }
  return '';
}

function codeBlock(pre: Element, style: Style): string[] {
  const text = textOf(pre).replace(/\r\n?/g, '\n').replace(/^\n/, '').trimEnd();
  if (text.trim() === '') return [];
  if (style.plain) return [text];
  const fence = fenceFor(text, 3);
  return [`${fence}${codeLanguage(pre)}\n${text}\n${fence}`];
}

function cellText(cell: Cell, style: Style): string {
  if (!cell.element || style.dropped.has(cell.element)) return '';
  const text = tidyLine(cell.element.children.map((child) => inline(child, style)).join('')).replace(/\n+/g, ' ');
  return style.plain ? text : text.replace(/(?<!\\)\|/g, '\\|');
}

function tableBlock(table: Element, style: Style): string[] {
  const captions = table.children.filter((child) => isElement(child) && child.tag === 'caption').flatMap((child) => blocks(child as Element, style));
  if (!isDataTable(table)) return [...captions, ...rowsOf(table).flatMap((row) => cellsOf(row)).filter((cell) => !style.dropped.has(cell)).flatMap((cell) => blocks(cell, style))];
  const rows = gridOf(table).map((cells) => cells.map((cell) => cellText(cell, style)));
  const full = rows.filter((cells) => cells.some((text) => text !== ''));
  const columns = full.reduce((most, cells) => Math.max(most, cells.length), 0);
  if (full.length === 0) return captions;
  if (style.plain) return [...captions, full.map((cells) => cells.join(' | ').trimEnd()).join('\n')];
  const lines = full.map((cells) => `| ${[...cells, ...Array<string>(columns - cells.length).fill('')].join(' | ')} |`);
  lines.splice(1, 0, `|${' --- |'.repeat(columns)}`);
  return [...captions, lines.join('\n')];
}

function headingBlock(element: Element, style: Style): string[] {
  const [text = ''] = paragraphs([newElement('span', {}, [tidyLine(element.children.map((child) => inline(child, style)).join('')).replace(/\n+/g, ' ')])], { ...style, plain: true });
  if (text === '') return [];
  return [style.plain ? text : `${'#'.repeat(Number(element.tag[1]))} ${text}`];
}

function quoteBlock(element: Element, style: Style): string[] {
  const inner = blocks(element, { ...style, depth: style.depth + 1 });
  if (inner.length === 0 || style.plain || style.depth >= NESTING_MAX) return inner;
  return [inner.join('\n\n').split('\n').map((line) => (line === '' ? '>' : `> ${line}`)).join('\n')];
}

/** A link around blocks: the link goes to the first text in it. */
function linkedBlocks(element: Element, style: Style): string[] {
  return blocks(element, { ...style, href: { target: linkTarget(element, style) } });
}

function block(element: Element, style: Style): string[] {
  switch (element.tag) {
    case 'h1':
    case 'h2':
    case 'h3':
    case 'h4':
    case 'h5':
    case 'h6':
      return headingBlock(element, style);
    case 'ul':
    case 'ol':
    case 'menu':
    case 'dir':
      return listBlock(element, style);
    case 'pre':
    case 'xmp':
      return codeBlock(element, style);
    case 'table':
      return tableBlock(element, style);
    case 'blockquote':
      return quoteBlock(element, style);
    case 'hr':
      return [style.plain ? '----' : '---'];
    case 'a':
      return linkedBlocks(element, style);
    case 'dt':
      return style.plain ? paragraphs(element.children, style) : paragraphs([newElement('b', {}, element.children)], style);
    default:
      return blocks(element, style);
  }
}

/** The blocks in an element; what stands between them in lines becomes paragraphs. */
function blocks(element: Element, style: Style): string[] {
  const parts: string[] = [];
  let run: Array<Element | string> = [];
  const flush = (): void => {
    for (const part of run.length > 0 ? paragraphs(run, style) : []) parts.push(part);
    run = [];
  };
  for (const child of element.children) {
    if (isElement(child) && style.dropped.has(child)) continue;
    if (!isBlocky(child)) {
      run.push(child);
      continue;
    }
    flush();
    for (const part of block(child as Element, style)) parts.push(part);
  }
  flush();
  return parts;
}

// ---- clean HTML -------------------------------------------------------------------------------

const HTML_TAGS = words(
  'a abbr article b blockquote br caption cite code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark ol p pre q s samp section small strong sub summary sup table tbody td tfoot th thead time tr u ul var',
);
const HTML_ATTRIBUTES = ['alt', 'colspan', 'rowspan', 'datetime', 'lang', 'start', 'title'];

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (char) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[char] ?? char);
}

/** HTML with the tags and attributes that carry meaning, and no address but of the safe kinds. */
function htmlOf(node: Element | string, style: Style): string {
  if (!isElement(node)) return escapeHtml(node);
  if (style.dropped.has(node)) return '';
  const inside = node.children.map((child) => htmlOf(child, style)).join('');
  if (!HTML_TAGS.has(node.tag)) return isBlocky(node) ? `${inside}\n` : inside;
  const attrs = HTML_ATTRIBUTES.filter((name) => node.attrs[name] !== undefined).map((name) => ` ${name}="${escapeHtml(node.attrs[name])}"`);
  const href = node.tag === 'a' ? node.attrs.href : node.tag === 'img' ? pictureSource(node) : undefined;
  const target = href === undefined ? undefined : linkTarget(newElement('a', { href }), style);
  if (node.tag === 'img' && !target) return '';
  if (target) attrs.push(` ${node.tag === 'a' ? 'href' : 'src'}="${escapeHtml(target)}"`);
  const start = `<${node.tag}${attrs.join('')}>`;
  if (VOID_TAGS.has(node.tag)) return start;
  return `${start}${inside}</${node.tag}>${BLOCK_TAGS.has(node.tag) ? '\n' : ''}`;
}

// ---- from a page to a document ----------------------------------------------------------------

/** What is shown of a page: its text, facts that head it, and notes that end it. */
type Document = { text: string; facts: Array<[string, string]>; notes: string[]; bytes?: Buffer };

const CUT_NOTE = `The page has more than ${ELEMENTS_MAX} elements; the rest of it was left out.`;

function inStyle(article: { root: Element; dropped: Set<Element> }, base: URL, request: Request, length: number): string {
  const style: Style = { base, links: request.links, plain: request.format === 'text', dropped: article.dropped, budget: { links: 2_000_000 + 4 * length }, depth: 0 };
  if (request.format === 'html') return htmlOf(article.root, style).replace(/[ \t]+\n/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
  return blocks(article.root, style).join('\n\n');
}

/** Where a page without much text sends its reader, if it does. */
function forwardOf(root: Element, base: URL): string | undefined {
  const refresh = elementsOf(root).find(({ tag, attrs }) => tag === 'meta' && attrs['http-equiv']?.toLowerCase() === 'refresh');
  const target = /url\s*=\s*["']?([^"']+)/i.exec(refresh?.attrs.content?.slice(0, URL_MAX) ?? '')?.[1];
  return target && safeTarget(target, base);
}

/** A page that a program in it would draw has scripts but hardly a text. */
function looksEmpty(root: Element, length: number): boolean {
  if (length >= 250) return false;
  const elements = elementsOf(root);
  const scripts = elements.filter(({ tag }) => tag === 'script').length;
  const isShell = elements.some(({ attrs }) => /^(app|root|__next|__nuxt|svelte|main-app|react-root)$/.test(attrs.id ?? ''));
  return scripts >= 3 || (scripts >= 1 && isShell);
}

function htmlDocument(html: string, url: URL, request: Request): Document {
  const { root, isCut } = parseMarkup(html);
  const base = baseOf(root, url);
  const about = readAbout(root, base);
  const always = dropAlways(root);
  const full = measureAll(root, always).get(root)?.length ?? 0;
  const forward = full < 500 ? forwardOf(root, base) : undefined;
  const notes = isCut ? [CUT_NOTE] : [];
  if (forward) notes.push(`This page forwards to ${forward}; fetch that address.`);
  else if (looksEmpty(root, full)) notes.push('This page has almost no text of its own: JavaScript fills it in. Use the browser tool to see it.');
  const article = request.article ? findArticle(root, always) : { root, dropped: always };
  return {
    text: inStyle(article, base, request, html.length),
    facts: [
      ['Title', about.title],
      ['Author', about.author],
      ['Published', about.published],
      ['Site', about.site],
      ['Language', about.language],
      ['Canonical', about.canonical === url.href ? '' : about.canonical],
      ['Description', about.description],
    ],
    notes,
  };
}

/** Text of a feed's entry, which is often HTML in text. */
function plainOf(markup: string, max: number): string {
  const { root } = parseMarkup(markup.slice(0, 20_000));
  return plain(textOf(root), max);
}

function childrenNamed(element: Element | undefined, ...names: string[]): Element[] {
  return (element?.children ?? []).filter(isElement).filter(({ tag }) => names.includes(tag));
}

function rawText(element: Element | undefined): string {
  if (!element) return '';
  return element.children.map((child) => (isElement(child) ? rawText(child) : child)).join('');
}

function feedEntry(entry: Element, base: URL, asPlain: boolean): string {
  const links = childrenNamed(entry, 'link');
  const alternate = links.find(({ attrs }) => attrs.rel === undefined || attrs.rel === 'alternate') ?? links[0];
  const target = safeTarget(alternate?.attrs.href ?? rawText(alternate), base) ?? '';
  const title = plainOf(rawText(childrenNamed(entry, 'title')[0]), 300) || '(no title)';
  const date = plain(rawText(childrenNamed(entry, 'pubDate', 'published', 'updated', 'dc:date')[0]), 60);
  const author = plainOf(rawText(childrenNamed(childrenNamed(entry, 'author')[0], 'name')[0] ?? childrenNamed(entry, 'author', 'dc:creator')[0]), 100);
  const summary = plainOf(rawText(childrenNamed(entry, 'description', 'summary', 'content', 'content:encoded')[0]), 600);
  const byline = [date, author].filter(Boolean).join(', ');
  if (asPlain) return [title, target, byline, summary].filter(Boolean).join('\n');
  return [`## ${target ? linked(escapeMarkdown(title), target.replace(/[()]/g, (c) => (c === '(' ? '%28' : '%29'))) : escapeMarkdown(title)}`, byline, escapeMarkdown(summary)].filter(Boolean).join('\n\n');
}

/** A feed as a list of its entries; other XML as it is. */
function xmlDocument(xml: string, url: URL, request: Request): Document {
  if (request.format === 'html' || !request.article) return { text: xml, facts: [], notes: [] };
  const { root, isCut } = parseMarkup(xml, true);
  const feed = root.children.filter(isElement).find(({ tag }) => /^(rss|feed|rdf:RDF)$/.test(tag));
  if (!feed) return /<html[\s>]/i.test(xml.slice(0, 2_000)) ? htmlDocument(xml, url, request) : { text: xml, facts: [], notes: [] };
  const channel = feed.tag === 'feed' ? feed : childrenNamed(feed, 'channel')[0];
  const entries = feed.tag === 'rdf:RDF' ? childrenNamed(feed, 'item') : childrenNamed(channel, 'item', 'entry');
  const facts: Document['facts'] = [
    ['Title', plainOf(rawText(childrenNamed(channel, 'title')[0]), 300)],
    ['Description', plainOf(rawText(childrenNamed(channel, 'description', 'subtitle')[0]), 500)],
    ['Feed', `${entries.length} entries`],
  ];
  return { text: entries.map((entry) => feedEntry(entry, url, request.format === 'text')).join('\n\n'), facts, notes: isCut ? [CUT_NOTE] : [] };
}

const JSON_DEPTH_MAX = 60;

/** The deepest nesting of brackets, strings not looked at: it may be too high, never too low. */
function depthOf(json: string): number {
  let depth = 0;
  let deepest = 0;
  for (const char of json) {
    if (char === '{' || char === '[') deepest = Math.max(deepest, (depth += 1));
    else if (char === '}' || char === ']') depth -= 1;
  }
  return deepest;
}

/** JSON in lines, unless that would change it: numbers longer than JavaScript's stay as they were sent. */
function prettyJson(text: string): string {
  if (/\d{16}|\d[eE][+-]?\d{3}/.test(text) || depthOf(text) > JSON_DEPTH_MAX) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function withTempDir<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'web-fetch-'));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function pdfDocument(session: Session, body: Buffer): Promise<Document> {
  requireCommands(['pdftotext'], 'poppler-utils');
  tell(session, 'Reading the PDF...');
  const result = await withTempDir(async (folder) => {
    const path = join(folder, 'page.pdf');
    writeFileSync(path, body);
    return run('pdftotext', ['-layout', '-enc', 'UTF-8', path, '-'], { timeoutMs: 60_000, maxOutput: 4 * BODY_MAX, signal: session.signal });
  });
  if (result.stopped) throw new Problem(`pdftotext was stopped: the PDF ${result.stopped === 'timeout' ? 'takes too long to read' : 'has too much text'}. Set output_path to a file ending in .pdf to save it as it is.`);
  const why = lastLines(result.stderr, 3);
  if (/incorrect password/i.test(why)) throw new Problem('The PDF is encrypted and needs a password. Set output_path to a file ending in .pdf to save it as it is.');
  if (result.code !== 0) throw new Problem(`The PDF cannot be read (pdftotext: ${plain(why, 300)}).`);
  const text = result.stdout.toString('utf8').replace(/\f/g, '\n\n').replace(/[ \t]+$/gm, '').replace(/\n{4,}/g, '\n\n\n').trim();
  const notes = text === '' ? ['The PDF has no text, only pictures of pages. Save it with output_path and use the ocr tool.'] : [];
  return { text, facts: [['Format', 'PDF']], notes };
}

function binaryProblem(page: Page, type: string): Problem {
  const what = type || 'binary data without a type';
  return new Problem(`${plain(page.url.href, 300)} is ${plain(what, 80)} (${page.body.length} bytes), not text. Set output_path to save it as a file.`);
}

async function readDocument(session: Session, page: Page, request: Request): Promise<Document> {
  const { type, charset } = mediaType(page.headers);
  const kind = kindOf(type, page.body);
  const wantsBytes = request.outputPath !== undefined && (request.format === 'raw' || kind === 'binary' || (kind === 'pdf' && /\.pdf$/i.test(request.outputPath)));
  if (wantsBytes) return { text: '', facts: [['Type', plain(type, 80)]], notes: [], bytes: page.body };
  if (kind === 'binary') throw binaryProblem(page, type);
  if (kind === 'pdf') return pdfDocument(session, page.body);
  const text = decode(page.body, kind, charset).replace(/^\ufeff/, '');
  const asSent = { text, facts: [], notes: [] };
  if (request.format === 'raw') return asSent;
  tell(session, `Reading ${page.body.length} bytes of ${kind}...`);
  if (kind === 'html') return htmlDocument(text, page.url, request);
  if (kind === 'xml') return xmlDocument(text, page.url, request);
  return kind === 'json' ? { ...asSent, text: prettyJson(text) } : asSent;
}

// ---- answers ----------------------------------------------------------------------------------

/** What a status means for the agent. */
function statusHint(page: Page): string {
  const retryAfter = plain(page.headers['retry-after'], 60);
  switch (page.status) {
    case 401:
      return 'It needs credentials: pass an Authorization header in headers, or use the browser tool, where the user may be signed in.';
    case 403:
      return 'The server refuses programs like this, or the page is not public. Try the browser tool.';
    case 404:
    case 410:
      return 'There is no such page. Check the address, or look for it with web_search.';
    case 429:
      return retryAfter ? `Too many requests; the server asks to wait (Retry-After: ${retryAfter}).` : 'Too many requests; wait a minute before you try again.';
    default:
      return page.status >= 500 ? 'The server has a problem; try again later.' : '';
  }
}

function statusProblem(page: Page, request: Request): Problem {
  const { type, charset } = mediaType(page.headers);
  const kind = kindOf(type, page.body);
  let said = '';
  if (kind !== 'binary' && kind !== 'pdf') {
    const text = decode(page.body, kind, charset);
    said = plain(kind === 'html' ? htmlDocument(text, page.url, { ...request, article: false, format: 'text' }).text : text, 500);
  }
  const status = `${page.status} ${plain(page.reason, 80)}`.trim();
  return new Problem([`${plain(page.url.href, 300)} answers ${status}.`, statusHint(page), said && `It says: ${said}`].filter(Boolean).join(' '));
}

/** The place to cut at, so that no character is split. */
function cutAt(text: string, end: number): number {
  return end < text.length && /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') && end > 1 ? end - 1 : end;
}

function headOf(page: Page, request: Request, document: Document): string {
  const from = page.url.href === request.url.href ? '' : ` (asked for ${plain(request.url.href, 300)})`;
  const facts = document.facts.filter(([, value]) => value !== '').map(([name, value]) => `${name}: ${value}`);
  return [`URL: ${plain(page.url.href, 1_000)}${from}`, ...facts].join('\n');
}

/** The part of the text that was asked for, with what comes before and after it. */
function shownPart(page: Page, request: Request, document: Document): string {
  const { text, notes } = document;
  const head = headOf(page, request, document);
  if (request.start > 0 && request.start >= text.length) throw new Problem(`There is nothing from character ${request.start} on: the text has ${text.length} characters.`);
  // Head, notes and the last line stay within the cap too.
  const room = TEXT_MAX - head.length - notes.join('\n').length - 300;
  const end = Math.max(cutAt(text, request.start + Math.min(request.max, room)), request.start + 1);
  const rest = text.length - end;
  const range = request.start > 0 || rest > 0 ? `Characters ${request.start} to ${Math.min(end, text.length)} of ${text.length}` : '';
  const more = rest > 0 ? `… ${rest} more characters; read on with start: ${end}, or set output_path to get everything.` : '';
  const body = text === '' ? '(The page has no text.)' : text.slice(request.start, end);
  return [[head, range].filter(Boolean).join('\n'), body, more, ...notes].filter(Boolean).join('\n\n');
}

async function fetchAndRead(session: Session, request: Request): Promise<ToolResult> {
  const page = await fetchPage(session, request);
  if (page.status >= 400) throw statusProblem(page, request);
  const document = await readDocument(session, page, request);
  if (session.signal?.aborted) throw new Problem('Cancelled.');
  if (!request.outputPath) return ok(shownPart(page, request, document));
  const saved = saveFile(request.outputPath, document.bytes ?? `${document.text}\n`);
  const what = document.bytes ? 'The content as it was sent' : `${document.text.length} characters of ${request.format}`;
  return ok([`${what} saved to ${saved}.`, headOf(page, request, document), ...document.notes].join('\n'));
}

// ---- entry ------------------------------------------------------------------------------------

/** Values of these headers are secrets that no text may show. */
const SECRET_HEADERS = /auth|cookie|token|key|secret|session/;

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const request = readRequest(params);
    const session: Session = { signal, onUpdate, secrets: new Set() };
    for (const [name, value] of Object.entries(request.headers)) {
      if (SECRET_HEADERS.test(name)) for (const secret of [value, value.replace(/^\S+ /, '')]) addSecret(session, secret);
    }
    return await guarded(session, () => fetchAndRead(session, request));
  } catch (e) {
    return failure('Web fetch failed', e);
  }
}
