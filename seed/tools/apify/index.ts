// Run actors on Apify and read what they found.

import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

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

/** The end of a program's error output, for an error text. */
function lastLines(text: string, count = 20): string {
  return text.trim().split('\n').slice(-count).join('\n');
}

// Shared helpers for tools that talk to a server. (The same rule: one text, wherever they stand.)

/** How long one exchange may take; how often a request is repeated, and how long that may wait in all. */
const HTTP_TIMEOUT_MS = 30_000;
const HTTP_RETRIES = 3;
const HTTP_WAIT_MAX_MS = 60_000;

/** The largest answer that is accepted, and how much is read of an error's. */
const HTTP_BODY_MAX = 64 * 1024 * 1024;
const HTTP_ERROR_BODY_MAX = 64 * 1024;

/** Secrets shorter than this are words that may stand in any text; they are not looked for. */
const SECRET_MIN = 8;

/** No answer came; `code` is the system's name for the reason. */
class Unreachable extends Problem {
  code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/** One call's dealings with servers: what ends it, who hears of progress, and what no text may show. */
type Session = { signal?: AbortSignal; onUpdate?: OnUpdate; secrets: Set<string> };

type HttpRequest = {
  method?: 'GET' | 'POST' | 'PUT';
  headers?: Record<string, string>;
  body?: string;
  timeoutMs?: number;
  maxBytes?: number;
  /** The first wait before a repetition, if the server names none; it doubles each time. */
  firstWaitMs?: number;
  /** What else than 429 (and for GET some of 5xx) means "ask again later". */
  isBusy?: (response: HttpResponse) => boolean;
  /** Follow a redirect to any https server, without our headers; else only within the same server. */
  followAnywhere?: boolean;
};

type HttpResponse = { url: URL; status: number; reason: string; headers: Headers; body: Buffer };

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

function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/** An http(s) address from the configuration. `name` says where it stands. */
function asBaseUrl(name: string, text: string): URL {
  const url = parseUrl(text);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new Problem(`${name} is not an http or https address. Ask the user to correct it in Settings → Integrations.`);
}

/** An address below a base, which may have a path of its own. `path` is encoded, `query` is not. */
function apiUrl(base: URL, path: string, query: Record<string, string | number | string[] | undefined> = {}): URL {
  const url = new URL(base.origin);
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`;
  for (const [name, value] of Object.entries(query)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== '') url.searchParams.append(name, String(item));
    }
  }
  return url;
}

/** All configured integrations; none if the variable is unset or not a JSON object. */
function resources(): Record<string, unknown> {
  try {
    return asRecord(JSON.parse(firstNonEmpty(process.env.OFFICER_RESOURCES) ?? '{}'));
  } catch {
    return {};
  }
}

// What a server sends is whatever it is: these take out what has the expected type, else nothing.

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

function bodyText(session: Session, response: HttpResponse): string {
  return redact(session, response.body.toString('utf8'));
}

/** The body as JSON, or undefined if it is none. */
function bodyJson(session: Session, response: HttpResponse): unknown {
  try {
    return JSON.parse(bodyText(session, response));
  } catch {
    return undefined;
  }
}

/** The readable beginning of a body, for an error text. */
function excerpt(session: Session, response: HttpResponse, max = 500): string {
  const text = bodyText(session, response).slice(0, 16_384);
  return plain(text.replace(/<(script|style)\b[^<]*<\/\1>/gi, ' ').replace(/<[^<>]*>/g, ' '), max);
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

/** One request and its whole answer, of an error's the beginning. Redirects are not followed. */
async function exchange(session: Session, url: URL, request: HttpRequest): Promise<HttpResponse> {
  const { method = 'GET', headers, body, timeoutMs = HTTP_TIMEOUT_MS, maxBytes = HTTP_BODY_MAX } = request;
  if (session.signal?.aborted) throw new Problem('Cancelled.');
  const abort = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    abort.abort();
  }, timeoutMs);
  const cancel = (): void => abort.abort();
  session.signal?.addEventListener('abort', cancel, { once: true });
  try {
    const response = await fetch(url, { method, headers, body, redirect: 'manual', signal: abort.signal });
    const limit = response.ok ? maxBytes : HTTP_ERROR_BODY_MAX;
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk as Uint8Array);
      size += (chunk as Uint8Array).length;
      if (size <= limit) continue;
      if (response.ok) throw new Problem(`The answer of ${url.host} is larger than ${Math.floor(limit / 1048576)} MiB. Ask for less.`);
      break;
    }
    return { url, status: response.status, reason: response.statusText, headers: response.headers, body: Buffer.concat(chunks).subarray(0, limit) };
  } catch (e) {
    if (e instanceof Problem) throw e;
    if (session.signal?.aborted) throw new Problem('Cancelled.');
    if (late) throw new Unreachable(`${url.host} did not answer within ${timeoutMs / 1000} seconds. Try again later.`, 'timeout');
    // fetch itself says only "fetch failed"; the reason is in the cause.
    const { cause } = e as { cause?: { code?: string; message?: string } };
    const code = cause?.code ?? cause?.message ?? String(e);
    throw new Unreachable(`Cannot reach ${url.host} (${code}).`, code);
  } finally {
    clearTimeout(timer);
    session.signal?.removeEventListener('abort', cancel);
  }
}

/** The same server, or its encrypted port. */
function isSameServer(from: URL, to: URL): boolean {
  return to.origin === from.origin || (to.protocol === 'https:' && to.port === '' && to.hostname === from.hostname);
}

/** Is it safe to send the request on to where its answer points? */
function mayFollow(from: URL, to: URL, { method = 'GET', followAnywhere = false }: HttpRequest): boolean {
  if (method !== 'GET' || to.username || to.password) return false;
  return isSameServer(from, to) || (followAnywhere && to.protocol === 'https:');
}

/** `exchange` that follows up to five redirects of a GET; our headers stay with the server they are for. */
async function exchangeFollowing(session: Session, url: URL, request: HttpRequest): Promise<HttpResponse> {
  let response = await exchange(session, url, request);
  let headers = request.headers;
  for (let hops = 0; [301, 302, 303, 307, 308].includes(response.status); hops += 1) {
    const next = parseUrl(response.headers.get('location') ?? 'https:', response.url);
    if (!next || hops === 5 || !mayFollow(response.url, next, request)) {
      throw new Problem(`${response.url.host} redirects to ${next?.host ?? 'an invalid address'}, which is not followed. Ask the user to check the address in Settings → Integrations.`);
    }
    if (!isSameServer(response.url, next)) headers = undefined;
    response = await exchange(session, next, { ...request, headers });
  }
  return response;
}

/** The wait that a server asks for, by its header or in its message. */
function askedWaitMs(response: HttpResponse): number | undefined {
  const header = response.headers.get('retry-after')?.trim();
  if (header && /^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const inText = /retry after (\d{4}-\d{2}-\d{2}T[\d:.]+Z)/i.exec(response.body.toString('latin1', 0, 4096))?.[1];
  const time = Date.parse(header ?? inText ?? '');
  return Number.isNaN(time) ? undefined : Math.max(0, time - Date.now());
}

function mayRepeat(outcome: HttpResponse | Unreachable, { method = 'GET', isBusy }: HttpRequest): boolean {
  if (outcome instanceof Unreachable) {
    // Of these three the request certainly never reached the server; of the others it may have.
    const unsent = ['ECONNREFUSED', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];
    const broken = ['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_SOCKET'];
    return unsent.includes(outcome.code) || (method === 'GET' && broken.includes(outcome.code));
  }
  if (outcome.status === 429 || isBusy?.(outcome)) return true;
  return method === 'GET' && [500, 502, 503, 504].includes(outcome.status);
}

/**
 * Send a request and give its answer, whatever its status. What may be repeated is, up to three
 * times, after the wait that the server asks for, else 1, 2 and 4 seconds; never over a minute in all.
 */
async function send(session: Session, url: URL, request: HttpRequest = {}): Promise<HttpResponse> {
  let waited = 0;
  for (let tried = 1; ; tried += 1) {
    const outcome = await exchangeFollowing(session, url, request).catch((e: unknown) => {
      if (e instanceof Unreachable) return e;
      throw e;
    });
    const asked = outcome instanceof Unreachable ? undefined : askedWaitMs(outcome);
    const wait = (asked ?? (request.firstWaitMs ?? 1_000) * 2 ** (tried - 1)) + Math.random() * 200;
    if (tried > HTTP_RETRIES || waited + wait > HTTP_WAIT_MAX_MS || !mayRepeat(outcome, request)) {
      if (outcome instanceof Unreachable) throw outcome;
      return outcome;
    }
    const what = outcome instanceof Unreachable ? `${outcome.code} from` : `status ${outcome.status} from`;
    tell(session, `Waiting ${(wait / 1000).toFixed(1)} s and trying again (${what} ${url.host})...`);
    await pause(session, wait);
    waited += wait;
  }
}

// ---- parameters -------------------------------------------------------------------------------

const ACTIONS = ['run', 'status', 'items', 'abort', 'log', 'actor', 'search'] as const;
const ROOT = 'https://api.apify.com';
const PAGE = 1_000;
const ITEMS_MAX = 100_000;
const FOUND_MAX = 20;
/** All items of a call together, as bytes of JSON. */
const BYTES_MAX = 256 * 1024 * 1024;

type Params = {
  action?: string;
  actor_id?: string;
  input?: string;
  run_id?: string;
  query?: string;
  max_items?: number;
  timeout_seconds?: number;
  memory_mb?: number;
  build?: string;
  fields?: string;
  wait?: boolean;
  output_path?: string;
  api_token?: string;
};

type Request = {
  action: string;
  actorId?: string;
  input: string;
  runId?: string;
  query?: string;
  max: number;
  timeoutMs: number;
  memory?: number;
  build?: string;
  fields?: string;
  wait: boolean;
  outputPath?: string;
};

/** `user/name`, `user~name`, an id, or the address of the actor's page, as the API wants it. */
function asActorId(value: unknown): string | undefined {
  const text = asText('actor_id', value)?.trim();
  if (text === undefined || text === '') return undefined;
  const page = /^https:\/\/(?:apify\.com|console\.apify\.com\/actors)\/([^?#]+?)\/?(?:[?#].*)?$/.exec(text)?.[1];
  const id = (page ?? text).replace('/', '~');
  if (id.length <= 200 && /^[\w-][\w.-]*(~[\w-][\w.-]*)?$/.test(id)) return id;
  throw new Problem(`actor_id must be "username/name" or an actor's id, not "${text.slice(0, 60)}". Find actors with action=search.`);
}

function asPattern(name: string, value: unknown, pattern: RegExp, what: string): string | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined || text === '' || pattern.test(text)) return text || undefined;
  throw new Problem(`${name} must be ${what}, not "${text.slice(0, 60)}".`);
}

