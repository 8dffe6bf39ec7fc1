// Read the user's mail in Gmail, through its REST API.

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

/** A text parameter of at most `max` characters; undefined if it is not given or blank. */
function asShortText(name: string, value: unknown, max: number): string | undefined {
  const text = asText(name, value)?.trim();
  if (text !== undefined && text.length > max) throw new Problem(`${name} is longer than ${max} characters.`);
  return text || undefined;
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

const ACTIONS = ['search', 'read', 'threads', 'thread', 'labels', 'attachment', 'profile'] as const;
const ROOT = 'https://gmail.googleapis.com';
const TOKEN_URL = 'https://oauth2.googleapis.com/token';
const SCOPE = 'https://www.googleapis.com/auth/gmail.readonly';
const NOT_CONNECTED = 'Gmail is not connected. Ask the user to connect Gmail in Settings → Integrations.';

/** Requests at a time; Gmail counts units a second and user. */
const PARALLEL = 5;
/** Labels whose messages are counted; each costs a request. */
const COUNTED_LABELS = 100;
/** A message's parts may be nested; deeper than this no mail program goes. */
const DEPTH_MAX = 40;

type Params = {
  action: string;
  query?: string;
  id?: string;
  label_ids?: string;
  attachment?: string;
  max_results?: number;
  page_token?: string;
  include_spam_trash?: boolean;
  format?: string;
  output_path?: string;
  access_token?: string;
};

type Request = {
  action: string;
  query?: string;
  id?: string;
  labels: string[];
  attachment?: string;
  max: number;
  pageToken?: string;
  spamTrash: boolean;
  format: string;
  outputPath?: string;
};

function readRequest(params: Params): Request {
  const { action, max_results = 10, include_spam_trash = false, format = 'text', output_path } = params ?? {};
  const wanted = asChoice('action', action, ACTIONS);
  if (wanted === undefined) throw new Problem(`action parameter is required. Available: ${ACTIONS.join(', ')}.`);
  const id = asShortText('id', params.id, 200);
  if (id && !/^[\w-]+$/.test(id)) throw new Problem(`id must be the id of a message or thread, such as "18c1f2a3b4d5e6f7", not "${id.slice(0, 60)}". Take it from a search result; it is not the Message-ID header.`);
  const outputPath = asText('output_path', output_path);
  return {
    action: wanted,
    query: asShortText('query', params.query, 2_000),
    id,
    labels: (asShortText('label_ids', params.label_ids, 2_000) ?? '').split(',').map((label) => label.trim()).filter(Boolean),
    attachment: asShortText('attachment', params.attachment, 1_000),
    max: asInteger('max_results', max_results, 1, 500) ?? 10,
    pageToken: asShortText('page_token', params.page_token, 1_000),
    spamTrash: asBoolean('include_spam_trash', include_spam_trash) ?? false,
    format: asChoice('format', format, ['text', 'html', 'headers', 'json']) ?? 'text',
    outputPath: outputPath && userPath(outputPath),
  };
}

function neededId(request: Request): string {
  if (request.id) return request.id;
  throw new Problem(`id parameter is required for ${request.action} action. Take it from a result of action=search or threads.`);
}

// ---- the account ------------------------------------------------------------------------------

/** What it takes to get a new access token. */
type Renewal = { url: URL; form: Record<string, string> };

type Account = { session: Session; base: URL; token?: string; renewal?: Renewal; renewing?: Promise<void> };

/** A failure with the status that the API gave. */
class ApiProblem extends Problem {
  status: number;
  isBusy: boolean;
  constructor(message: string, status: number, isBusy = false) {
    super(message);
    this.status = status;
    this.isBusy = isBusy;
  }
}

/** Is a time (seconds or milliseconds since 1970, or a date) over, or nearly? */
function isPast(time: string): boolean {
  if (time === '') return false;
  const number = Number(time);
  const ms = Number.isFinite(number) ? (number < 1e11 ? number * 1000 : number) : Date.parse(time);
  return ms < Date.now() + 30_000;
}

function openAccount(session: Session, override: unknown): Account {
  const all = resources();
  const resource = { ...asRecord(all.google), ...asRecord(all.gmail) };
  // Written like_this or likeThis, as whoever made the configuration likes it.
  const setting = (name: string): string => {
    const camel = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    return (firstNonEmpty(asString(resource[name]), asString(resource[camel])) ?? '').trim();
  };
  const base = asBaseUrl('The base_url of the resource gmail', setting('base_url') || ROOT);
  const given = asToken('access_token', override);
  if (given) {
    addSecret(session, given);
    return { session, base, token: given };
  }
  const form = { client_id: setting('client_id'), client_secret: setting('client_secret'), refresh_token: setting('refresh_token') };
  const kept = asToken('The access_token of the resource gmail', setting('access_token'));
  for (const secret of [kept, form.client_secret, form.refresh_token]) addSecret(session, secret);
  const renewal = form.refresh_token && form.client_id
    ? { url: asBaseUrl('The token_url of the resource gmail', setting('token_url') || TOKEN_URL), form: { ...form, grant_type: 'refresh_token' } }
    : undefined;
  if (!kept && !renewal) throw new Problem(NOT_CONNECTED);
  return { session, base, token: renewal && isPast(setting('expires_at')) ? undefined : kept, renewal };
}

async function fetchToken(account: Account, { url, form }: Renewal): Promise<void> {
  const { session } = account;
  tell(session, 'Renewing the access to Gmail...');
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };
  const response = await send(session, url, { method: 'POST', headers, body: new URLSearchParams(form).toString() });
  // As it came, for redacting would spoil the token where it is one that we know already.
  const text = response.body.toString('utf8');
  let data: Record<string, unknown> = {};
  try {
    data = asRecord(JSON.parse(text));
  } catch {
    // No JSON, then it is told below as what it is.
  }
  const token = asToken('The new access token', data.access_token);
  if (response.status !== 200 || !token) {
    const said = [plain(data.error, 100), plain(data.error_description, 500)].filter(Boolean).join(': ') || `status ${response.status}`;
    const advice = response.status >= 500 || response.status === 429 ? 'Try again later.' : 'Ask the user to reconnect Gmail in Settings → Integrations.';
    throw new ApiProblem(`The access to Gmail could not be renewed (${said}). ${advice}`, 401);
  }
  addSecret(session, token);
  account.token = token;
}

