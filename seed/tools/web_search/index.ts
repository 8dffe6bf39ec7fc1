// Search the web through a SearXNG server.

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

/** Pages read for one call; a page has 10 to 30 results, as many as the engines give. */
const PAGES_MAX = 5;
const QUERY_MAX = 2_000;

type Params = {
  query: string;
  max_results?: number;
  page?: number;
  categories?: string;
  engines?: string;
  language?: string;
  time_range?: string;
  safesearch?: string;
  format?: string;
  output_path?: string;
};

type Request = {
  query: string;
  max: number;
  page: number;
  /** What goes to the server as it is. */
  filters: Record<string, string | undefined>;
  json: boolean;
  outputPath?: string;
};

/** `a, b,,c` as `a,b,c`. */
function asNames(name: string, value: unknown): string | undefined {
  return asShortText(name, value, 500)?.split(',').map((item) => item.trim()).filter(Boolean).join(',');
}

function readRequest(params: Params): Request {
  const { query, max_results = 10, page = 1, format = 'text', output_path } = params ?? {};
  const words = asShortText('query', query, QUERY_MAX);
  if (!words) throw new Problem('query parameter is required: what to search for.');
  const outputPath = asText('output_path', output_path);
  return {
    query: words,
    max: asInteger('max_results', max_results, 1, 100) ?? 10,
    page: asInteger('page', page, 1, 1000) ?? 1,
    filters: {
      categories: asNames('categories', params.categories),
      engines: asNames('engines', params.engines),
      language: asShortText('language', params.language, 40),
      time_range: asChoice('time_range', params.time_range, ['day', 'week', 'month', 'year']),
      safesearch: asChoice('safesearch', params.safesearch, ['0', '1', '2']),
    },
    json: asChoice('format', format, ['text', 'json']) === 'json',
    outputPath: outputPath && userPath(outputPath),
  };
}

// ---- the server -------------------------------------------------------------------------------

type Server = { base: URL; headers: Record<string, string> };

