// Query the user's synced e-mail, read-only, with the sqlite3 program.

import { execSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

// ---- parameters -------------------------------------------------------------------------------

const ACTIONS = ['stats', 'schema', 'search', 'read', 'thread', 'query'] as const;
const DEFAULT_DB = '/officer/data/emails.db';
const SQL_MAX = 100_000;
const LIMIT_SHOWN = 500;
const LIMIT_SAVED = 100_000;

type Params = {
  action: string;
  query?: string;
  from?: string;
  to?: string;
  subject?: string;
  label?: string;
  after?: string;
  before?: string;
  unread?: boolean;
  id?: string;
  sql?: string;
  limit?: number;
  offset?: number;
  format?: string;
  output_path?: string;
};

type Request = {
  query?: string;
  from?: string;
  to?: string;
  subject?: string;
  label?: string;
  after?: number;
  before?: number;
  unread?: boolean;
  id?: string;
  sql?: string;
  limit: number;
  offset: number;
  json: boolean;
  outputPath?: string;
};

/** A day as seconds since 1970, 00:00 UTC. */
function asDay(name: string, value: unknown): number | undefined {
  const text = asText(name, value)?.trim();
  if (text === undefined) return undefined;
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text) {
    throw new Problem(`${name} must be a date written YYYY-MM-DD, not "${text.slice(0, 40)}".`);
  }
  return ms / 1000;
}

function readRequest(params: Params): Request {
  const { limit, offset = 0, format = 'text', output_path } = params;
  const outputPath = asText('output_path', output_path);
  const limitMax = outputPath ? LIMIT_SAVED : LIMIT_SHOWN;
  return {
    query: asText('query', params.query),
    from: asText('from', params.from),
    to: asText('to', params.to),
    subject: asText('subject', params.subject),
    label: asText('label', params.label),
    after: asDay('after', params.after),
    before: asDay('before', params.before),
    unread: asBoolean('unread', params.unread),
    id: asText('id', params.id),
    sql: asText('sql', params.sql),
    limit: asInteger('limit', limit, 1, limitMax) ?? (outputPath ? LIMIT_SAVED : 20),
    offset: asInteger('offset', offset, 0, 1_000_000_000) ?? 0,
    json: asChoice('format', format, ['text', 'json']) === 'json',
    outputPath: outputPath && userPath(outputPath),
  };
}

// ---- sqlite3 ----------------------------------------------------------------------------------

type Row = Record<string, unknown>;

/** An open request to one database file. `target` is what sqlite3 gets, `notes` go below the answer. */
type Db = { path: string; target: string; notes: string[]; signal?: AbortSignal };

function openDb(signal: AbortSignal | undefined): Db {
  const path = resolve(firstNonEmpty(process.env.OFFICER_EMAIL_DB) ?? DEFAULT_DB);
  const info = statSync(path, { throwIfNoEntry: false });
  if (!info) {
    throw new Problem(
      `Email database not found at ${path}. ` +
        'Ask the user to connect an email account in Settings → Integrations and wait for the sync.',
    );
  }
  if (!info.isFile()) throw new Problem(`${path} (OFFICER_EMAIL_DB) is not a database file.`);
  return { path, target: path, notes: [], signal };
}

/** A string as an SQL value. Hexadecimal, so no content can end the literal early. */
function sqlText(value: string): string {
  return `CAST(X'${Buffer.from(value, 'utf8').toString('hex')}' AS TEXT)`;
}

/** A table or column name that comes from the schema. */
function sqlName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** LIKE %value% on any of the columns. */
function sqlContains(columns: string[], value: string): string {
  const pattern = sqlText(`%${value.replace(/[\\%_]/g, '\\$&')}%`);
  return `(${columns.map((column) => `${column} LIKE ${pattern} ESCAPE '\\'`).join(' OR ')})`;
}

/** sqlite3's JSON; whole numbers beyond 2^53 become strings, for JavaScript would round them. */
function parseRows(text: string): Row[] {
  if (!/\d{16}/.test(text)) return JSON.parse(text) as Row[];
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d{16,}(?![\d.eE])/g;
  const exact = text.replace(tokens, (token) => {
    return token.startsWith('"') || Number.isSafeInteger(Number(token)) ? token : `"${token}"`;
  });
  return JSON.parse(exact) as Row[];
}

function sqliteProblem(db: Db, stderr: string): Problem {
  const text = lastLines(stderr);
  if (/file is not a database|file is encrypted/.test(text)) {
    return new Problem(`${db.path} is not an SQLite database. Ask the user to check the email sync.`);
  }
  if (/malformed/.test(text)) {
    return new Problem(`The email database is damaged (${text}). Ask the user to sync the mail again.`);
  }
  if (/database is locked|database table is locked/.test(text)) {
    return new Problem('The email database is locked by another program (the sync?). Try again in a minute.');
  }
  if (/out of memory/.test(text)) {
    return new Problem('The query needs more memory than allowed. Select fewer rows or columns, or aggregate less.');
  }
  if (/too big/.test(text)) return new Problem('A value of the result is too big. Select fewer columns or use substr().');
  return new Problem(`Database error: ${text || 'sqlite3 failed without a message'}`);
}

/**
 * Run one SQL statement, read-only. -safe is vital: without it a line such as ".shell cmd" would
 * run a command, and ATTACH or writefile() would touch files. -init keeps a ~/.sqliterc out.
 */