/** Get a new access token, once a call however many requests need it. */
async function renew(account: Account): Promise<void> {
  if (!account.renewal) return;
  account.renewing ??= fetchToken(account, account.renewal);
  await account.renewing;
}

// ---- the API ----------------------------------------------------------------------------------

/** The reasons of an error; Gmail names them in one of two places. */
function reasonsOf(response: HttpResponse): string[] {
  let error: Record<string, unknown> = {};
  try {
    error = asRecord(asRecord(JSON.parse(response.body.toString('utf8'))).error);
  } catch {
    // No JSON, no reasons.
  }
  return [...asList(error.errors), ...asList(error.details)].map((item) => asString(asRecord(item).reason)).filter(Boolean);
}

/** Gmail's limits come as 429, or as 403 with one of these reasons. */
function isLimit(response: HttpResponse): boolean {
  const limits = ['rateLimitExceeded', 'userRateLimitExceeded', 'RATE_LIMIT_EXCEEDED'];
  return response.status === 429 || (response.status === 403 && reasonsOf(response).some((reason) => limits.includes(reason)));
}

/** What to tell of an answer with an error's status. `what` is the thing that was asked for. */
function gmailProblem(session: Session, response: HttpResponse, what: string): ApiProblem {
  const { status } = response;
  const reasons = reasonsOf(response);
  const error = asRecord(asRecord(bodyJson(session, response)).error);
  const said = plain(error.message, 1_000) || excerpt(session, response) || `status ${status}`;
  const has = (...names: string[]): boolean => names.some((name) => reasons.includes(name));
  const problem = (text: string): ApiProblem => new ApiProblem(text, status, isLimit(response));
  if (status === 401) return problem(`Gmail rejected the token (${said}). Ask the user to reconnect Gmail in Settings → Integrations.`);
  if (isLimit(response)) return problem(`Gmail's rate limit is reached (${said}). Try again in a minute, with fewer messages.`);
  if (status === 403 && (has('insufficientPermissions', 'ACCESS_TOKEN_SCOPE_INSUFFICIENT') || /scope/i.test(said))) {
    return problem(`The token lacks a permission (${said}). Ask the user to reconnect Gmail in Settings → Integrations and to allow the scope gmail.readonly (${SCOPE}).`);
  }
  if (status === 403 && has('accessNotConfigured', 'SERVICE_DISABLED')) return problem(`The Gmail API is not enabled for the project that the token belongs to (${said}). Ask the user.`);
  if (status === 403 && has('domainPolicy')) return problem(`The administrator of the user's domain does not allow access to Gmail (${said}). Ask the user.`);
  if (status === 403) return problem(`Gmail does not allow this: ${said}. Ask the user.`);
  if (status === 404) return problem(`No ${what}. Take ids from a result of action=search or threads; they are not Message-ID headers.`);
  if (status === 400) return problem(`Gmail refused the request: ${said}.`);
  return problem(`Gmail failed with status ${status}: ${said}. Try again later.`);
}