/** The actor's input: a JSON object, checked here so that no run is started for nothing. */
function asInput(value: unknown): string {
  const given = typeof value === 'object' && value !== null ? JSON.stringify(value) : asText('input', value);
  const text = given?.trim() || '{}';
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (e) {
    throw new Problem(`input is not valid JSON (${e instanceof Error ? e.message : String(e)}). It must be a JSON object, such as {"startUrls": [{"url": "https://example.com"}]}.`);
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new Problem('input must be a JSON object, such as {"maxItems": 10}. action=actor shows what the actor takes.');
  }
  return text;
}

function asMemory(value: unknown): number | undefined {
  const memory = asInteger('memory_mb', value, 128, 32_768);
  if (memory === undefined || Number.isInteger(Math.log2(memory))) return memory;
  throw new Problem(`memory_mb must be a power of 2 (128, 256, 512, 1024, ...), not ${memory}.`);
}

function readRequest(params: Params): Request {
  const { action = 'run', input = '{}', max_items = 100, timeout_seconds = 300, wait = true, output_path } = params ?? {};
  const outputPath = asText('output_path', output_path);
  return {
    action: asChoice('action', action, ACTIONS) ?? 'run',
    actorId: asActorId(params?.actor_id),
    input: asInput(input),
    runId: asPattern('run_id', params?.run_id, /^[\w-]{1,64}$/, 'the id of a run'),
    query: asText('query', params?.query)?.slice(0, 500),
    max: asInteger('max_items', max_items, 1, ITEMS_MAX) ?? 100,
    timeoutMs: (asNumber('timeout_seconds', timeout_seconds, 1, 86_400) ?? 300) * 1000,
    memory: asMemory(params?.memory_mb),
    build: asPattern('build', params?.build, /^[\w.-]{1,64}$/, 'a tag such as "latest" or a number such as "1.2.3"'),
    fields: asPattern('fields', params?.fields, /^[^\x00-\x1f]{1,2000}$/, 'a comma-separated list of fields'),
    wait: asBoolean('wait', wait) ?? true,
    outputPath: outputPath && userPath(outputPath),
  };
}