/** The SearXNG server of the configuration; a name and password in its address become a header. */
function findServer(session: Session): Server {
  const resource = asRecord(resources().searxng);
  const given = firstNonEmpty(process.env.PI_SEARXNG_URL, asString(resource.url), asString(resource.base_url));
  if (!given) throw new Problem('PI_SEARXNG_URL is not set. Ask the user to configure SearXNG in Settings → Integrations.');
  const base = asBaseUrl('PI_SEARXNG_URL', given.trim());
  base.pathname = base.pathname.replace(/\/search\/*$/, '/');
  const headers: Record<string, string> = { accept: 'application/json', 'accept-language': 'en' };
  if (base.username || base.password) {
    const login = `${decodePercent(base.username)}:${decodePercent(base.password)}`;
    addSecret(session, base.password);
    addSecret(session, decodePercent(base.password));
    headers.authorization = `Basic ${Buffer.from(login).toString('base64')}`;
  }
  return { base, headers };
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What to tell of an answer that is no page of results. */
function serverProblem(session: Session, response: HttpResponse): Problem {
  const { status, url } = response;
  const where = `the SearXNG server at ${url.origin}`;
  const said = plain(asRecord(bodyJson(session, response)).error, 500);
  if (status === 400) return new Problem(`SearXNG refused the search: ${said || excerpt(session, response) || 'status 400'}.`);
  if (status === 401) return new Problem(`Access to ${where} needs a name and a password. Ask the user to check SearXNG in Settings → Integrations.`);
  if (status === 403) {
    return new Problem(`JSON output is not enabled on ${where}: add \`json\` to \`search.formats\` in the instance's settings.yml. Ask the user to do so, or to configure another server in Settings → Integrations.`);
  }
  if (status === 404) return new Problem(`There is no search page at ${url.origin}${url.pathname}. Ask the user to check PI_SEARXNG_URL in Settings → Integrations.`);
  if (status === 429) {
    const wait = askedWaitMs(response);
    const when = wait === undefined ? 'in a minute' : `in ${Math.ceil(wait / 1000)} seconds`;
    return new Problem(`The limiter of ${where} answers "too many requests". Try again ${when}, with fewer searches.`);
  }
  if (status === 200) return new Problem(`The answer of ${url.origin} is no SearXNG result in JSON. Ask the user to check PI_SEARXNG_URL in Settings → Integrations.`);
  const text = said || excerpt(session, response, 300);
  return new Problem(`The SearXNG server at ${url.origin} failed with status ${status}${text ? `: ${text}` : ''}. Try again later.`);
}

async function fetchPage(session: Session, server: Server, request: Request, page: number): Promise<Record<string, unknown>> {
  const query = { q: request.query, format: 'json', pageno: page, ...request.filters };
  const response = await send(session, apiUrl(server.base, '/search', query), { headers: server.headers, maxBytes: 16 * 1024 * 1024 });
  const data = response.status === 200 ? asRecord(bodyJson(session, response)) : {};
  if (!Array.isArray(data.results)) throw serverProblem(session, response);
  return data;
}

// ---- searching --------------------------------------------------------------------------------

type Result = Record<string, unknown>;

type Found = {
  results: Result[];
  answers: unknown[];
  infoboxes: Result[];
  suggestions: string[];
  corrections: string[];
  failed: Array<{ engine: string; reason: string }>;
  notes: string[];
  /** The first page that was not read. */
  nextPage: number;
};

/** Values that are not yet there, compared as JSON. */
function addNew<T>(list: T[], values: T[]): void {
  const known = new Set(list.map((value) => JSON.stringify(value)));
  for (const value of values) {
    const key = JSON.stringify(value);
    if (!known.has(key)) list.push(value);
    known.add(key);
  }
}

/** What engines say of themselves comes as [name, reason], and in newer servers with more after it. */
function readFailed(value: unknown): Found['failed'] {
  return asList(value).map((item) => {
    const [engine, reason] = Array.isArray(item) ? item : [item, ''];
    return { engine: plain(engine, 60) || 'an engine', reason: plain(reason, 200) };
  });
}

/** Add a page to what was found. Returns how many of its results are new. */
function addPage(found: Found, data: Record<string, unknown>, max: number): number {
  const known = new Set(found.results.map((result) => result.url));
  const before = found.results.length;
  let fresh = 0;
  for (const result of asList(data.results).map(asRecord)) {
    if (typeof result.url !== 'string' || known.has(result.url)) continue;
    known.add(result.url);
    fresh += 1;
    if (before + fresh <= max) found.results.push(result);
  }
  addNew(found.answers, asList(data.answers));
  addNew(found.infoboxes, asList(data.infoboxes).map(asRecord));
  addNew(found.suggestions, asList(data.suggestions).map((text) => plain(text, 200)).filter(Boolean));
  addNew(found.corrections, asList(data.corrections).map((text) => plain(text, 200)).filter(Boolean));
  addNew(found.failed, readFailed(data.unresponsive_engines));
  return fresh;
}

/** Read pages until there are enough results, a page brings nothing new, or it was the fifth. */
async function search(session: Session, request: Request): Promise<Found> {
  const server = findServer(session);
  const found: Found = { results: [], answers: [], infoboxes: [], suggestions: [], corrections: [], failed: [], notes: [], nextPage: request.page };
  const last = request.page + PAGES_MAX - 1;
  for (let page = request.page; page <= last && found.results.length < request.max; page += 1) {
    tell(session, page === request.page ? 'Searching...' : `${found.results.length} results so far; reading page ${page}...`);
    try {
      const data = await fetchPage(session, server, request, page);
      found.nextPage = page + 1;
      if (addPage(found, data, request.max) === 0) break;
    } catch (e) {
      // What the first pages gave is worth more than the failure of a later one.
      if (!(e instanceof Problem) || found.results.length === 0 || session.signal?.aborted) throw e;
      found.notes.push(`Page ${page} could not be read: ${e.message}`);
      break;
    }
  }
  return found;
}

// ---- showing ----------------------------------------------------------------------------------

/** An answer: a text in older servers; a record in newer ones, by kind with other fields. */
function describeAnswer(answer: unknown): string {
  if (typeof answer === 'string') return plain(answer, 1_000);
  const { answer: text, url, template: _template, engine, parsed_url: _parsed, ...rest } = asRecord(answer);
  const source = plain(firstNonEmpty(asString(url), asString(engine)), 300);
  const body = plain(text, 1_000) || plain(JSON.stringify(rest), 1_000);
  return source ? `${body} (${source})` : body;
}

function describeInfobox(box: Result): string {
  const facts = asList(box.attributes).map(asRecord).map(({ label, value }) => `  ${plain(label, 60)}: ${plain(value, 300)}`);
  const links = asList(box.urls).map(asRecord).map(({ title, url }) => `  ${plain(title, 60)}: ${plain(url, 500)}`);
  return [`Infobox: ${plain(box.infobox, 200)}`, `  ${plain(box.content, 1_500)}`, ...facts.slice(0, 20), ...links.slice(0, 10)]
    .filter((line) => line.trim() !== '')
    .join('\n');
}

/** What a result has besides title, address and text: by category an image, a torrent, a video ... */
function detailsOf(result: Result): string {
  const engines = asList(result.engines).length ? asList(result.engines) : [result.engine];
  const date = plain(firstNonEmpty(asString(result.publishedDate), asString(result.pubdate)), 40);
  const named = ['author', 'length', 'views', 'resolution', 'img_src', 'iframe_src', 'magnetlink', 'seed', 'leech', 'filesize', 'metadata'];
  const extras = named.map((name) => [name, plain(result[name], name === 'magnetlink' || name.endsWith('_src') ? 1_000 : 100)]);
  return [
    engines.map((engine) => plain(engine, 40)).filter(Boolean).join(', '),
    date.replace(/T00:00:00.*$/, ''),
    ...extras.filter(([, value]) => value !== '').map(([name, value]) => `${name} ${value}`),
  ].filter(Boolean).join('; ');
}

function describeResult(result: Result, number: number): string {
  const details = detailsOf(result);
  const lines = [
    `${number}. ${plain(result.title, 300) || '(no title)'}`,
    `   ${plain(result.url, 2_000)}`,
    result.content ? `   ${plain(result.content, 1_000)}` : '',
    details ? `   (${details})` : '',
  ];
  return lines.filter((line) => line.trim() !== '').join('\n');
}

function describeFailed(failed: Found['failed']): string {
  return failed.map(({ engine, reason }) => (reason ? `${engine} (${reason})` : engine)).join(', ');
}

function show(found: Found, request: Request): string {
  const { results, answers, infoboxes, suggestions, corrections, failed, notes, nextPage } = found;
  const empty = failed.length
    ? `No results; these engines failed: ${describeFailed(failed)}. Try again later, or name other engines.`
    : 'No results. Try other or fewer words.';
  const full = results.length < request.max ? '' : `For more raise max_results (100 at most), or go on with page ${nextPage}.`;
  const parts = [
    answers.map((answer) => `Answer: ${describeAnswer(answer)}`).join('\n'),
    ...infoboxes.map(describeInfobox),
    results.length ? results.map((result, i) => describeResult(result, i + 1)).join('\n\n') : empty,
    corrections.length ? `Did you mean: ${corrections.join(' | ')}` : '',
    suggestions.length ? `Related searches: ${suggestions.slice(0, 20).join(' | ')}` : '',
    failed.length && results.length ? `These engines failed, so results may be missing: ${describeFailed(failed)}` : '',
    notes.join('\n'),
    full,
  ];
  return parts.filter(Boolean).join('\n\n');
}

/** Fields that only SearXNG's own pages need. */
function withoutNoise(result: Result): Result {
  const { parsed_url: _parsed, positions: _positions, template: _template, ...rest } = result;
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== '' && value !== null));
}

function answer(found: Found, request: Request): ToolResult {
  const { results, answers, infoboxes, suggestions, corrections, failed, notes } = found;
  const data = {
    query: request.query,
    results: results.map(withoutNoise),
    answers,
    infoboxes,
    suggestions,
    corrections,
    unresponsive_engines: failed,
    ...(notes.length ? { notes } : {}),
  };
  if (request.outputPath) {
    const saved = saveFile(request.outputPath, `${JSON.stringify(data, null, 2)}\n`);
    const remarks = [failed.length ? `These engines failed: ${describeFailed(failed)}.` : '', ...notes].filter(Boolean);
    return ok(capText([`${results.length} items saved to ${saved}.`, ...remarks].join('\n')));
  }
  return ok(capText(request.json ? JSON.stringify(data, null, 2) : show(found, request)));
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
    return await guarded(session, async () => answer(await search(session, request), request));
  } catch (e) {
    return failure('Web search failed', e);
  }
}