type Query = Record<string, string | number | string[] | undefined>;

/** Ask the API, with a new token if the old one is refused. `path` is below the user's mailbox. */
async function get(account: Account, path: string, query: Query, what: string): Promise<Record<string, unknown>> {
  const { session } = account;
  const url = apiUrl(account.base, `/gmail/v1/users/me/${path}`, query);
  const ask = async (): Promise<HttpResponse> => {
    const headers = { authorization: `Bearer ${account.token}`, accept: 'application/json' };
    return send(session, url, { headers, isBusy: isLimit });
  };
  if (!account.token) await renew(account);
  const used = account.token;
  let response = await ask();
  if (response.status === 401 && account.renewal) {
    await renew(account);
    if (account.token !== used) response = await ask();
  }
  if (response.status !== 200) throw gmailProblem(session, response, what);
  const data = bodyJson(session, response);
  if (typeof data !== 'object' || data === null) throw new Problem(`The answer of ${url.host} is not Gmail's. Ask the user to check the base_url of the resource gmail.`);
  return asRecord(data);
}

/** Work on the items, a few at a time, with the results in order. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const at = next;
      next += 1;
      try {
        results[at] = await work(items[at]);
      } catch (e) {
        // One that fails fails all, so the others need not begin.
        next = items.length;
        throw e;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, worker));
  return results;
}

// ---- text in messages -------------------------------------------------------------------------

/** What the bytes 128 to 159 are in windows-1252, which is also what mail means by ISO-8859-1. */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

/** Some versions of Node decode windows-1252 as if it were Latin-1. */
function decodeWith(decoder: TextDecoder, bytes: Uint8Array): string {
  const text = decoder.decode(bytes);
  return decoder.encoding === 'windows-1252' ? text.replace(/[\x80-\x9f]/g, (char) => WINDOWS_1252[char.charCodeAt(0) - 0x80]) : text;
}

/** Bytes as text. Most are UTF-8 whatever is declared, but for charsets whose bytes also pass as UTF-8. */
function decodeBytes(bytes: Uint8Array, charset: string): string {
  const decoders = /^(iso-2022|utf-?16)/i.test(charset) ? [charset, 'utf-8'] : ['utf-8', charset];
  for (const label of decoders) {
    try {
      return decodeWith(new TextDecoder(label, { fatal: true }), bytes);
    } catch {
      // Not this one, or a label that nobody knows.
    }
  }
  try {
    return decodeWith(new TextDecoder(charset), bytes);
  } catch {
    return decodeWith(new TextDecoder('windows-1252'), bytes);
  }
}

type Word = { start: number; end: number; charset: string; bytes: Buffer };

function encodedWords(text: string): Word[] {
  return [...text.matchAll(/=\?([\w.:-]{1,40})(?:\*[\w-]{0,20})?\?([bq])\?([^?\s]{0,2000})\?=/gi)].map((match) => {
    const [whole, charset, way, data] = match;
    const quoted = data.replace(/_/g, ' ').replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    const bytes = way.toLowerCase() === 'b' ? Buffer.from(data, 'base64') : Buffer.from(quoted, 'latin1');
    return { start: match.index, end: match.index + whole.length, charset, bytes };
  });
}

/**
 * A header's value with its encoded words (RFC 2047) decoded. Blanks between two of them do not
 * count, and two of one charset may share a character.
 */
function decodeHeader(value: unknown): string {
  const text = asString(value).slice(0, 100_000).replace(/\r?\n[ \t]+/g, ' ');
  let decoded = '';
  let at = 0;
  let open: Word | undefined;
  const flush = (): void => {
    if (open) decoded += decodeBytes(open.bytes, open.charset);
    open = undefined;
  };
  for (const word of encodedWords(text)) {
    const between = text.slice(at, word.start);
    if (open && between.trim() === '' && open.charset.toLowerCase() === word.charset.toLowerCase()) {
      open = { ...word, bytes: Buffer.concat([open.bytes, word.bytes]) };
    } else {
      const isJoined = open !== undefined && between.trim() === '';
      flush();
      decoded += isJoined ? '' : between;
      open = word;
    }
    at = word.end;
  }
  flush();
  return plain(decoded + text.slice(at), 2_000);
}