/** The value that an action cannot do without. */
function needed(request: Request, name: string, value: string | undefined, hint: string): string {
  if (value) return value;
  throw new Problem(`${name} parameter is required for ${request.action} action. ${hint}`);
}

// ---- the API ----------------------------------------------------------------------------------

type Api = { session: Session; base: URL; headers: Record<string, string> };

function openApi(session: Session, token: unknown): Api {
  const resource = asRecord(resources().apify);
  const key =
    asToken('api_token', token) ??
    asToken('OFFICER_APIFY_TOKEN', process.env.OFFICER_APIFY_TOKEN) ??
    asToken('The token of the resource apify', firstNonEmpty(asString(resource.token), asString(resource.api_token)));
  if (!key) throw new Problem('Apify API token not configured. Ask the user to add it in Settings → Integrations.');
  addSecret(session, key);
  const base = asBaseUrl('The base_url of the resource apify', firstNonEmpty(asString(resource.base_url)) ?? ROOT);
  return { session, base, headers: { authorization: `Bearer ${key}`, accept: 'application/json' } };
}

/** What to tell of an answer with an error's status. `what` is the thing that the path names. */
function apiProblem(api: Api, response: HttpResponse, what: string): Problem {
  const { type, message } = asRecord(asRecord(bodyJson(api.session, response)).error);
  const said = plain(message, 1_000) || excerpt(api.session, response) || `status ${response.status}`;
  const detail = type ? `${said} (${plain(type, 100)})` : said;
  const { status } = response;
  if (status === 401) return new Problem(`Apify rejected the API token: ${detail}. Ask the user to check it in Settings → Integrations.`);
  if (status === 402 || status === 403) {
    return new Problem(`Apify does not allow this: ${detail}. Ask the user: the account may have reached its usage limit, the actor may have to be rented first, or the token may lack the permission.`);
  }
  if (status === 404) {
    const hint = what.startsWith('actor') ? ' Look for actors with action=search.' : ' Take the id from the result of action=run.';
    return new Problem(`Apify has no ${what}: ${detail}.${hint}`);
  }
  if (status === 400) {
    const hint = what.startsWith('actor') ? ' action=actor shows the input that the actor takes.' : '';
    return new Problem(`Apify refused the request: ${detail}.${hint}`);
  }
  if (status === 413) return new Problem(`The input is too large for Apify: ${detail}.`);
  if (status === 429) return new Problem(`Apify's rate limit is reached: ${detail}. Try again in a minute.`);
  return new Problem(`Apify failed with status ${status}: ${detail}. Try again later.`);
}