async function queryRows(db: Db, sql: string): Promise<Row[]> {
  const heap = 'PRAGMA hard_heap_limit=402653184';
  const settings = ['-cmd', '.timeout 5000', '-cmd', 'PRAGMA temp_store=MEMORY', '-cmd', heap];
  const args = ['-readonly', '-safe', '-bail', '-json', '-init', '/dev/null', ...settings, db.target];
  const result = await run('sqlite3', args, {
    input: `${sql}\n;\n`,
    timeoutMs: 30_000,
    maxOutput: 64 * 1024 * 1024,
    signal: db.signal,
  });
  if (result.stopped === 'timeout') {
    throw new Problem('The query took longer than 30 seconds and was stopped. Narrow it: add WHERE or fewer joins.');
  }
  if (result.stopped === 'overflow') {
    throw new Problem('The result is larger than 64 MiB. Select fewer columns or set a lower limit.');
  }
  if (result.code !== 0) {
    const unwritable = /unable to open database file|readonly database|readonly or cannot/.test(result.stderr);
    if (unwritable && db.target === db.path) {
      // A WAL database needs a -shm file beside it; where none can be made, read the file as it lies.
      db.target = `file:${db.path.split('/').map(encodeURIComponent).join('/')}?immutable=1`;
      db.notes.push('Note: the database was read without its write-ahead log; the newest mail may be missing.');
      return queryRows(db, sql);
    }
    throw sqliteProblem(db, result.stderr);
  }
  // The heap limit's pragma answers with a row of its own, ahead of the statement's.
  const output = result.stdout.toString('utf8').replace(/^\[\{"hard_heap_limit":\d+\}\]\s*/, '');
  return output.trim() ? parseRows(output) : [];
}

// ---- the schema, which each sync program makes its own way ---------------------------------------

type Table = { name: string; kind: string; sql: string; columns: string[] };
type Side = { table: string; key: string; column: string };

/** Where the mail is. Column names are quoted for SQL; what the database lacks is undefined. */
type Mail = {
  table: Table;
  id: string;
  subject: string;
  from: string;
  fromName?: string;
  thread?: string;
  to?: string;
  cc?: string;
  date?: string;
  body?: string;
  html?: string;
  snippet?: string;
  labels?: string;
  read?: string;
  unread?: string;
  account?: string;
  fts?: { table: string; join: string };
  labelSide?: Side & { names?: { table: string; id: string; name: string } };
  files?: Side & { type?: string; size?: string };
};

const COLUMN_NAMES: Record<string, string[]> = {
  id: ['id', 'gmail_id', 'message_id', 'msg_id', 'uid', 'email_id'],
  thread: ['thread_id', 'threadid', 'gmail_thread_id', 'conversation_id', 'thread'],
  from: ['from_address', 'from_email', 'sender', 'from', 'from_addr', 'sender_email', 'sender_address', 'mail_from'],
  fromName: ['from_name', 'sender_name'],
  to: ['to_addresses', 'to_address', 'to', 'recipients', 'to_email', 'to_addr', 'recipient', 'to_emails'],
  cc: ['cc_addresses', 'cc_address', 'cc', 'cc_email'],
  subject: ['subject', 'title', 'subject_line'],
  date: [
    'date', 'internal_date', 'internaldate', 'received_at', 'sent_at', 'timestamp', 'date_ts', 'received_date',
    'date_received', 'sent_date', 'date_sent', 'created_at',
  ],
  body: ['body_text', 'text_body', 'body', 'text', 'content', 'plaintext', 'body_plain', 'plain_text'],
  html: ['body_html', 'html', 'html_body'],
  snippet: ['snippet', 'preview', 'summary'],
  labels: ['labels', 'label_ids', 'tags', 'folder', 'mailbox'],
  read: ['is_read', 'read', 'seen', 'is_seen'],
  unread: ['is_unread', 'unread'],
  account: ['account', 'account_id', 'account_email', 'user_email'],
};
const OWNER_KEYS = ['email_id', 'message_id', 'mail_id', 'msg_id', 'id_email', 'id_message', 'emailid', 'messageid'];