const ENTITIES: Record<string, string> = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', copy: '©', reg: '®', trade: '™', euro: '€', pound: '£', hellip: '…',
  mdash: '—', ndash: '–', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', laquo: '«', raquo: '»', bull: '•', middot: '·', zwnj: '', shy: '',
  auml: 'ä', ouml: 'ö', uuml: 'ü', szlig: 'ß', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü', eacute: 'é', egrave: 'è', agrave: 'à', ccedil: 'ç', ntilde: 'ñ',
};

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole: string, decimal?: string, hex?: string, name?: string) => {
    const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : undefined;
    if (code === undefined) return ENTITIES[name ?? ''] ?? whole;
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/**
 * HTML as plain text, in one pass over at most 2 million characters. Each search that finds nothing
 * ends the pass, so that no input makes it slow.
 */
function htmlToText(html: string): string {
  const source = html.slice(0, 2_000_000);
  const lower = source.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const pieces: string[] = [];
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf('<', at);
    pieces.push(source.slice(at, open < 0 ? undefined : open).replace(/\s+/g, ' '));
    if (open < 0) break;
    const tag = /^<(\/?[a-z][a-z0-9]*|!--|[!?])/.exec(lower.slice(open, open + 20))?.[1];
    if (tag === undefined) {
      pieces.push('<');
      at = open + 1;
      continue;
    }
    const isHidden = ['script', 'style', 'head', 'title'].includes(tag);
    const close = isHidden ? lower.indexOf(`</${tag}`, open) : open;
    const end = tag === '!--' ? source.indexOf('-->', open) + 2 : close < 0 ? -1 : source.indexOf('>', close);
    if (end < open) break;
    at = end + 1;
    if (/^\/?(p|div|tr|table|ul|ol|h[1-6]|blockquote|pre|hr)$/.test(tag) || tag === 'br') pieces.push('\n');
    if (tag === 'li') pieces.push('\n- ');
    if (tag === 'td' || tag === 'th') pieces.push(' ');
  }
  const text = decodeEntities(pieces.join(''));
  return text.replace(/[^\S\n]+/g, ' ').split('\n').map((line) => line.trim()).join('\n').replace(/\n{3,}/g, '\n\n').trim();
}

// ---- messages ---------------------------------------------------------------------------------

/** A part of a message as the API has it, with what matters taken out. */
type Part = {
  id: string;
  type: string;
  filename: string;
  header: (name: string) => string;
  size: number;
  data: string;
  attachmentId: string;
  parts: Part[];
};

type Message = {
  id: string;
  threadId: string;
  date: string;
  labels: string[];
  snippet: string;
  payload: Part;
  raw: Record<string, unknown>;
};

function readPart(value: unknown, depth = 0): Part {
  const part = asRecord(value);
  const body = asRecord(part.body);
  const headers = asList(part.headers).map(asRecord);
  const header = (name: string): string => decodeHeader(headers.find((item) => asString(item.name).toLowerCase() === name)?.value);
  const attachmentId = asString(body.attachmentId);
  return {
    id: plain(part.partId, 40),
    type: plain(part.mimeType, 100).toLowerCase(),
    filename: decodeHeader(part.filename),
    header,
    size: typeof body.size === 'number' ? body.size : 0,
    data: asString(body.data),
    attachmentId: /^[\w-]{1,4000}$/.test(attachmentId) ? attachmentId : '',
    parts: depth < DEPTH_MAX ? asList(part.parts).map((child) => readPart(child, depth + 1)) : [],
  };
}

/** The API's time, milliseconds since 1970 as a string, as an ISO date. */
function isoDate(value: unknown): string {
  const date = new Date(asString(value) === '' ? NaN : Number(value));
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().replace('.000Z', 'Z');
}

function readMessage(raw: Record<string, unknown>): Message {
  return {
    id: plain(raw.id, 100),
    threadId: plain(raw.threadId, 100),
    date: isoDate(raw.internalDate),
    labels: asList(raw.labelIds).map((label) => plain(label, 100)),
    snippet: plain(decodeEntities(asString(raw.snippet)), 400),
    payload: readPart(raw.payload),
    raw,
  };
}

function isAttachment(part: Part): boolean {
  return part.filename !== '' || /^attachment\b/i.test(part.header('content-disposition'));
}

function isText(part: Part): boolean {
  return (part.type === 'text/plain' || part.type === 'text/html' || part.type === '') && part.parts.length === 0 && !isAttachment(part);
}

/** Every leaf that is no text of the message itself, in order. An attached message is one. */
function attachmentsOf(part: Part): Part[] {
  if (part.type === 'message/rfc822') return [part];
  if (part.parts.length > 0) return part.parts.flatMap(attachmentsOf);
  if (isText(part) || part.type.startsWith('multipart/')) return [];
  return [part];
}

function contains(part: Part, type: string): boolean {
  return (part.type === type && isText(part)) || (part.type !== 'message/rfc822' && part.parts.some((child) => contains(child, type)));
}