type Query = Record<string, string | number | undefined>;

async function get(api: Api, path: string, query: Query, what: string, more: HttpRequest = {}): Promise<HttpResponse> {
  const response = await send(api.session, apiUrl(api.base, path, query), { headers: api.headers, firstWaitMs: 500, ...more });
  if (response.status !== 200) throw apiProblem(api, response, what);
  return response;
}

/** The `data` of an answer, which every kind of thing but items, logs and records comes in. */
async function getData(api: Api, path: string, query: Query, what: string): Promise<Record<string, unknown>> {
  return asRecord(asRecord(bodyJson(api.session, await get(api, path, query, what))).data);
}

// ---- runs -------------------------------------------------------------------------------------

type Run = {
  id: string;
  actId: string;
  status: string;
  message: string;
  started: string;
  finished: string;
  datasetId: string;
  storeId: string;
  exitCode: string;
  usd?: number;
};

const WAITING = ['READY', 'RUNNING', 'TIMING-OUT', 'ABORTING'];

function isOver(run: Run): boolean {
  return !WAITING.includes(run.status);
}

function idIn(value: unknown): string {
  const id = asString(value);
  return /^[\w-]{1,64}$/.test(id) ? id : '';
}

function readRun(data: Record<string, unknown>): Run {
  const run = {
    id: idIn(data.id),
    actId: idIn(data.actId),
    status: plain(data.status, 40),
    message: plain(data.statusMessage, 1_000),
    started: plain(data.startedAt, 40),
    finished: plain(data.finishedAt, 40),
    datasetId: idIn(data.defaultDatasetId),
    storeId: idIn(data.defaultKeyValueStoreId),
    exitCode: plain(data.exitCode, 20),
    usd: typeof data.usageTotalUsd === 'number' ? data.usageTotalUsd : undefined,
  };
  if (!run.id || !run.status) throw new Problem('The answer of the API is no run of an actor. Ask the user to check the base_url of the resource apify.');
  return run;
}