function pick(columns: string[], names: string[]): string | undefined {
  for (const name of names) {
    const found = columns.find((column) => column.toLowerCase() === name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Tables and views with their columns, without SQLite's own and without the parts of a full-text index. */
async function readTables(db: Db): Promise<Table[]> {
  const list = await queryRows(
    db,
    `SELECT name, type, coalesce(sql, '') AS sql FROM sqlite_master
     WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name`,
  );
  const indexes = list.filter((row) => /using\s+fts/i.test(String(row.sql))).map((row) => String(row.name));
  const parts = new Set(
    indexes.flatMap((name) => ['data', 'idx', 'content', 'docsize', 'config', 'segments', 'segdir', 'stat'].map((end) => `${name}_${end}`)),
  );
  const shown = list.filter((row) => !parts.has(String(row.name)));
  const columnsOf = (where: string): Promise<Row[]> =>
    queryRows(
      db,
      `SELECT m.name AS t, c.name AS c FROM sqlite_master m, pragma_table_xinfo(m.name) c
       WHERE m.type IN ('table', 'view') AND c.hidden <> 1 AND ${where} ORDER BY m.name, c.cid`,
    );
  let columns: Row[];
  try {
    columns = await columnsOf('1');
  } catch (e) {
    if (!(e instanceof Problem) || !e.message.startsWith('Database error')) throw e;
    // One broken view, or a virtual table of an unknown module, spoils the list: plain tables alone, then.
    columns = await columnsOf(`m.type = 'table' AND (m.sql NOT LIKE 'create virtual%' OR m.sql LIKE '%using fts5%')`);
  }
  return shown.map((row) => ({
    name: String(row.name),
    kind: /^create\s+virtual/i.test(String(row.sql)) ? 'virtual table' : String(row.type),
    sql: String(row.sql),
    columns: columns.filter((column) => column.t === row.name).map((column) => String(column.c)),
  }));
}

/** The full-text index that belongs to the mail table, and how to join it. */
function findFts(tables: Table[], table: Table, idColumn: string | undefined): Mail['fts'] {
  if (table.kind !== 'table' || /without\s+rowid/i.test(table.sql)) return undefined;
  for (const fts of tables) {
    if (!/using\s+fts5/i.test(fts.sql)) continue;
    const content = /\bcontent\s*=\s*(?:'([^']*)'|"([^"]*)"|([\w$]*))/i.exec(fts.sql);
    const source = content ? content[1] ?? content[2] ?? content[3] : undefined;
    const byName = fts.name.toLowerCase().startsWith(table.name.toLowerCase().replace(/s$/, ''));
    if (source ? source.toLowerCase() !== table.name.toLowerCase() : !byName) continue;
    const ownKey = pick(fts.columns, ['email_id', 'message_id', 'mail_id', 'id']);
    if (!source && ownKey && idColumn) {
      return { table: fts.name, join: `f.${sqlName(ownKey)} = m.${sqlName(idColumn)}` };
    }
    const rowid = /\bcontent_rowid\s*=\s*['"]?([\w$]+)/i.exec(fts.sql)?.[1] ?? 'rowid';
    return { table: fts.name, join: `f.rowid = m.${sqlName(rowid)}` };
  }
  return undefined;
}

function findSides(tables: Table[], mail: Mail): void {
  for (const table of tables) {
    if (table === mail.table || table.kind !== 'table') continue;
    const key = pick(table.columns, OWNER_KEYS);
    if (key === undefined) continue;
    const file = pick(table.columns, ['filename', 'file_name']);
    if (file !== undefined && !mail.files) {
      const type = pick(table.columns, ['mime_type', 'content_type', 'mimetype']);
      const size = pick(table.columns, ['size', 'size_bytes', 'bytes']);
      mail.files = { table: table.name, key, column: file, type, size };
    }
    const label = pick(table.columns, ['label', 'label_name', 'label_id', 'labelid', 'tag', 'name']);
    if (label === undefined || !/label|tag/i.test(table.name) || mail.labelSide) continue;
    mail.labelSide = { table: table.name, key, column: label };
    const names = tables.find((t) => /^(labels?|tags?)$/i.test(t.name) && pick(t.columns, ['id']) && pick(t.columns, ['name']));
    if (names && /id$/i.test(label)) {
      mail.labelSide.names = { table: names.name, id: pick(names.columns, ['id'])!, name: pick(names.columns, ['name'])! };
    }
  }
}

/** The mail table: the one with a subject and a sender that has most of the other columns too. */
function findMail(tables: Table[]): Mail {
  let best: { table: Table; found: Record<string, string | undefined>; score: number } | undefined;
  for (const table of tables) {
    if (table.kind === 'virtual table') continue;
    const found: Record<string, string | undefined> = {};
    for (const [role, names] of Object.entries(COLUMN_NAMES)) found[role] = pick(table.columns, names);
    if (!found.subject || !found.from) continue;
    const named = /^(e?mails?|messages?)$/i.test(table.name) ? 0.5 : 0;
    const score = Object.values(found).filter(Boolean).length + named;
    if (!best || score > best.score) best = { table, found, score };
  }
  if (!best) {
    const names = tables.map((table) => table.name).join(', ');
    throw new Problem(
      names
        ? `No table of mail found (one with a subject and a sender column). Tables: ${names}. Use action schema, then query.`
        : 'The email database is still empty. Ask the user to wait for the sync, or to check it in Settings → Integrations.',
    );
  }
  const { table, found } = best;
  const column = (role: string): string | undefined => found[role] && `m.${sqlName(found[role]!)}`;
  if (!found.id && table.kind === 'view') throw new Problem(`The mail view "${table.name}" has no id column. Use action query.`);
  const mail: Mail = {
    table,
    id: column('id') ?? 'm.rowid',
    subject: column('subject')!,
    from: column('from')!,
    fromName: column('fromName'),
    thread: column('thread'),
    to: column('to'),
    cc: column('cc'),
    date: column('date'),
    body: column('body'),
    html: column('html'),
    snippet: column('snippet'),
    labels: column('labels'),
    read: column('read'),
    unread: column('unread'),
    account: column('account'),
    fts: findFts(tables, table, found.id),
  };
  findSides(tables, mail);
  return mail;
}

// ---- expressions over the mail table -----------------------------------------------------------

/** A date column as seconds since 1970: microseconds, milliseconds, seconds or ISO text, by its look. */
function epochSql(date: string): string {
  return `(SELECT CASE WHEN abs(v) >= 1e14 THEN v / 1000000 WHEN abs(v) >= 1e11 THEN v / 1000 ELSE v END
    FROM (SELECT CASE WHEN typeof(${date}) IN ('integer', 'real') THEN ${date}
      WHEN ${date} GLOB '[0-9]*' AND ${date} NOT GLOB '*[^0-9]*' THEN CAST(${date} AS INTEGER)
      ELSE CAST(strftime('%s', ${date}) AS INTEGER) END AS v))`;
}

/** The labels of a mail as one text: the column as it is, or a JSON array made of the side table. */
function labelsSql(mail: Mail): string | undefined {
  const side = mail.labelSide;
  if (!side) return mail.labels;
  const owned = `l.${sqlName(side.key)} = ${mail.id}`;
  const plain = `SELECT json_group_array(l.${sqlName(side.column)}) FROM ${sqlName(side.table)} l WHERE ${owned}`;
  if (!side.names) return `(${plain})`;
  const { table, id, name } = side.names;
  return `(SELECT json_group_array(n.${sqlName(name)}) FROM ${sqlName(side.table)} l
    JOIN ${sqlName(table)} n ON n.${sqlName(id)} = l.${sqlName(side.column)} WHERE ${owned})`;
}

function hasLabelSql(mail: Mail, label: string): string {
  const labels = labelsSql(mail);
  if (!labels) throw new Problem('This database keeps no labels; leave label out.');
  const wanted = `lower(${sqlText(label)})`;
  return `(SELECT CASE WHEN json_valid(v) AND json_type(v) = 'array'
      THEN EXISTS (SELECT 1 FROM json_each(v) WHERE lower(value) = ${wanted})
      ELSE instr(',' || replace(lower(v), ', ', ',') || ',', ',' || ${wanted} || ',') > 0 END
    FROM (SELECT ${labels} AS v))`;
}

function unreadSql(mail: Mail): string | undefined {
  if (mail.unread) return `(${mail.unread} IN (1, 'true', 'yes'))`;
  if (mail.read) return `(coalesce(${mail.read}, 0) NOT IN (1, 'true', 'yes'))`;
  return labelsSql(mail) && hasLabelSql(mail, 'UNREAD');
}

/** The columns that a listing shows. */
function listColumns(mail: Mail): string {
  const text = (column: string | undefined, name: string): string => `CAST(${column ?? 'NULL'} AS TEXT) AS ${name}`;
  const files = mail.files;
  const fileCount = files && `(SELECT count(*) FROM ${sqlName(files.table)} a WHERE a.${sqlName(files.key)} = ${mail.id})`;
  return [
    text(mail.id, 'id'),
    text(mail.thread, 'thread_id'),
    `${mail.date ? epochSql(mail.date) : 'NULL'} AS epoch`,
    text(mail.date, 'raw_date'),
    text(mail.from, 'from_address'),
    text(mail.fromName, 'from_name'),
    text(mail.to, 'to_list'),
    text(mail.cc, 'cc_list'),
    text(mail.subject, 'subject'),
    text(labelsSql(mail), 'labels'),
    `${unreadSql(mail) ?? 'NULL'} AS unread`,
    `${fileCount ?? 'NULL'} AS files`,
  ].join(', ');
}

// ---- search words ------------------------------------------------------------------------------

type Word = { text: string; prefix: boolean };
/** All groups must match; in a group any word. None of `without` may match. */
type Words = { groups: Word[][]; without: Word[] };

/** Plain words, "a phrase", -not, OR, prefix*. Everything else is just text to look for. */
function parseWords(query: string): Words {
  if (query.length > 1000) throw new Problem('query is longer than 1000 characters. Use fewer words.');
  const words: Words = { groups: [], without: [] };
  let either = false;
  for (const match of query.matchAll(/(-?)"([^"]*)"?(\*?)|(\S+)/g)) {
    let [, minus, phrase, star, plain] = match;
    if (plain === 'OR') {
      either = words.groups.length > 0;
      continue;
    }
    if (plain === 'AND') continue;
    if (plain !== undefined) {
      minus = plain.length > 1 && plain.startsWith('-') ? '-' : '';
      star = plain.length > 1 && plain.endsWith('*') ? '*' : '';
      phrase = plain.slice(minus.length, plain.length - star.length);
    }
    const word = { text: phrase.trim(), prefix: star === '*' };
    if (!word.text) continue;
    if (minus) words.without.push(word);
    else if (either) words.groups.at(-1)!.push(word);
    else words.groups.push([word]);
    either = false;
  }
  if (words.groups.length + words.without.length > 50) throw new Problem('query has more than 50 words. Use fewer.');
  return words;
}

/** Whether the full-text index can hold the word at all: it keeps letters and digits only. */
function isIndexed(word: Word): boolean {
  return /[\p{L}\p{N}]/u.test(word.text);
}

function ftsWord(word: Word): string {
  return `"${word.text.replaceAll('"', '""')}"${word.prefix ? ' *' : ''}`;
}

function likeWord(mail: Mail, word: Word): string {
  const columns = [mail.subject, mail.from, mail.fromName, mail.to, mail.cc, mail.body, mail.snippet];
  if (!mail.body) columns.push(mail.html);
  return sqlContains(columns.filter((column): column is string => Boolean(column)), word.text);
}

// ---- actions -----------------------------------------------------------------------------------

type Found = { from: string; where: string; order: string; snippet: string };

/** The search as parts of a SELECT; `useFts` false writes the words as LIKE. */
function searchParts(mail: Mail, request: Request, useFts: boolean): Found {
  const conditions: string[] = [];
  const newest = mail.date ? `${epochSql(mail.date)} DESC` : 'm.rowid DESC';
  const found = { from: `${sqlName(mail.table.name)} m`, where: '1', order: newest, snippet: mail.snippet ?? 'NULL' };
  const words = parseWords(request.query ?? '');
  const fts = useFts ? mail.fts : undefined;
  const indexed = words.groups.filter((group) => group.every(isIndexed));
  if (fts && indexed.length > 0) {
    const index = sqlName(fts.table);
    const match = indexed.map((group) => `(${group.map(ftsWord).join(' OR ')})`).join(' AND ');
    found.from = `${index} f JOIN ${found.from} ON ${fts.join}`;
    conditions.push(`f.${index} MATCH ${sqlText(match)}`);
    found.order = `bm25(${index}), ${newest}`;
    found.snippet = `coalesce(snippet(${index}, -1, '', '', '…', 24), ${found.snippet})`;
  }
  for (const group of words.groups) {
    if (fts && indexed.includes(group)) continue;
    conditions.push(`(${group.map((word) => likeWord(mail, word)).join(' OR ')})`);
  }
  for (const word of words.without) {
    const inIndex = fts && isIndexed(word) && fts.join.startsWith('f.rowid');
    if (inIndex) {
      const rowid = fts.join.slice(fts.join.indexOf('m.'));
      conditions.push(`${rowid} NOT IN (SELECT rowid FROM ${sqlName(fts.table)} WHERE ${sqlName(fts.table)} MATCH ${sqlText(ftsWord(word))})`);
    } else {
      conditions.push(`NOT coalesce(${likeWord(mail, word)}, 0)`);
    }
  }
  const among = (columns: Array<string | undefined>): string[] => columns.filter((column): column is string => Boolean(column));
  if (request.from) conditions.push(sqlContains(among([mail.from, mail.fromName]), request.from));
  if (request.to) {
    const columns = among([mail.to, mail.cc]);
    if (columns.length === 0) throw new Problem('This database keeps no recipients; leave to out.');
    conditions.push(sqlContains(columns, request.to));
  }
  if (request.subject) conditions.push(sqlContains([mail.subject], request.subject));
  if (request.label) conditions.push(hasLabelSql(mail, request.label));
  if (request.after !== undefined || request.before !== undefined) {
    if (!mail.date) throw new Problem('This database keeps no dates; leave after and before out.');
    if (request.after !== undefined) conditions.push(`${epochSql(mail.date)} >= ${request.after}`);
    if (request.before !== undefined) conditions.push(`${epochSql(mail.date)} < ${request.before}`);
  }
  if (request.unread !== undefined) {
    const unread = unreadSql(mail);
    if (!unread) throw new Problem('This database does not say which mail is unread; leave unread out.');
    conditions.push(request.unread ? unread : `NOT coalesce(${unread}, 0)`);
  }
  if (conditions.length > 0) found.where = conditions.join('\n AND ');
  return found;
}

async function searchRows(db: Db, mail: Mail, request: Request, useFts: boolean): Promise<{ total: number; rows: Row[] }> {
  const { from, where, order, snippet } = searchParts(mail, request, useFts);
  const [count] = await queryRows(db, `SELECT count(*) AS n FROM ${from} WHERE ${where}`);
  const rows = await queryRows(
    db,
    `SELECT ${listColumns(mail)}, CAST(${snippet} AS TEXT) AS snippet FROM ${from}
     WHERE ${where} ORDER BY ${order} LIMIT ${request.limit} OFFSET ${request.offset}`,
  );
  return { total: Number(count?.n ?? 0), rows };
}

async function search(db: Db, request: Request): Promise<ToolResult> {
  const mail = findMail(await readTables(db));
  let found: { total: number; rows: Row[] };
  try {
    found = await searchRows(db, mail, request, true);
  } catch (e) {
    if (!mail.fts || !request.query || !(e instanceof Problem) || !e.message.startsWith('Database error')) throw e;
    db.notes.push(`Note: the full-text index "${mail.fts.table}" cannot be used (${e.message.split('\n')[0]}); searched without it.`);
    found = await searchRows(db, mail, request, false);
  }
  const messages = found.rows.map(toMessage);
  if (request.outputPath) return saveItems(db, request, messages, `${found.total} match`);
  if (request.json) return answer(db, JSON.stringify({ total: found.total, messages }, null, 2));
  if (found.total === 0) return answer(db, 'No messages match.');
  if (messages.length === 0) return answer(db, `${found.total} messages match, but none from offset ${request.offset} on.`);
  const last = request.offset + messages.length;
  const heading = `${found.total} messages match; ${request.offset + 1} to ${last}:`;
  const lines = messages.map((message, i) => describe(message, request.offset + i + 1));
  const more = last < found.total ? `\n\nMore: call again with offset ${last}.` : '';
  return answer(db, `${heading}\n\n${lines.join('\n\n')}${more}`);
}

async function wholeMessages(db: Db, mail: Mail, where: string): Promise<Message[]> {
  const rows = await queryRows(
    db,
    `SELECT ${listColumns(mail)}, CAST(${mail.body ?? 'NULL'} AS TEXT) AS body, CAST(${mail.html ?? 'NULL'} AS TEXT) AS html
     FROM ${sqlName(mail.table.name)} m WHERE ${where} ORDER BY epoch LIMIT ${LIMIT_SHOWN}`,
  );
  const messages = rows.map(toMessage);
  const files = mail.files;
  for (const message of messages) {
    if (!files || !message.attachments) continue;
    const optional = (column: string | undefined, name: string): string => `${column ? sqlName(column) : 'NULL'} AS ${name}`;
    message.files = await queryRows(
      db,
      `SELECT ${sqlName(files.column)} AS filename, ${optional(files.type, 'type')}, ${optional(files.size, 'size')}
       FROM ${sqlName(files.table)} WHERE CAST(${sqlName(files.key)} AS TEXT) = ${sqlText(message.id)}`,
    );
  }
  return messages;
}

async function read(db: Db, request: Request): Promise<ToolResult> {
  if (!request.id) throw new Problem('id parameter is required for read action. Take it from a search result.');
  const mail = findMail(await readTables(db));
  const messages = await wholeMessages(db, mail, `CAST(${mail.id} AS TEXT) = ${sqlText(request.id)}`);
  if (messages.length === 0) throw new Problem(`No message with id "${request.id}". Use action search to find ids.`);
  return giveMessages(db, request, messages);
}

async function thread(db: Db, request: Request): Promise<ToolResult> {
  if (!request.id) throw new Problem('id parameter is required for thread action. Take the thread id from a search result.');
  const mail = findMail(await readTables(db));
  if (!mail.thread) throw new Problem('This database has no thread column. Use action search with subject instead.');
  const id = sqlText(request.id);
  const own = `SELECT ${mail.thread} FROM ${sqlName(mail.table.name)} m WHERE CAST(${mail.id} AS TEXT) = ${id}`;
  const messages = await wholeMessages(db, mail, `CAST(${mail.thread} AS TEXT) = ${id} OR ${mail.thread} IN (${own})`);
  if (messages.length === 0) throw new Problem(`No thread or message with id "${request.id}". Use action search to find ids.`);
  return giveMessages(db, request, messages);
}

function giveMessages(db: Db, request: Request, messages: Message[]): ToolResult {
  if (request.outputPath) return saveItems(db, request, messages, 'with their bodies');
  if (request.json) return answer(db, JSON.stringify(messages, null, 2));
  const heading = messages.length > 1 ? `${messages.length} messages, oldest first:\n\n` : '';
  return answer(db, heading + messages.map(showWhole).join(`\n\n${'-'.repeat(60)}\n\n`));
}

async function stats(db: Db, request: Request): Promise<ToolResult> {
  const tables = await readTables(db);
  const mail = findMail(tables);
  const name = sqlName(mail.table.name);
  const epoch = mail.date ? epochSql(mail.date) : 'NULL';
  const labels = labelsSql(mail);
  const [sum] = await queryRows(
    db,
    `SELECT count(*) AS messages, min(${epoch}) AS first, max(${epoch}) AS last, sum(${unreadSql(mail) ?? 'NULL'}) AS unread,
       ${mail.thread ? `count(DISTINCT ${mail.thread})` : 'NULL'} AS threads FROM ${name} m`,
  );
  const top = async (expression: string, source: string): Promise<Row[]> =>
    queryRows(db, `SELECT CAST(${expression} AS TEXT) AS name, count(*) AS messages FROM ${source} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10`);
  const senders = await top(mail.from, `${name} m`);
  const accounts = mail.account ? await top(mail.account, `${name} m`) : [];
  const labelCounts = labels
    ? await top('j.value', `${name} m, json_each(CASE WHEN json_valid(${labels}) AND json_type(${labels}) = 'array' THEN ${labels} ELSE json_array(${labels}) END) j`)
    : [];
  const plain = tables.filter((table) => table.kind === 'table');
  const counts = await queryRows(
    db,
    plain.map((table) => `SELECT ${sqlText(table.name)} AS name, count(*) AS rows FROM ${sqlName(table.name)}`).join(' UNION ALL '),
  );
  const sync = tables.find((table) => /sync/i.test(table.name) && table.kind === 'table');
  const synced = sync ? await queryRows(db, `SELECT * FROM ${sqlName(sync.name)} LIMIT 10`) : [];
  const data = {
    database: db.path,
    bytes: statSync(db.path).size,
    messages: sum.messages,
    threads: sum.threads,
    unread: sum.unread,
    first: isoDate(sum.first),
    last: isoDate(sum.last),
    full_text_index: mail.fts?.table ?? null,
    accounts,
    senders,
    labels: labelCounts,
    tables: counts,
    sync: synced,
  };
  if (request.outputPath) return saveItems(db, request, data, 'of statistics');
  if (request.json) return answer(db, JSON.stringify(data, null, 2));
  const list = (title: string, rows: Row[], value: string): string[] =>
    rows.length ? ['', title, ...rows.map((row) => `  ${oneLine(row.name ?? '(none)', 100)}: ${row[value]}`)] : [];
  const lines = [
    `${data.messages} messages${data.threads === null ? '' : ` in ${data.threads} threads`}, ${data.unread ?? 'unknown number'} unread`,
    `From ${data.first ?? 'unknown'} to ${data.last ?? 'unknown'}`,
    `Database: ${db.path} (${data.bytes} bytes); full-text index: ${data.full_text_index ?? 'none'}`,
    ...list('Accounts (messages):', accounts, 'messages'),
    ...list('Labels (messages):', labelCounts, 'messages'),
    ...list('Most frequent senders (messages):', senders, 'messages'),
    ...list('Tables (rows):', counts, 'rows'),
    ...(synced.length ? ['', `Sync state (${sync!.name}):`, ...synced.map((row) => `  ${rowLine(row)}`)] : []),
  ];
  return answer(db, lines.join('\n'));
}

async function schema(db: Db, request: Request): Promise<ToolResult> {
  const tables = await readTables(db);
  let mail: Mail | undefined;
  try {
    mail = findMail(tables);
  } catch (e) {
    db.notes.push(`Note: ${e instanceof Error ? e.message : String(e)}`);
  }
  if (request.outputPath) return saveItems(db, request, tables, 'tables');
  if (request.json) return answer(db, JSON.stringify(tables, null, 2));
  const lines = tables.map((table) => `${table.name} (${table.kind})\n  ${table.columns.join(', ')}`);
  if (mail) {
    const roles = Object.entries(mail).filter(([, value]) => typeof value === 'string');
    const known = roles.map(([role, column]) => `${role} = ${String(column).slice(2)}`).join(', ');
    lines.push(`The mail is in ${mail.table.name}: ${known}.`);
    if (mail.date) lines.push(await dateHint(db, mail));
    if (mail.fts) lines.push(`Full-text index: ${mail.fts.table} (WHERE ${mail.fts.table} MATCH 'word'; join ${mail.fts.join}).`);
  }
  return answer(db, lines.join('\n\n') || 'The database has no tables yet.');
}

/** How dates are stored, so that the agent's own SQL can compare them. */
async function dateHint(db: Db, mail: Mail): Promise<string> {
  const column = mail.date!.slice(2);
  const [sample] = await queryRows(db, `SELECT typeof(${column}) AS kind, ${column} AS value FROM ${sqlName(mail.table.name)} WHERE ${column} IS NOT NULL LIMIT 1`);
  if (!sample) return 'There is no dated mail yet.';
  if (sample.kind === 'text') return `Dates (${column}) are text such as '${oneLine(sample.value, 60)}'.`;
  const size = Math.abs(Number(sample.value));
  if (size >= 1e14) return `Dates are microseconds since 1970: datetime(${column}/1000000, 'unixepoch').`;
  if (size >= 1e11) return `Dates are milliseconds since 1970: datetime(${column}/1000, 'unixepoch').`;
  return `Dates are seconds since 1970: datetime(${column}, 'unixepoch').`;
}

// ---- the agent's own SQL -----------------------------------------------------------------------

/**
 * Check that `sql` is one SELECT or WITH statement and give it back on one line, without comments
 * or the last semicolon. Line breaks outside literals go, so that sqlite3 sees no line of its own
 * kind (".command", "go", "/"); brackets must balance, so that the statement cannot leave the
 * SELECT that is put around it. `names` are all words and quoted texts in it, in lower case.
 */
function cleanSql(sql: string): { clean: string; names: Set<string> } {
  const tokens = /--[^\n]*|\/\*[\s\S]*?\*\/|'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`|\[[^\]]*\]|\s+|[\w$\x80-\uffff]+|[\s\S]/g;
  if (sql.length > SQL_MAX) throw new Problem(`sql is longer than ${SQL_MAX} characters.`);
  const names = new Set<string>();
  let clean = '';
  let depth = 0;
  let lineStart = true;
  for (const match of sql.matchAll(tokens)) {
    const [token] = match;
    if (/^(--|\/\*|\s)/.test(token)) {
      clean += ' ';
      lineStart ||= token.includes('\n');
      continue;
    }
    if (token === '/' && sql[match.index + 1] === '*') throw new Problem('The SQL has a comment without its end.');
    if (token.length === 1 && /['"`[]/.test(token)) throw new Problem(`The SQL has an opening ${token} without its end.`);
    if (token === '.' && lineStart) throw new Problem('Commands of the sqlite3 program (".…") are not SQL and not allowed here.');
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (depth < 0) throw new Problem('The SQL has a closing bracket too many.');
    clean += token;
    names.add(token.replace(/^['"`[]|['"`\]]$/g, '').toLowerCase());
    lineStart = false;
  }
  if (depth > 0) throw new Problem('The SQL has an opening bracket too many.');
  return { clean: clean.trim(), names };
}

/** Whether a semicolon stands outside of literals; comments are gone already. */
function hasSemicolon(clean: string): boolean {
  return /;/.test(clean.replace(/'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]/g, ''));
}

/** Kinds of virtual tables that show this database alone. Others read files: fsdir, zipfile. */
const SAFE_MODULES = new Set([
  'json_each', 'json_tree', 'generate_series', 'fts3', 'fts4', 'fts4aux', 'fts5', 'fts5vocab', 'rtree', 'rtree_i32',
  'dbstat', 'completion', 'sqlite_stmt',
]);

/** Refuse SQL that names a virtual table which is built into sqlite3 and not known to be harmless: -safe lets fsdir pass. */
async function refuseFileTables(db: Db, names: Set<string>): Promise<void> {
  for (const { name } of await queryRows(db, 'SELECT name FROM pragma_module_list')) {
    const module = String(name).toLowerCase();
    if (SAFE_MODULES.has(module) || module.startsWith('pragma_') || !names.has(module)) continue;
    throw new Problem(`The SQL names ${module}, which is not allowed here: it reads more than this database.`);
  }
}

async function query(db: Db, request: Request): Promise<ToolResult> {
  if (!request.sql) throw new Problem('sql parameter is required for query action.');
  const { clean, names } = cleanSql(request.sql);
  const sql = clean.replace(/[;\s]+$/, '');
  if (hasSemicolon(sql)) throw new Problem('Only one statement is allowed; send one SELECT without a semicolon inside.');
  if (!/^(select|with)\b/i.test(sql)) throw new Problem('Only SELECT statements (or WITH … SELECT) are allowed; the database is read-only.');
  await refuseFileTables(db, names);
  let rows: Row[];
  try {
    rows = await queryRows(db, `SELECT * FROM (\n${sql}\n) LIMIT ${request.limit + 1} OFFSET ${request.offset}`);
  } catch (e) {
    if (e instanceof Problem && /no such (table|column)/.test(e.message)) throw await withTables(db, e);
    throw e;
  }
  const more = rows.length > request.limit;
  rows = rows.slice(0, request.limit);
  if (request.outputPath) return saveItems(db, request, rows, more ? `there are more than ${request.limit}` : 'all of them');
  if (request.json) return answer(db, JSON.stringify(rows, null, 2));
  if (rows.length === 0) return answer(db, 'No results.');
  const next = more ? `\n\nMore: call again with offset ${request.offset + rows.length}.` : '';
  const lines = rows.map((row, i) => `${request.offset + i + 1}. ${rowLine(row)}`);
  return answer(db, `${rows.length} results:\n\n${lines.join('\n')}${next}`);
}

async function withTables(db: Db, problem: Problem): Promise<Problem> {
  const tables = await readTables(db);
  const lines = tables.map((table) => `  ${table.name}: ${table.columns.join(', ')}`);
  return new Problem(`${problem.message}\n\nThe tables and their columns:\n${lines.join('\n')}`);
}

// ---- results -----------------------------------------------------------------------------------

type Message = {
  id: string;
  thread_id?: string;
  date?: string;
  from: string;
  to?: string;
  cc?: string;
  subject: string;
  labels: string[];
  unread?: boolean;
  attachments?: number;
  snippet?: string;
  body?: string;
  html?: string;
  files?: Row[];
};

function isoDate(epoch: unknown): string | undefined {
  if (epoch === null || epoch === undefined) return undefined;
  const date = new Date(Number(epoch) * 1000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().replace('.000Z', 'Z');
}

/** A list that is stored as a JSON array or as text with commas. */
function splitList(value: unknown): string[] {
  const text = value === null || value === undefined ? '' : String(value);
  if (text.startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(text);
      if (Array.isArray(parsed)) return parsed.map((item) => (typeof item === 'string' ? item : JSON.stringify(item)));
    } catch {
      // Not JSON after all: text with commas.
    }
  }
  return text.split(',').map((item) => item.trim()).filter(Boolean);
}

function toMessage(row: Row): Message {
  const text = (value: unknown): string | undefined => (value === null || value === undefined ? undefined : String(value));
  const address = text(row.from_address) ?? '';
  const listText = (value: unknown): string | undefined => splitList(value).join(', ') || undefined;
  return {
    id: String(row.id),
    thread_id: text(row.thread_id),
    date: isoDate(row.epoch) ?? text(row.raw_date),
    from: row.from_name ? `${row.from_name} <${address}>` : address,
    to: listText(row.to_list),
    cc: listText(row.cc_list),
    subject: text(row.subject) ?? '',
    labels: splitList(row.labels),
    unread: row.unread === null ? undefined : Boolean(row.unread),
    attachments: row.files === null ? undefined : Number(row.files),
    snippet: text(row.snippet),
    body: text(row.body),
    html: text(row.html),
  };
}

function oneLine(value: unknown, max: number): string {
  const text = String(value ?? '').replace(/\s+/g, ' ').trim();
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

function rowLine(row: Row): string {
  return Object.entries(row).map(([column, value]) => `${column}: ${oneLine(value, 500)}`).join(' | ');
}

function describe(message: Message, number: number): string {
  const marks = [
    message.unread ? 'unread' : '',
    message.attachments ? `${message.attachments} attachment${message.attachments > 1 ? 's' : ''}` : '',
    message.labels.length ? `labels ${message.labels.join(', ')}` : '',
  ].filter(Boolean);
  const lines = [
    `${number}. ${oneLine(message.subject, 300) || '(no subject)'}`,
    `   ${message.date ?? 'no date'} from ${oneLine(message.from, 200)}${message.to ? ` to ${oneLine(message.to, 200)}` : ''}`,
    marks.length ? `   ${oneLine(marks.join('; '), 300)}` : '',
    message.snippet ? `   ${oneLine(message.snippet, 300)}` : '',
    `   id ${message.id}${message.thread_id ? `, thread ${message.thread_id}` : ''}`,
  ];
  return lines.filter(Boolean).join('\n');
}

function showWhole(message: Message): string {
  const body = message.body?.trim() ? message.body : htmlToText(message.html ?? '');
  const files = message.files?.map((file) => `  ${file.filename} (${file.type ?? 'unknown type'}, ${file.size ?? '?'} bytes)`) ?? [];
  const lines = [
    `Subject: ${message.subject}`,
    `From: ${message.from}`,
    message.to ? `To: ${message.to}` : '',
    message.cc ? `Cc: ${message.cc}` : '',
    `Date: ${message.date ?? 'unknown'}`,
    message.labels.length ? `Labels: ${message.labels.join(', ')}` : '',
    `Id: ${message.id}${message.thread_id ? `, thread ${message.thread_id}` : ''}${message.unread ? ', unread' : ''}`,
    ...(files.length ? ['Attachments:', ...files] : []),
  ];
  return `${lines.filter(Boolean).join('\n')}\n\n${body.trim() || '(no text)'}`;
}

/** Where the text goes on behind a tag: of what is no text, behind its end; -1: nowhere. Looks at each character once. */
function behindTag(source: string, open: number, tag: string): number {
  if (tag === '!--') {
    const end = source.indexOf('-->', open);
    return end < 0 ? -1 : end + 3;
  }
  let from = open;
  if (tag === 'script' || tag === 'style' || tag === 'head') {
    const closing = new RegExp(`</${tag}\\b`, 'gi');
    closing.lastIndex = open;
    from = closing.exec(source)?.index ?? source.length;
  }
  return source.indexOf('>', from) + 1 || -1;
}

/** HTML as plain text, in one pass over at most 2 million characters. */
function htmlToText(html: string): string {
  const source = html.slice(0, 2_000_000);
  let text = '';
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf('<', at);
    text += source.slice(at, open < 0 ? undefined : open);
    if (open < 0) break;
    const tag = /^<(\/?[a-z][a-z0-9]*|!--)/i.exec(source.slice(open, open + 20))?.[1].toLowerCase();
    if (tag === undefined) {
      text += '<';
      at = open + 1;
      continue;
    }
    at = behindTag(source, open, tag);
    if (at < 0) break;
    if (/^\/?(p|div|tr|table|ul|ol|h[1-6]|blockquote)$/.test(tag) || tag === 'br') text += '\n';
    if (tag === 'li') text += '\n- ';
    if (tag === 'td' || tag === 'th') text += ' ';
  }
  const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', euro: '€', auml: 'ä', ouml: 'ö', uuml: 'ü', szlig: 'ß', Auml: 'Ä', Ouml: 'Ö', Uuml: 'Ü' };
  const decoded = text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : hex ? parseInt(hex, 16) : undefined;
    if (code === undefined) return named[name] ?? whole;
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
  return decoded.replace(/[ \t\r\f]+/g, ' ').replace(/ ?\n ?/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
}

function answer(db: Db, text: string): ToolResult {
  return ok(db.notes.length ? `${capText(text)}\n\n${db.notes.join('\n')}` : capText(text));
}

function saveItems(db: Db, request: Request, items: unknown, remark: string): ToolResult {
  const path = request.outputPath!;
  const target = statSync(path, { throwIfNoEntry: false });
  for (const own of [db.path, `${db.path}-wal`, `${db.path}-shm`, `${db.path}-journal`]) {
    const info = statSync(own, { throwIfNoEntry: false });
    if (path === own || (target && info && target.ino === info.ino && target.dev === info.dev)) {
      throw new Problem('output_path is the email database itself; choose another file.');
    }
  }
  const count = Array.isArray(items) ? items.length : 1;
  return answer(db, `${count} items saved to ${saveFile(path, `${JSON.stringify(items, null, 2)}\n`)}; ${remark}.`);
}

// ---- entry -------------------------------------------------------------------------------------

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const wanted = asChoice('action', params?.action, ACTIONS);
    if (wanted === undefined) throw new Problem(`action parameter is required. Available: ${ACTIONS.join(', ')}.`);
    const request = readRequest(params);
    requireCommands(['sqlite3'], 'sqlite3');
    const db = openDb(signal);
    report(onUpdate, `Reading ${db.path}...`);
    if (wanted === 'stats') return await stats(db, request);
    if (wanted === 'schema') return await schema(db, request);
    if (wanted === 'search') return await search(db, request);
    if (wanted === 'read') return await read(db, request);
    if (wanted === 'thread') return await thread(db, request);
    return await query(db, request);
  } catch (e) {
    return failure('Database error', e);
  }
}