async function partBytes(account: Account, message: Message, part: Part): Promise<Buffer> {
  if (!part.attachmentId) return Buffer.from(part.data, 'base64url');
  const answer = await get(account, `messages/${message.id}/attachments/${part.attachmentId}`, {}, `attachment of message "${message.id}"`);
  return Buffer.from(asString(answer.data), 'base64url');
}

/** What a part says of its bytes; empty if it says nothing. */
function charsetOf(part: Part): string {
  return /\bcharset\s*=\s*"?([\w.:-]{1,40})/i.exec(part.header('content-type'))?.[1] ?? '';
}

/** An attached message in a few lines, from the headers of what it holds. */
function summarise(part: Part): string {
  const inner = part.parts[0];
  const line = (name: string): string => (inner?.header(name.toLowerCase()) ? `${name}: ${inner.header(name.toLowerCase())}\n` : '');
  return `[Attached message, part ${part.id}]\n${line('From')}${line('Date')}${line('Subject')}`.trim();
}

/** The texts of a message: of alternatives the kind that is wanted if it is not blank, else all in order. */
async function bodyPieces(account: Account, message: Message, part: Part, wanted: string): Promise<string[]> {
  if (part.type === 'message/rfc822') return wanted === 'text/plain' ? [summarise(part)] : [];
  if (part.type === 'multipart/alternative') {
    const best = part.parts.filter((child) => contains(child, wanted));
    for (const child of [...best, ...part.parts.filter((other) => !best.includes(other))]) {
      const pieces = await bodyPieces(account, message, child, wanted);
      if (pieces.some((piece) => piece.trim() !== '')) return pieces;
    }
    return [];
  }
  if (part.parts.length > 0) {
    const pieces: string[] = [];
    for (const child of part.parts) pieces.push(...(await bodyPieces(account, message, child, wanted)));
    return pieces;
  }
  if (!isText(part)) return [];
  const text = decodeBytes(await partBytes(account, message, part), charsetOf(part)).replace(/\r\n/g, '\n');
  if (wanted === 'text/html') return [part.type === 'text/html' ? text : `<pre>${text.replace(/&/g, '&amp;').replace(/</g, '&lt;')}</pre>`];
  return [part.type === 'text/html' ? htmlToText(text) : text.trim()];
}

async function bodyOf(account: Account, message: Message, wanted: 'text/plain' | 'text/html'): Promise<string> {
  const pieces = await bodyPieces(account, message, message.payload, wanted);
  return redact(account.session, pieces.filter((piece) => piece.trim() !== '').join('\n\n'));
}

// ---- labels -----------------------------------------------------------------------------------

type Label = { id: string; name: string; isUser: boolean };

async function listLabels(account: Account): Promise<Label[]> {
  const { labels } = await get(account, 'labels', {}, 'labels');
  return asList(labels).map(asRecord).map(({ id, name, type }) => ({ id: asString(id), name: plain(name, 200), isUser: type === 'user' }));
}

/** The ids of labels that the agent named by id or by name. */
async function findLabels(account: Account, wanted: string[]): Promise<string[]> {
  if (wanted.length === 0) return [];
  const labels = await listLabels(account);
  return wanted.map((text) => {
    const found = labels.find(({ id }) => id === text) ?? labels.find(({ name }) => name.toLowerCase() === text.toLowerCase());
    if (found) return found.id;
    throw new Problem(`There is no label "${plain(text, 100)}". Available: ${labels.map(({ name }) => name).join(', ')}.`);
  });
}

/** Names of labels by id, asked for only if there are ids that say nothing by themselves. */
async function namesFor(account: Account, messages: Message[]): Promise<Map<string, string>> {
  if (!messages.some(({ labels }) => labels.some((label) => label.startsWith('Label_')))) return new Map();
  return new Map((await listLabels(account)).map(({ id, name }) => [id, name]));
}

// ---- listing ----------------------------------------------------------------------------------

const SHOWN_HEADERS = ['From', 'To', 'Cc', 'Subject', 'Date'];

type Listing = { ids: string[]; nextToken: string; estimate?: number };

/** Ids of messages or threads, page after page until there are enough. */
async function list(account: Account, kind: 'messages' | 'threads', request: Request): Promise<Listing> {
  const labelIds = await findLabels(account, request.labels);
  const found: Listing = { ids: [], nextToken: request.pageToken ?? '' };
  for (let pages = 0; found.ids.length < request.max && pages < 500; pages += 1) {
    const query = {
      q: request.query,
      maxResults: request.max - found.ids.length,
      pageToken: found.nextToken,
      labelIds,
      includeSpamTrash: request.spamTrash ? 'true' : undefined,
    };
    const data = await get(account, kind, query, kind);
    // Without a match the list is absent, not empty.
    for (const item of asList(data[kind])) {
      const id = asString(asRecord(item).id);
      if (/^[\w-]{1,200}$/.test(id)) found.ids.push(id);
    }
    found.estimate ??= typeof data.resultSizeEstimate === 'number' ? data.resultSizeEstimate : undefined;
    found.nextToken = plain(data.nextPageToken, 1_000);
    if (!found.nextToken) break;
    if (found.ids.length < request.max) tell(account.session, `${found.ids.length} ${kind} listed...`);
  }
  return found;
}