async function getRun(api: Api, id: string, waitSeconds?: number): Promise<Run> {
  return readRun(await getData(api, `/v2/actor-runs/${id}`, { waitForFinish: waitSeconds }, `run "${id}"`));
}

/**
 * Start the run. This costs money, so it is sent a second time only if Apify certainly has not got
 * it, or refused it for its rate limit; else the error says that the run may be there.
 */
async function startRun(api: Api, request: Request, actorId: string): Promise<Run> {
  const query = { memory: request.memory, maxItems: request.max, build: request.build };
  const unknown = 'It is not known whether the run was started: ask the user to look in Apify Console before it is started again.';
  const headers = { ...api.headers, 'content-type': 'application/json' };
  try {
    const url = apiUrl(api.base, `/v2/acts/${actorId}/runs`, query);
    const response = await send(api.session, url, { method: 'POST', headers, body: request.input, firstWaitMs: 500 });
    if (response.status >= 500) throw new Problem(`${apiProblem(api, response, 'actor').message} ${unknown}`);
    if (response.status !== 201 && response.status !== 200) throw apiProblem(api, response, `actor "${actorId.replace('~', '/')}"`);
    const data = asRecord(asRecord(bodyJson(api.session, response)).data);
    if (!idIn(data.id)) throw new Problem(`The answer of ${api.base.host} to the start is no run of an actor. ${unknown}`);
    return readRun(data);
  } catch (e) {
    if (api.session.signal?.aborted) throw new Problem(`Cancelled. ${unknown}`);
    const unsent = e instanceof Unreachable && ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'].includes(e.code);
    throw e instanceof Unreachable && !unsent ? new Problem(`${e.message} ${unknown}`) : e;
  }
}

/** How many items there are already; undefined where that cannot be read, for it is only told as progress. */
async function countItems(api: Api, datasetId: string): Promise<number | undefined> {
  if (!datasetId) return undefined;
  const dataset = await getData(api, `/v2/datasets/${datasetId}`, {}, 'dataset').catch(() => ({}) as Record<string, unknown>);
  return typeof dataset.itemCount === 'number' ? dataset.itemCount : undefined;
}

async function tellRun(api: Api, run: Run, since: number): Promise<void> {
  const count = run.status === 'RUNNING' ? await countItems(api, run.datasetId) : undefined;
  const parts = [run.status, run.message, `${Math.round((Date.now() - since) / 1000)} s`, count === undefined ? '' : `${count} items so far`];
  tell(api.session, `Run ${run.id}: ${parts.filter(Boolean).join(', ')}`);
}

/** Ask for the run until it is over or the time is up. The server holds each answer for some seconds. */
async function follow(api: Api, first: Run, timeoutMs: number): Promise<Run> {
  const since = Date.now();
  let run = first;
  await tellRun(api, run, since);
  for (let hold = 5; !isOver(run); hold = 10) {
    const left = since + timeoutMs - Date.now();
    if (left <= 0) return run;
    const asked = Date.now();
    run = await getRun(api, run.id, Math.min(hold, Math.ceil(left / 1000)));
    await tellRun(api, run, since);
    // A server that does not hold its answer is asked once a second.
    if (!isOver(run)) await pause(api.session, Math.max(0, Math.min(1_000, left) - (Date.now() - asked)));
  }
  return run;
}