type Fetched<T> = { id: string; value?: T; fault?: string };

/**
 * Fetch each listed item; one that fails has its fault instead. After the rate limit is reached no
 * more are asked for; without access, or when cancelled, the whole call fails.
 */
async function fetchEach<T>(account: Account, ids: string[], work: (id: string) => Promise<T>): Promise<Array<Fetched<T>>> {
  let limit: string | undefined;
  return inParallel(ids, async (id) => {
    if (limit) return { id, fault: limit };
    try {
      return { id, value: await work(id) };
    } catch (e) {
      const isFatal = !(e instanceof Problem) || account.session.signal?.aborted || (e instanceof ApiProblem && e.status === 401);
      if (isFatal) throw e;
      if (e instanceof ApiProblem && e.isBusy) limit = e.message;
      return { id, fault: e.message };
    }
  });
}

type Summary = { id: string; thread_id: string; date: string; from: string; to: string; subject: string; snippet: string; labels: string[]; messages?: number };

function summaryOf(message: Message, names: Map<string, string>): Summary {
  const { payload } = message;
  return {
    id: message.id,
    thread_id: message.threadId,
    date: message.date,
    from: payload.header('from'),
    to: payload.header('to'),
    subject: payload.header('subject'),
    snippet: message.snippet,
    labels: message.labels.map((label) => names.get(label) ?? label),
  };
}

function describeSummary({ id, thread_id, date, from, subject, snippet, labels, messages }: Summary, number: number): string {
  const ids = messages === undefined ? `id ${id}, thread ${thread_id}` : `thread ${id}, ${messages} message${messages === 1 ? '' : 's'}`;
  const lines = [
    `${number}. ${plain(subject, 300) || '(no subject)'}`,
    `   ${date || 'no date'} from ${plain(from, 200) || '(nobody)'}`,
    snippet ? `   ${snippet}` : '',
    labels.length ? `   labels ${labels.join(', ')}` : '',
    `   ${ids}`,
  ];
  return lines.filter(Boolean).join('\n');
}

function answerList(kind: string, items: Array<Fetched<Summary>>, listing: Listing, request: Request): ToolResult {
  const more = listing.nextToken ? `next page_token: ${listing.nextToken}` : '';
  if (request.outputPath) {
    const data = items.map(({ id, value, fault }) => value ?? { id, error: fault });
    const failed = items.filter(({ fault }) => fault !== undefined).length;
    const remarks = [failed ? `${failed} of them could not be read; their error is in the file.` : '', more].filter(Boolean);
    return ok([`${items.length} items saved to ${saveFile(request.outputPath, `${JSON.stringify(data, null, 2)}\n`)}.`, ...remarks].join('\n'));
  }
  if (items.length === 0) return ok(`No ${kind} match.${more ? `\n\n${more}` : ''}`);
  const lines = items.map(({ id, value, fault }, i) => (value ? describeSummary(value, i + 1) : `${i + 1}. (id ${id} could not be read: ${fault})`));
  const head = `${items.length} ${kind}${listing.nextToken && listing.estimate ? ` (about ${listing.estimate} match)` : ''}:`;
  const text = [head, ...lines].join('\n\n');
  // The token must survive the cap, for without it there is no way on.
  return ok(more ? `${capText(text)}\n\n${more}` : capText(text));
}

async function search(account: Account, request: Request): Promise<ToolResult> {
  tell(account.session, 'Searching...');
  const listing = await list(account, 'messages', request);
  if (listing.ids.length > 0) tell(account.session, `Reading ${listing.ids.length} messages...`);
  const query = { format: 'metadata', metadataHeaders: SHOWN_HEADERS };
  const fetched = await fetchEach(account, listing.ids, async (id) => readMessage(await get(account, `messages/${id}`, query, `message with id "${id}"`)));
  const names = await namesFor(account, fetched.flatMap(({ value }) => value ?? []));
  const items = fetched.map(({ id, value, fault }) => ({ id, fault, value: value && summaryOf(value, names) }));
  return answerList('messages', items, listing, request);
}