async function getLog(api: Api, runId: string): Promise<string> {
  const response = await get(api, `/v2/actor-runs/${runId}/log`, {}, `log of run "${runId}"`);
  return bodyText(api.session, response).replace(/\x1b\[[\d;]*m/g, '');
}

/** What went wrong with a run, from its record and the end of its log. */
async function runProblem(api: Api, run: Run): Promise<Problem> {
  const log = await getLog(api, run.id).catch((e: Error) => `(the log cannot be read: ${e.message})`);
  const head = [`Run ${run.id} ended as ${run.status}`, run.message, run.exitCode && `exit code ${run.exitCode}`].filter(Boolean).join(', ');
  const items = run.datasetId ? `\n\nWhat it had found until then: action=items, run_id=${run.id}.` : '';
  return new Problem(`${head}.\n\nThe end of its log:\n${lastLines(log).slice(-8_000) || '(empty)'}${items}`);
}

// ---- items ------------------------------------------------------------------------------------

type Items = { items: unknown[]; total?: number; notes: string[] };

/**
 * Read a dataset page by page. `clean` leaves out empty items, so a page may be shorter than asked;
 * what counts is the offset against the total that the server names.
 */
async function readItems(api: Api, datasetId: string, request: Request): Promise<Items> {
  const found: Items = { items: [], notes: [] };
  let bytes = 0;
  for (let offset = 0, pages = 0; found.items.length < request.max && pages < PAGE; pages += 1) {
    const limit = Math.min(PAGE, request.max - found.items.length);
    const query = { format: 'json', clean: 1, offset, limit, fields: request.fields };
    const response = await get(api, `/v2/datasets/${datasetId}/items`, query, `dataset "${datasetId}"`);
    const page = bodyJson(api.session, response);
    if (!Array.isArray(page)) throw new Problem(`The items of dataset ${datasetId} are no JSON array.`);
    for (const item of page.slice(0, limit)) found.items.push(item);
    offset += limit;
    bytes += response.body.length;
    const total = Number(response.headers.get('x-apify-pagination-total') ?? NaN);
    if (Number.isSafeInteger(total)) found.total = total;
    if (found.total === undefined ? page.length < limit : offset >= found.total) break;
    if (bytes > BYTES_MAX) {
      found.notes.push(`Only the first ${found.items.length} items were read, for they are larger than 256 MiB; give fields to get less of each.`);
      break;
    }
    if (found.items.length < request.max) tell(api.session, `${found.items.length} of ${found.total ?? 'unknown'} items read...`);
  }
  return found;
}

/** The record that actors without a dataset leave: JSON, text or a file. */
async function readOutput(api: Api, storeId: string): Promise<HttpResponse | undefined> {
  if (!storeId) return undefined;
  const url = apiUrl(api.base, `/v2/key-value-stores/${storeId}/records/OUTPUT`);
  const response = await send(api.session, url, { headers: api.headers, firstWaitMs: 500, followAnywhere: true });
  if (response.status === 404 || response.status === 204) return undefined;
  if (response.status !== 200) throw apiProblem(api, response, 'record OUTPUT');
  return response;
}

function describeRun(run: Run): string {
  const seconds = (Date.parse(run.finished) - Date.parse(run.started)) / 1000;
  const facts = [
    run.started && `started ${run.started}`,
    run.finished && `finished ${run.finished}`,
    seconds >= 0 ? `took ${Math.round(seconds)} s` : '',
    run.usd === undefined ? '' : `cost $${run.usd.toFixed(4)}`,
    run.exitCode && run.exitCode !== '0' ? `exit code ${run.exitCode}` : '',
  ];
  const line = facts.filter(Boolean).join(', ');
  return [`Run ${run.id}: ${run.status}${run.message ? ` (${run.message})` : ''}`, line, run.datasetId && `Dataset ${run.datasetId}`].filter(Boolean).join('\n');
}

/** Whole items as JSON, as many as a text can hold. */
function showItems(found: Items, room: number): string {
  const shown: string[] = [];
  for (const item of found.items) {
    const text = JSON.stringify(item, null, 2);
    room -= text.length + 2;
    if (room < 0 && shown.length > 0) break;
    shown.push(text);
  }
  const list = `[\n${shown.join(',\n')}\n]`;
  if (shown.length === found.items.length) return list;
  return `${list}\n… truncated: ${shown.length} of ${found.items.length} items shown; set output_path to get everything, or fields to get less of each.`;
}

function answerOutput(session: Session, head: string, record: HttpResponse, outputPath: string | undefined): ToolResult {
  const type = plain(record.headers.get('content-type') ?? 'unknown type', 100);
  const isText = /^(text\/|application\/(json|xml|[\w.+-]+\+(json|xml)))/.test(type);
  const data = isText ? bodyText(session, record) : record.body;
  const intro = `${head}\n\nThe dataset is empty; the run left the record OUTPUT (${type}, ${record.body.length} bytes)`;
  if (outputPath) return ok(`${intro}, saved to ${saveFile(outputPath, data)}.`);
  if (typeof data !== 'string') return ok(`${intro}. Set output_path to save it.`);
  return ok(capText(`${intro}:\n${data}`));
}

/** The result of a run: its items, or what else it left. */
async function answerItems(api: Api, run: Run, request: Request): Promise<ToolResult> {
  const found = run.datasetId ? await readItems(api, run.datasetId, request) : { items: [], notes: [] };
  const head = describeRun(run);
  const notes = isOver(run) ? found.notes : [...found.notes, `The run is still ${run.status}; call action=items again later for the rest.`];
  if (found.items.length === 0) {
    const record = isOver(run) ? await readOutput(api, run.storeId) : undefined;
    if (record) return answerOutput(api.session, head, record, request.outputPath);
  }
  const more = found.total !== undefined && found.total > found.items.length ? ` (of ${found.total}; max_items is ${request.max})` : '';
  const tail = notes.length ? `\n\n${notes.join('\n')}` : '';
  if (request.outputPath) {
    const saved = saveFile(request.outputPath, `${JSON.stringify(found.items, null, 2)}\n`);
    return ok(capText(`${found.items.length} items saved to ${saved}${more}.\n\n${head}${tail}`));
  }
  if (found.items.length === 0) return ok(`${head}\n\nNo items.${tail}`);
  return ok(capText(`${head}\n\n${found.items.length} items${more}:\n${showItems(found, TEXT_MAX - head.length - tail.length - 1_000)}${tail}`));
}

// ---- actions ----------------------------------------------------------------------------------

async function runActor(api: Api, request: Request): Promise<ToolResult> {
  const actorId = needed(request, 'actor_id', request.actorId, 'Find one with action=search, and see its input with action=actor.');
  tell(api.session, `Starting ${actorId.replace('~', '/')}...`);
  const started = await startRun(api, request, actorId);
  if (!request.wait) return ok(`${describeRun(started)}\n\nStarted. Call action=status or action=items with run_id=${started.id} later.`);
  try {
    const last = await follow(api, started, request.timeoutMs);
    if (!isOver(last)) {
      return ok(`${describeRun(last)}\n\nAfter ${request.timeoutMs / 1000} s the run is still ${last.status}, and goes on. Use action=items, run_id=${last.id} later, or action=abort to stop it.`);
    }
    if (last.status !== 'SUCCEEDED') throw await runProblem(api, last);
    return await answerItems(api, last, request);
  } catch (e) {
    // Whatever happens here, the run is there and may be costing money: its id must not get lost.
    if (e instanceof Problem && e.message.includes(started.id)) throw e;
    throw new Problem(`${e instanceof Error ? e.message : String(e)} The run may still go on: use action=status, items or abort with run_id=${started.id}.`);
  }
}

async function abort(api: Api, runId: string): Promise<ToolResult> {
  const url = apiUrl(api.base, `/v2/actor-runs/${runId}/abort`);
  const response = await send(api.session, url, { method: 'POST', headers: api.headers, firstWaitMs: 500 });
  if (response.status >= 300) throw apiProblem(api, response, `run "${runId}"`);
  return ok(describeRun(readRun(asRecord(asRecord(bodyJson(api.session, response)).data))));
}

async function log(api: Api, runId: string, outputPath: string | undefined): Promise<ToolResult> {
  const text = await getLog(api, runId);
  if (outputPath) return ok(`${text.split('\n').length - (text.endsWith('\n') ? 1 : 0)} lines of log saved to ${saveFile(outputPath, text)}.`);
  if (text.length <= TEXT_MAX) return ok(text.trim() || 'The log is empty.');
  // The end of a log tells more than its beginning.
  const end = text.slice(-TEXT_MAX);
  return ok(`… truncated (${text.length - end.length} more characters before); set output_path to get everything.\n${end.replace(/^[\uDC00-\uDFFF]/, '')}`);
}

function describePricing(value: unknown): string {
  const { pricingModel, pricePerUnitUsd, unitName } = asRecord(value);
  const price = typeof pricePerUnitUsd === 'number' ? ` $${pricePerUnitUsd}${unitName ? ` per ${plain(unitName, 40)}` : ''}` : '';
  return pricingModel ? `${plain(pricingModel, 60).toLowerCase().replaceAll('_', ' ')}${price}` : '';
}

/** The input schema of a build: an object in newer builds, JSON in a string in older ones. */
function inputSchemaOf(build: Record<string, unknown>): Record<string, unknown> {
  const schema = asRecord(build.actorDefinition).input ?? build.inputSchema;
  if (typeof schema !== 'string') return asRecord(schema);
  try {
    return asRecord(JSON.parse(schema));
  } catch {
    return {};
  }
}

function describeInput(name: string, field: Record<string, unknown>, isRequired: boolean): string {
  const values = asList(field.enum).slice(0, 30).map((value) => plain(value, 60)).join(' | ');
  const given = (key: string): string => (field[key] === undefined ? '' : `${key} ${JSON.stringify(field[key]).slice(0, 200)}`);
  const facts = [plain(field.type, 40), isRequired ? 'required' : '', values && `one of ${values}`, given('default'), given('prefill')];
  const text = [plain(field.title, 100), plain(field.description, 400)].filter(Boolean).join('. ');
  return `- ${plain(name, 100)} (${facts.filter(Boolean).join(', ')}): ${text}`;
}

async function actor(api: Api, request: Request): Promise<ToolResult> {
  const id = needed(request, 'actor_id', request.actorId, 'Find one with action=search.');
  const what = `actor "${id.replace('~', '/')}"`;
  const data = await getData(api, `/v2/acts/${id}`, {}, what);
  const build = await getData(api, `/v2/acts/${id}/builds/default`, {}, `default build of ${what}`);
  if (request.outputPath) return ok(`1 items saved to ${saveFile(request.outputPath, `${JSON.stringify({ actor: data, build }, null, 2)}\n`)}.`);
  const schema = inputSchemaOf(build);
  const required = asList(schema.required);
  const fields = Object.entries(asRecord(schema.properties)).map(([name, field]) => describeInput(name, asRecord(field), required.includes(name)));
  const example = plain(asRecord(data.exampleRunInput).body, 2_000);
  const lines = [
    `${plain(data.title, 200) || plain(data.name, 200)} (${plain(data.username, 100)}/${plain(data.name, 100)}, id ${plain(data.id, 64)})`,
    plain(data.description, 1_000),
    data.isDeprecated === true ? 'This actor is deprecated.' : '',
    describePricing(asList(data.pricingInfos).at(-1)) && `Pricing: ${describePricing(asList(data.pricingInfos).at(-1))}`,
    '',
    fields.length ? `Input:\n${fields.join('\n')}` : 'The actor describes no input; try {} or the example.',
    example && `\nExample input: ${example}`,
  ];
  return ok(capText(lines.filter((line, i) => line !== '' || i === 4).join('\n')));
}

function describeFound(item: Record<string, unknown>, number: number): string {
  const { totalUsers, totalRuns } = asRecord(item.stats);
  const facts = [
    typeof totalUsers === 'number' ? `${totalUsers} users` : '',
    typeof totalRuns === 'number' ? `${totalRuns} runs` : '',
    describePricing(item.currentPricingInfo),
  ];
  return [
    `${number}. ${plain(item.username, 100)}/${plain(item.name, 100)}: ${plain(item.title, 200)}`,
    `   ${plain(item.description, 400)}`,
    `   ${facts.filter(Boolean).join(', ')}`,
  ].filter((line) => line.trim() !== '').join('\n');
}

async function search(api: Api, request: Request): Promise<ToolResult> {
  const words = needed(request, 'query', request.query, 'Give words for the Apify Store, such as "instagram posts".');
  const data = await getData(api, '/v2/store', { search: words, limit: Math.min(request.max, FOUND_MAX) }, 'store');
  const items = asList(data.items).map(asRecord);
  if (request.outputPath) return ok(`${items.length} items saved to ${saveFile(request.outputPath, `${JSON.stringify(items, null, 2)}\n`)}.`);
  if (items.length === 0) return ok('No actors found. Try other or fewer words.');
  const head = `${items.length} actors${typeof data.total === 'number' && data.total > items.length ? ` of ${data.total}` : ''}:`;
  return ok(capText(`${head}\n\n${items.map((item, i) => describeFound(item, i + 1)).join('\n\n')}`));
}

async function act(api: Api, request: Request): Promise<ToolResult> {
  if (request.action === 'run') return runActor(api, request);
  if (request.action === 'actor') return actor(api, request);
  if (request.action === 'search') return search(api, request);
  const runId = needed(request, 'run_id', request.runId, 'It is in the result of action=run.');
  if (request.action === 'abort') return abort(api, runId);
  if (request.action === 'log') return log(api, runId, request.outputPath);
  const found = await getRun(api, runId);
  return request.action === 'items' ? answerItems(api, found, request) : ok(describeRun(found));
}

// ---- entry -------------------------------------------------------------------------------------

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const request = readRequest(params);
    const session: Session = { signal, onUpdate, secrets: new Set() };
    return await guarded(session, async () => act(openApi(session, params?.api_token), request));
  } catch (e) {
    return failure('Apify failed', e);
  }
}