async function threads(account: Account, request: Request): Promise<ToolResult> {
  tell(account.session, 'Searching...');
  const listing = await list(account, 'threads', request);
  if (listing.ids.length > 0) tell(account.session, `Reading ${listing.ids.length} threads...`);
  const query = { format: 'metadata', metadataHeaders: SHOWN_HEADERS };
  const fetched = await fetchEach(account, listing.ids, async (id) => {
    const data = await get(account, `threads/${id}`, query, `thread with id "${id}"`);
    return asList(data.messages).map((message) => readMessage(asRecord(message)));
  });
  const names = await namesFor(account, fetched.flatMap(({ value }) => value ?? []));
  const items = fetched.map(({ id, value, fault }) => ({ id, fault, value: value && threadSummary(id, value, names) }));
  return answerList('threads', items, listing, request);
}

/** A thread: the subject of its first message, date and snippet of its last, everybody who wrote. */
function threadSummary(id: string, messages: Message[], names: Map<string, string>): Summary {
  const all = messages.map((message) => summaryOf(message, names));
  const last = all.at(-1);
  return {
    id,
    thread_id: id,
    date: last?.date ?? '',
    from: [...new Set(all.map(({ from }) => from))].join(', '),
    to: last?.to ?? '',
    subject: all[0]?.subject ?? '',
    snippet: last?.snippet ?? '',
    labels: [...new Set(all.flatMap(({ labels }) => labels))],
    messages: all.length,
  };
}

// ---- reading ----------------------------------------------------------------------------------

function describeAttachment(part: Part): string {
  const inner = part.type === 'message/rfc822' ? part.parts[0]?.header('subject') : '';
  const name = part.filename || (inner ? `message "${inner}"` : '(no name)');
  return `  ${plain(name, 200)} (${part.type || 'unknown type'}, ${part.size} bytes, part ${part.id})`;
}

function describeHeaders(message: Message, names: Map<string, string>): string {
  const { payload } = message;
  const files = attachmentsOf(payload).map(describeAttachment);
  const lines = [
    `Subject: ${payload.header('subject') || '(none)'}`,
    ...['From', 'To', 'Cc', 'Bcc', 'Reply-To', 'Date'].map((name) => {
      const value = payload.header(name.toLowerCase());
      return value && `${name}: ${value}`;
    }),
    message.date && `Received: ${message.date}`,
    message.labels.length ? `Labels: ${message.labels.map((label) => names.get(label) ?? label).join(', ')}` : '',
    `Id: ${message.id}, thread ${message.threadId}`,
    ...(files.length ? ['Attachments:', ...files.slice(0, 100)] : []),
  ];
  return lines.filter(Boolean).join('\n');
}

/** All headers as they came, one a line. */
function rawHeaders(message: Message): string {
  const headers = asList(asRecord(message.raw.payload).headers).map(asRecord);
  return headers.map(({ name, value }) => `${plain(name, 100)}: ${plain(decodeHeader(value), 5_000)}`).join('\n');
}

async function showMessage(account: Account, message: Message, format: string, names: Map<string, string>): Promise<string> {
  if (format === 'headers') return `${rawHeaders(message)}\n\nId: ${message.id}, thread ${message.threadId}`;
  const body = await bodyOf(account, message, format === 'html' ? 'text/html' : 'text/plain');
  if (format === 'html') return body || '(no text)';
  return `${describeHeaders(message, names)}\n\n${body || '(no text)'}`;
}

function answerWhole(text: string, what: string, request: Request): ToolResult {
  if (!request.outputPath) return ok(capText(text));
  return ok(`${what} saved to ${saveFile(request.outputPath, text.endsWith('\n') ? text : `${text}\n`)}.`);
}

async function read(account: Account, request: Request): Promise<ToolResult> {
  const id = neededId(request);
  tell(account.session, 'Reading the message...');
  const format = request.format === 'headers' ? 'metadata' : 'full';
  const raw = await get(account, `messages/${id}`, { format }, `message with id "${id}"`);
  if (request.format === 'json') return answerWhole(JSON.stringify(raw, null, 2), '1 items', request);
  const message = readMessage(raw);
  const text = await showMessage(account, message, request.format, await namesFor(account, [message]));
  return answerWhole(text, `Message ${id} (${request.format})`, request);
}

async function thread(account: Account, request: Request): Promise<ToolResult> {
  const id = neededId(request);
  tell(account.session, 'Reading the thread...');
  const format = request.format === 'headers' ? 'metadata' : 'full';
  const raw = await get(account, `threads/${id}`, { format }, `thread with id "${id}"`);
  const messages = asList(raw.messages).map((message) => readMessage(asRecord(message)));
  if (request.format === 'json') return answerWhole(JSON.stringify(raw, null, 2), `${messages.length} items`, request);
  const names = await namesFor(account, messages);
  const texts: string[] = [];
  for (const [i, message] of messages.entries()) {
    texts.push(`--- Message ${i + 1} of ${messages.length} ---\n${await showMessage(account, message, request.format, names)}`);
  }
  return answerWhole(texts.join('\n\n') || 'The thread is empty.', `${messages.length} messages (${request.format})`, request);
}

function chooseAttachment(files: Part[], wanted: string | undefined, id: string): Part {
  const found = wanted
    ? files.find((file) => file.filename === wanted) ?? files.find((file) => file.id === wanted) ?? files.find((file) => file.filename.toLowerCase() === wanted.toLowerCase())
    : files.length === 1 ? files[0] : undefined;
  if (found) return found;
  if (files.length === 0) throw new Problem(`Message ${id} has no attachments.`);
  const what = wanted ? `Message ${id} has no attachment "${plain(wanted, 100)}".` : 'attachment parameter is required: the message has several.';
  throw new Problem(`${what} It has:\n${files.map(describeAttachment).join('\n')}`);
}

/** Ids of attachments change with every reading, so the message is always read first. */
async function attachment(account: Account, request: Request): Promise<ToolResult> {
  const id = neededId(request);
  tell(account.session, 'Reading the message...');
  const message = readMessage(await get(account, `messages/${id}`, { format: 'full' }, `message with id "${id}"`));
  const part = chooseAttachment(attachmentsOf(message.payload), request.attachment, id);
  const name = plain(part.filename, 200) || `part ${part.id}`;
  if (!part.data && !part.attachmentId) throw new Problem(`${name} has no content of its own to save.`);
  const isReadable = /^text\/|^application\/json$/.test(part.type);
  if (!request.outputPath && !isReadable) throw new Problem(`output_path parameter is required to save ${name} (${part.type}, ${part.size} bytes).`);
  tell(account.session, `Fetching ${name} (${part.size} bytes)...`);
  const bytes = await partBytes(account, message, part);
  if (request.outputPath) return ok(`Attachment ${name} (${part.type}) saved to ${saveFile(request.outputPath, bytes)}.`);
  return ok(capText(redact(account.session, decodeBytes(bytes, charsetOf(part)))));
}

// ---- mailbox ----------------------------------------------------------------------------------

async function labels(account: Account, request: Request): Promise<ToolResult> {
  tell(account.session, 'Reading labels...');
  const all = await listLabels(account);
  const ids = all.map(({ id }) => id).filter((id) => /^[\w-]{1,200}$/.test(id)).slice(0, COUNTED_LABELS);
  const counts = await fetchEach(account, ids, (id) => get(account, `labels/${id}`, {}, `label "${id}"`));
  const byId = new Map(counts.map(({ id, value }) => [id, value]));
  if (request.outputPath) {
    const data = all.map(({ id, name, isUser }) => ({ id, name, type: isUser ? 'user' : 'system', ...byId.get(id) }));
    return ok(`${data.length} items saved to ${saveFile(request.outputPath, `${JSON.stringify(data, null, 2)}\n`)}.`);
  }
  const lines = all.map(({ id, name, isUser }) => {
    const { messagesTotal, messagesUnread } = byId.get(id) ?? {};
    const count = typeof messagesTotal === 'number' ? `, ${messagesTotal} messages, ${asString(messagesUnread) || '0'} unread` : '';
    return `${name} (${isUser ? 'user' : 'system'}, id ${plain(id, 200)}${count})`;
  });
  return ok(capText(lines.join('\n') || 'There are no labels.'));
}

async function profile(account: Account, request: Request): Promise<ToolResult> {
  const data = await get(account, 'profile', {}, 'mailbox');
  if (request.outputPath) return ok(`1 items saved to ${saveFile(request.outputPath, `${JSON.stringify(data, null, 2)}\n`)}.`);
  return ok(`${plain(data.emailAddress, 300)}: ${plain(data.messagesTotal, 20)} messages in ${plain(data.threadsTotal, 20)} threads.`);
}

async function act(account: Account, request: Request): Promise<ToolResult> {
  switch (request.action) {
    case 'search': return search(account, request);
    case 'read': return read(account, request);
    case 'threads': return threads(account, request);
    case 'thread': return thread(account, request);
    case 'labels': return labels(account, request);
    case 'attachment': return attachment(account, request);
    default: return profile(account, request);
  }
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
    return await guarded(session, async () => act(openAccount(session, params.access_token), request));
  } catch (e) {
    return failure('Gmail failed', e);
  }
}
