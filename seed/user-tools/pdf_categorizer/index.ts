// Sort PDF files into category folders by their text, with a preview, a journal and undo.

import { execSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync, constants, copyFileSync, createReadStream, existsSync, fsyncSync, linkSync, lstatSync, mkdirSync, mkdtempSync,
  openSync, readdirSync, readFileSync, readSync, realpathSync, renameSync, rmdirSync, rmSync, statSync, unlinkSync, utimesSync,
  writeFileSync, writeSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { createContext, Script } from 'node:vm';

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

const ACTIONS = ['scan', 'plan', 'apply', 'undo', 'rules'] as const;
/** Holds rules.json and the journals; lies in the directory and in the target. */
const OWN_FOLDER = '.pdf_categorizer';
const FILES_MAX = 5_000;
const TEXT_READ_MAX = 200_000;

type Params = {
  action: string;
  directory?: string;
  target?: string;
  rules_path?: string;
  recursive?: boolean;
  mode?: string;
  rename?: boolean;
  min_score?: number;
  ocr?: boolean;
  undo_id?: string;
  output_path?: string;
};

type Request = {
  directory?: string;
  target?: string;
  rulesPath?: string;
  recursive: boolean;
  copy: boolean;
  rename: boolean;
  minScore: number;
  ocr: boolean;
  undoId?: string;
  outputPath?: string;
};

function readRequest(params: Params): Request {
  const { recursive = false, mode = 'move', rename = false, min_score = 2, ocr = false } = params;
  const path = (name: string, value: unknown): string | undefined => {
    const text = asText(name, value);
    return text && userPath(text);
  };
  return {
    directory: path('directory', params.directory),
    target: path('target', params.target),
    rulesPath: path('rules_path', params.rules_path),
    recursive: asBoolean('recursive', recursive) ?? false,
    copy: asChoice('mode', mode, ['move', 'copy']) === 'copy',
    rename: asBoolean('rename', rename) ?? false,
    minScore: asNumber('min_score', min_score, 0, 1000) ?? 2,
    ocr: asBoolean('ocr', ocr) ?? false,
    undoId: asText('undo_id', params.undo_id),
    outputPath: path('output_path', params.output_path),
  };
}

/** What a call works with: both directories with their links resolved. */
type Job = { request: Request; directory: string; target: string; rules: Rules; signal?: AbortSignal; onUpdate?: OnUpdate };

function realDirectory(name: string, path: string): string {
  const info = statSync(path, { throwIfNoEntry: false });
  if (!info) throw new Problem(`${name} not found: ${path}.`);
  if (!info.isDirectory()) throw new Problem(`${name} is not a directory: ${path}.`);
  return realpathSync(path);
}

function openJob(request: Request, signal: AbortSignal | undefined, onUpdate: OnUpdate | undefined): Job {
  if (!request.directory) throw new Problem('directory parameter is required: the folder with the PDF files.');
  const directory = realDirectory('directory', request.directory);
  const wanted = request.target ?? directory;
  const target = existsSync(wanted) ? realDirectory('target', wanted) : wanted;
  return { request, directory, target, rules: loadRules(request, directory), signal, onUpdate };
}

// ---- rules ------------------------------------------------------------------------------------

type Weights = Map<string, number>;
type Category = {
  name: string;
  folder: string;
  keywords: Weights;
  filename: Weights;
  author: Weights;
  exclude: string[];
  regex: RegExp[];
};
type Rules = { source: string; categories: Category[]; fallback: string };

/** Built-in rules: English and German words with their weights; three hits of a word count at most. */
const BUILT_IN = {
  default: 'Uncategorized',
  categories: [
    {
      name: 'Invoices',
      keywords: {
        invoice: 3, 'invoice number': 2, 'invoice date': 2, 'amount due': 2, 'bill to': 2, 'due date': 1, 'payment terms': 1, vat: 1,
        rechnung: 3, rechnungsnummer: 2, rechnungsdatum: 2, rechnungsbetrag: 2, zahlbar: 1, mwst: 1, umsatzsteuer: 1, kundennummer: 1,
      },
      filename: { invoice: 2, inv: 2, rechnung: 2 },
      exclude: ['quotation', 'angebotsnummer'],
    },
    {
      name: 'Receipts',
      keywords: {
        receipt: 3, 'thank you for your purchase': 3, 'payment received': 2, 'card payment': 2, subtotal: 1, change: 1, cashier: 2,
        quittung: 3, kassenbon: 3, kassenbeleg: 3, beleg: 1, bar: 1, kartenzahlung: 2, 'vielen dank fur ihren einkauf': 3,
      },
      filename: { receipt: 2, quittung: 2, beleg: 2 },
    },
    {
      name: 'Contracts',
      keywords: {
        contract: 3, agreement: 3, 'hereinafter': 2, 'the parties': 2, party: 1, 'governing law': 2, termination: 1, 'in witness whereof': 3,
        vertrag: 3, vereinbarung: 2, vertragspartner: 2, kundigungsfrist: 2, kundigung: 1, mietvertrag: 4, arbeitsvertrag: 4, vertragsparteien: 2,
      },
      filename: { contract: 2, agreement: 2, vertrag: 2 },
    },
    {
      name: 'Bank statements',
      keywords: {
        'bank statement': 4, 'account statement': 3, 'opening balance': 3, 'closing balance': 3, 'account number': 1, iban: 1, balance: 1,
        kontoauszug: 4, 'alter kontostand': 3, 'neuer kontostand': 3, kontostand: 2, buchungstag: 2, wertstellung: 2, saldo: 1,
      },
      filename: { statement: 2, kontoauszug: 3 },
    },
    {
      name: 'Tax',
      keywords: {
        'tax return': 4, 'income tax': 3, 'tax year': 3, 'tax office': 3, 'taxable income': 3, hmrc: 2, irs: 2, tax: 1,
        steuerbescheid: 4, einkommensteuer: 3, steuererklarung: 4, finanzamt: 3, steuernummer: 1, veranlagungszeitraum: 3, lohnsteuerbescheinigung: 4,
      },
      filename: { tax: 2, steuer: 2, steuerbescheid: 3 },
    },
    {
      name: 'Insurance',
      keywords: {
        insurance: 3, 'policy number': 3, policyholder: 3, premium: 2, coverage: 1, insured: 2, 'insurance claim': 2, deductible: 1,
        versicherung: 3, versicherungsschein: 4, versicherungsnummer: 3, versicherungsnehmer: 3, beitrag: 1, police: 1, schadenfall: 2,
      },
      filename: { insurance: 2, policy: 1, versicherung: 2 },
    },
    {
      name: 'Payslips',
      keywords: {
        payslip: 4, 'pay slip': 4, 'gross pay': 3, 'net pay': 3, 'pay period': 3, 'year to date': 1, salary: 2, deductions: 1,
        gehaltsabrechnung: 4, lohnabrechnung: 4, entgeltabrechnung: 4, bruttolohn: 3, nettolohn: 3, auszahlungsbetrag: 2, sozialversicherung: 1,
      },
      filename: { payslip: 3, gehaltsabrechnung: 3, lohnabrechnung: 3 },
    },
    {
      name: 'Medical',
      keywords: {
        patient: 3, diagnosis: 3, prescription: 3, physician: 2, hospital: 2, 'laboratory results': 3, 'medical report': 4, treatment: 1, clinic: 1,
        diagnose: 3, arztbrief: 4, befund: 3, rezept: 2, krankenhaus: 2, behandlung: 1, laborwerte: 3, uberweisungsschein: 2,
      },
      filename: { medical: 2, befund: 2, arztbrief: 3, prescription: 2 },
    },
    {
      name: 'Travel',
      keywords: {
        itinerary: 4, 'boarding pass': 4, 'booking reference': 2, flight: 2, departure: 2, arrival: 1, 'check in': 1, hotel: 2, passenger: 2, 'e ticket': 3,
        reiseplan: 4, bordkarte: 4, buchungsnummer: 2, flug: 2, abflug: 2, ankunft: 1, fahrkarte: 3, reisende: 2, reservierung: 1, abfahrt: 2,
      },
      filename: { ticket: 2, itinerary: 3, 'boarding': 2, reise: 2 },
    },
    {
      name: 'Manuals',
      keywords: {
        'user manual': 4, 'instruction manual': 4, 'user guide': 4, 'quick start': 3, 'safety instructions': 3, troubleshooting: 2, installation: 1, warranty: 1,
        bedienungsanleitung: 4, gebrauchsanleitung: 4, benutzerhandbuch: 4, sicherheitshinweise: 3, inbetriebnahme: 2, fehlerbehebung: 2,
      },
      filename: { manual: 3, guide: 2, handbuch: 3, anleitung: 3 },
    },
    {
      name: 'Academic papers',
      keywords: {
        abstract: 3, references: 2, doi: 2, 'et al': 2, introduction: 1, 'related work': 3, arxiv: 3, keywords: 1, university: 1, conclusion: 1,
        zusammenfassung: 1, literaturverzeichnis: 3, universitat: 1, masterarbeit: 3, bachelorarbeit: 3, dissertation: 3,
      },
      filename: { paper: 2, thesis: 3, arxiv: 3 },
    },
    {
      name: 'Resumes',
      keywords: {
        resume: 3, 'curriculum vitae': 4, 'work experience': 3, 'professional experience': 3, education: 1, skills: 2, 'references available': 2,
        lebenslauf: 4, berufserfahrung: 3, kenntnisse: 2, schulbildung: 2, 'beruflicher werdegang': 3,
      },
      filename: { cv: 3, resume: 3, lebenslauf: 3 },
    },
    {
      name: 'Letters',
      keywords: {
        'dear sir': 2, 'dear madam': 2, dear: 2, sincerely: 2, 'yours sincerely': 2, 'yours faithfully': 3, 'kind regards': 2, 'best regards': 1,
        'sehr geehrte': 3, 'sehr geehrter': 3, 'mit freundlichen grussen': 2, 'liebe grusse': 1, betreff: 1,
      },
      filename: { letter: 2, brief: 2 },
    },
  ],
};

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Text as it is compared: without accents and case, words parted by one blank, a blank at both ends. */
function asWords(text: string): string {
  const plain = text.normalize('NFKD').replace(/\p{M}+/gu, '').toLowerCase().replaceAll('ß', 'ss');
  return ` ${plain.replace(/[^\p{L}\p{N}]+/gu, ' ').trim()} `;
}

function readWeights(value: unknown, where: string): Weights {
  if (value === undefined) return new Map();
  if (!isObject(value)) throw new Problem(`${where} must be an object of words and weights, such as {"invoice": 3}.`);
  return new Map(
    Object.entries(value).map(([word, weight]) => {
      if (asWords(word).trim() === '') throw new Problem(`${where} has a word without letters or digits: ${JSON.stringify(word)}.`);
      if (typeof weight !== 'number' || !Number.isFinite(weight)) throw new Problem(`${where}["${word}"] must be a number.`);
      return [asWords(word), weight];
    }),
  );
}

function readStrings(value: unknown, where: string): string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  throw new Problem(`${where} must be a list of strings.`);
}

/** A folder's name is one plain path component, so that nothing can leave the target. */
function readFolder(folder: string, where: string): string {
  const bad = folder !== folder.trim() || /[/\\\0-\x1f]/.test(folder) || folder.startsWith('.') || Buffer.byteLength(folder) > 200;
  if (bad || folder === '') throw new Problem(`${where} must be one plain folder name (no "/", no leading "."): ${JSON.stringify(folder.slice(0, 80))}.`);
  return folder;
}

function readRegex(source: string, where: string): RegExp {
  try {
    return new RegExp(source, 'iu');
  } catch (e) {
    throw new Problem(`${where} is not a valid regular expression: ${e instanceof Error ? e.message : String(e)}.`);
  }
}

function readCategory(value: unknown, where: string): Category {
  if (!isObject(value)) throw new Problem(`${where} must be an object.`);
  const fields = ['name', 'folder', 'keywords', 'regex', 'exclude', 'filename', 'author'];
  const unknown = Object.keys(value).find((field) => !fields.includes(field));
  if (unknown !== undefined) throw new Problem(`${where} has an unknown field "${unknown}". Known: ${fields.join(', ')}.`);
  const { name, folder = name } = value;
  if (typeof name !== 'string' || name === '') throw new Problem(`${where}.name must be a text.`);
  if (typeof folder !== 'string') throw new Problem(`${where}.folder must be a text.`);
  return {
    name,
    folder: readFolder(folder, `${where}.folder`),
    keywords: readWeights(value.keywords, `${where}.keywords`),
    filename: readWeights(value.filename, `${where}.filename`),
    author: readWeights(value.author, `${where}.author`),
    exclude: readStrings(value.exclude, `${where}.exclude`).map(asWords),
    regex: readStrings(value.regex, `${where}.regex`).map((source, i) => readRegex(source, `${where}.regex[${i}]`)),
  };
}

function readRules(value: unknown, source: string): Rules {
  if (!isObject(value)) throw new Problem(`${source}: must be an object with "categories".`);
  const { categories, default: fallback = 'Uncategorized' } = value;
  if (!Array.isArray(categories) || categories.length === 0) throw new Problem(`${source}: categories must be a list that is not empty.`);
  if (typeof fallback !== 'string' || fallback === '') throw new Problem(`${source}: default must be a text.`);
  const read = categories.map((category, i) => readCategory(category, `${source}: categories[${i}]`));
  const twice = read.find((category, i) => read.findIndex((other) => other.name === category.name) < i);
  if (twice) throw new Problem(`${source}: two categories are called "${twice.name}".`);
  return { source, categories: read, fallback };
}

function loadRules(request: Request, directory: string | undefined): Rules {
  const own = directory && join(directory, OWN_FOLDER, 'rules.json');
  const path = request.rulesPath ?? (own && existsSync(own) ? own : undefined);
  if (!path) return readRules(BUILT_IN, 'built-in rules');
  const info = statSync(path, { throwIfNoEntry: false });
  if (!info?.isFile()) throw new Problem(`rules file not found: ${path}.`);
  if (info.size > 1_000_000) throw new Problem(`rules file is larger than 1 MB: ${path}.`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, 'utf8').replace(/^\uFEFF/, ''));
  } catch (e) {
    throw new Problem(`${path} is not valid JSON: ${e instanceof Error ? e.message : String(e)}.`);
  }
  return readRules(parsed, path);
}

// ---- finding and reading PDFs -----------------------------------------------------------------

type Pdf = {
  path: string;
  size: number;
  modified: Date;
  pages?: number;
  title?: string;
  author?: string;
  created?: string;
  encrypted?: boolean;
  text: string;
  textFrom: 'pdf' | 'ocr' | 'none';
  /** Why the file cannot be read; then it stays where it is. */
  fault?: string;
};

/** The regular files named *.pdf, in order; links are never followed, hidden folders are left out. */
function findPdfs(job: Job): string[] {
  const { directory, target, rules, request } = job;
  const categoryFolders = new Set(rules.categories.map((category) => join(target, category.folder)));
  const found: string[] = [];
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isFile() && /\.pdf$/i.test(entry.name)) found.push(path);
      if (found.length > FILES_MAX) throw new Problem(`More than ${FILES_MAX} PDF files below ${directory}. Choose a smaller directory.`);
      if (!request.recursive || !entry.isDirectory() || entry.name.startsWith('.') || categoryFolders.has(path)) continue;
      walk(path);
    }
  };
  walk(directory);
  return found;
}

function hasPdfMagic(path: string): boolean {
  const fd = openSync(path, 'r');
  try {
    const start = Buffer.alloc(1024);
    const size = readSync(fd, start, 0, start.length, 0);
    return start.subarray(0, size).includes('%PDF-');
  } finally {
    closeSync(fd);
  }
}

function popplerFault(stderr: string): string {
  if (/Incorrect password/i.test(stderr)) return 'encrypted with a password';
  const reason = lastLines(stderr, 1).replace(/^(Syntax|Internal|I\/O|Command Line) (Error|Warning)( \(\d+\))?: /, '');
  return `damaged or no PDF (${reason || 'poppler gave no reason'})`;
}

async function ocrFirstPage(path: string, signal: AbortSignal | undefined): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'pdf-categorizer-'));
  try {
    const args = ['-r', '200', '-gray', '-png', '-f', '1', '-l', '1', '-singlefile', path, join(folder, 'page')];
    const image = join(folder, 'page.png');
    const drawn = await run('pdftoppm', args, { timeoutMs: 60_000, signal });
    if (drawn.code !== 0 || !existsSync(image)) return '';
    const { stdout } = await run('tesseract', [image, 'stdout', '-l', await ocrLanguages(signal)], { timeoutMs: 120_000, signal });
    return stdout.toString('utf8');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** German too, where tesseract has it: the built-in rules know both languages. */
async function ocrLanguages(signal: AbortSignal | undefined): Promise<string> {
  const { stdout } = await run('tesseract', ['--list-langs'], { timeoutMs: 30_000, signal });
  return /^deu$/m.test(stdout.toString('utf8')) ? 'eng+deu' : 'eng';
}

async function readPdf(path: string, job: Job): Promise<Pdf> {
  const { signal } = job;
  const info = statSync(path);
  const pdf: Pdf = { path, size: info.size, modified: info.mtime, text: '', textFrom: 'none' };
  if (!hasPdfMagic(path)) return { ...pdf, fault: 'not a PDF file (it does not begin with %PDF-)' };
  const head = await run('pdfinfo', ['-isodates', '-enc', 'UTF-8', path], { timeoutMs: 30_000, signal });
  if (head.stopped) return { ...pdf, fault: 'pdfinfo took too long' };
  if (head.code !== 0) return { ...pdf, fault: popplerFault(head.stderr) };
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(head.stdout.toString('utf8'))?.[1].trim() || undefined;
  pdf.pages = Number(field('Pages') ?? 0);
  pdf.title = field('Title');
  pdf.author = field('Author');
  pdf.created = field('CreationDate');
  pdf.encrypted = field('Encrypted')?.startsWith('yes') ?? false;
  const args = ['-l', '3', '-layout', '-enc', 'UTF-8', path, '-'];
  const body = await run('pdftotext', args, { timeoutMs: 30_000, maxOutput: 4 * TEXT_READ_MAX, signal });
  if (body.stopped === 'timeout') return { ...pdf, fault: 'pdftotext took too long' };
  if (body.code !== 0 && !body.stopped) return { ...pdf, fault: popplerFault(body.stderr) };
  pdf.text = body.stdout.toString('utf8').slice(0, TEXT_READ_MAX);
  if (pdf.text.trim() !== '') pdf.textFrom = 'pdf';
  else if (job.request.ocr) {
    pdf.text = (await ocrFirstPage(path, signal)).slice(0, TEXT_READ_MAX);
    if (pdf.text.trim() !== '') pdf.textFrom = 'ocr';
  }
  return pdf;
}

async function readPdfs(job: Job): Promise<Pdf[]> {
  const paths = findPdfs(job);
  const pdfs: Pdf[] = [];
  let said = 0;
  for (const path of paths) {
    if (Date.now() - said > 1000) {
      said = Date.now();
      report(job.onUpdate, `Reading ${pdfs.length + 1} of ${paths.length}: ${shown(relative(job.directory, path))}`);
    }
    try {
      pdfs.push(await readPdf(path, job));
    } catch (e) {
      if (job.signal?.aborted || (e instanceof Problem && e.message.startsWith('Cannot run'))) throw e;
      // It vanished or may not be read: one file's trouble must not end the run.
      const fault = e instanceof Error ? e.message : String(e);
      pdfs.push({ path, size: 0, modified: new Date(0), text: '', textFrom: 'none', fault });
    }
  }
  return pdfs;
}

// ---- scoring ----------------------------------------------------------------------------------

type Verdict = { category?: Category; score: number; reasons: string[]; best?: string };

function countHits(words: string, word: string): number {
  let hits = 0;
  // The blank at the end of one hit may begin the next.
  for (let at = words.indexOf(word); at >= 0 && hits < 3; at = words.indexOf(word, at + word.length - 1)) hits++;
  return hits;
}

const SLOW_REGEX_MS = 250;
const regexTest = new Script('regex.test(text)');

/** Test a regular expression of the user's for a limited time; undefined when that ran out. */
function testRegex(regex: RegExp, text: string): boolean | undefined {
  try {
    return Boolean(regexTest.runInContext(createContext({ regex, text }), { timeout: SLOW_REGEX_MS }));
  } catch {
    return undefined;
  }
}

function judge(pdf: Pdf, job: Job, slow: Set<RegExp>): Verdict {
  const body = asWords(pdf.text);
  const lines = pdf.text.split('\n').filter((line) => line.trim() !== '').slice(0, 5);
  const head = asWords(`${pdf.title ?? ''} \n ${lines.join(' \n ')}`);
  const name = asWords(basename(pdf.path).replace(/\.pdf$/i, ''));
  const author = asWords(pdf.author ?? '');
  const ranked: Verdict[] = [];
  for (const category of job.rules.categories) {
    if (category.exclude.some((word) => countHits(body, word) > 0)) continue;
    const verdict = { category, score: 0, reasons: [] as string[] };
    const add = (points: number, reason: string): void => {
      verdict.score += points;
      verdict.reasons.push(reason);
    };
    for (const [word, weight] of category.keywords) {
      const inHead = countHits(head, word) > 0;
      const hits = Math.max(countHits(body, word), inHead ? 1 : 0);
      if (hits > 0) add(weight * hits * (inHead ? 2 : 1), `${word.trim()} ×${hits}${inHead ? ' (at the top)' : ''}`);
    }
    for (const [word, weight] of category.filename) if (countHits(name, word) > 0) add(weight, `file name "${word.trim()}"`);
    for (const [word, weight] of category.author) if (countHits(author, word) > 0) add(weight, `author "${word.trim()}"`);
    for (const regex of category.regex) {
      const matches = slow.has(regex) ? false : testRegex(regex, pdf.text);
      if (matches === undefined) slow.add(regex);
      if (matches) add(2, `/${regex.source}/`);
    }
    if (verdict.score > 0) ranked.push(verdict);
  }
  ranked.sort((a, b) => b.score - a.score);
  const [best] = ranked;
  if (best && best.score >= job.request.minScore) return best;
  return { score: best?.score ?? 0, reasons: best?.reasons ?? [], best: best?.category?.name };
}

// ---- planning ---------------------------------------------------------------------------------

type Step = { pdf: Pdf; verdict: Verdict; to?: string };
type Plan = { steps: Step[]; notes: string[] };

/** `2025-03-01_Invoices_Some title.pdf`, from the document's own title and date. */
function newName(pdf: Pdf, category: Category): string {
  const firstLine = pdf.text.split('\n').find((line) => asWords(line).trim().length >= 3);
  const clean = (text: string): string => text.normalize('NFC').replace(/[^\p{L}\p{M}\p{N} ._-]+/gu, ' ').replace(/\s+/g, ' ').trim();
  const title = clean(pdf.title ?? firstLine ?? basename(pdf.path).replace(/\.pdf$/i, '')).replace(/^[. ]+/, '');
  const day = /^\d{4}-\d{2}-\d{2}/.exec(pdf.created ?? '')?.[0] ?? pdf.modified.toISOString().slice(0, 10);
  return `${day}_${clean(category.folder)}_${[...title].slice(0, 60).join('').trim() || 'document'}.pdf`;
}

/** The first of `name.pdf`, `name (2).pdf`, ... that is free. */
function freePath(folder: string, name: string, taken: Set<string>): string {
  const stem = name.replace(/\.pdf$/i, '');
  const ending = name.slice(stem.length);
  for (let number = 1; ; number++) {
    const path = join(folder, number === 1 ? name : `${stem} (${number})${ending}`);
    if (!taken.has(path) && !lstatSync(path, { throwIfNoEntry: false })) return path;
  }
}

/** Why nothing may be put into a category's folder: it is a link or a file. */
function folderFault(folder: string): string | undefined {
  const info = lstatSync(folder, { throwIfNoEntry: false });
  if (!info || info.isDirectory()) return undefined;
  return info.isSymbolicLink() ? 'is a symbolic link' : 'is not a directory';
}

async function makePlan(job: Job): Promise<Plan> {
  const { request, target } = job;
  const slow = new Set<RegExp>();
  const taken = new Set<string>();
  const blocked = new Set<string>();
  const steps: Step[] = [];
  for (const pdf of await readPdfs(job)) {
    if (pdf.fault) {
      steps.push({ pdf, verdict: { score: 0, reasons: [] } });
      continue;
    }
    const verdict = judge(pdf, job, slow);
    const { category } = verdict;
    const folder = category && join(target, category.folder);
    const fault = folder && folderFault(folder);
    if (folder && fault) blocked.add(`Note: ${folder} ${fault}; its files stay where they are.`);
    if (!category || !folder || fault || dirname(pdf.path) === folder) {
      steps.push({ pdf, verdict });
      continue;
    }
    const name = request.rename ? newName(pdf, category) : basename(pdf.path);
    const same = join(folder, name);
    if (request.copy && existsSync(same) && (await hashFile(same)) === (await hashFile(pdf.path))) {
      steps.push({ pdf, verdict: { ...verdict, reasons: [...verdict.reasons, 'already copied'] } });
      continue;
    }
    const to = freePath(folder, name, taken);
    taken.add(to);
    steps.push({ pdf, verdict, to });
  }
  const slowNotes = [...slow].map((regex) => `Note: the regular expression /${regex.source}/ was too slow and left out.`);
  return { steps, notes: [...blocked, ...slowNotes] };
}

// ---- moving, with a journal ---------------------------------------------------------------------

/** `madeLevels`: how many directories were made for the target, it and those above it. */
type Header = { version: 1; id: string; directory: string; target: string; madeLevels: number };
/** Paths are relative: `from` to the directory, the others to the target. A line is on the disk before its deed is done. */
type Deed =
  | { op: 'mkdir'; path: string }
  | { op: 'move' | 'copy'; from: string; to: string; temporary: string; sha256: string };

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function errorCode(e: unknown): string {
  return (e as NodeJS.ErrnoException)?.code ?? '';
}

/** Rename that never replaces a file: by a second link where the file system has links. */
function renameInto(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (e) {
    if (!['EPERM', 'ENOSYS', 'EOPNOTSUPP', 'ENOTSUP', 'EMLINK', 'EACCES'].includes(errorCode(e))) throw e;
    if (lstatSync(to, { throwIfNoEntry: false })) throw new Problem(`${to} is there already.`);
    renameSync(from, to);
    return;
  }
  unlinkSync(from);
}

/** Copy to a temporary name, compare, then put it in place; a half copy never has the final name. */
async function copyInto(from: string, to: string, temporary: string, sha256: string): Promise<void> {
  try {
    copyFileSync(from, temporary, constants.COPYFILE_EXCL);
    if ((await hashFile(temporary)) !== sha256) throw new Problem(`The copy of ${from} differs from it.`);
    const { atime, mtime } = statSync(from);
    utimesSync(temporary, atime, mtime);
    renameInto(temporary, to);
  } catch (e) {
    rmSync(temporary, { force: true });
    throw e;
  }
}

async function moveInto(from: string, to: string, temporary: string, sha256: string): Promise<void> {
  try {
    renameInto(from, to);
  } catch (e) {
    if (errorCode(e) !== 'EXDEV') throw e;
    await copyInto(from, to, temporary, sha256);
    unlinkSync(from);
  }
}

class Journal {
  readonly path: string;
  readonly header: Header;
  private readonly fd: number;

  constructor(header: Header) {
    const folder = join(header.target, OWN_FOLDER);
    const fault = folderFault(folder);
    if (fault) throw new Problem(`${folder} ${fault}; remove it first.`);
    makeDirs(folder);
    this.header = header;
    this.path = join(folder, `journal-${header.id}.json`);
    this.fd = openSync(this.path, 'wx');
    this.write(header);
  }

  write(line: Header | Deed): void {
    writeSync(this.fd, `${JSON.stringify(line)}\n`);
    fsyncSync(this.fd);
  }

  close(): void {
    closeSync(this.fd);
  }
}

type Outcome = { journal: Journal; done: Step[]; failed: Array<{ step: Step; why: string }>; cancelled: boolean };

async function carryOut(job: Job, steps: Step[]): Promise<Outcome> {
  const { directory, target, request, signal } = job;
  const id = `${new Date().toISOString().replace(/[-:]|\.\d+Z$/g, '')}-${randomBytes(3).toString('hex')}`;
  let madeLevels = 0;
  for (let folder = target; !existsSync(folder); folder = dirname(folder)) madeLevels++;
  makeDirs(target);
  const outcome: Outcome = {
    journal: new Journal({ version: 1, id, directory, target: realpathSync(target), madeLevels }),
    done: [],
    failed: [],
    cancelled: false,
  };
  const { journal } = outcome;
  let said = 0;
  try {
    for (const [i, step] of steps.entries()) {
      if (signal?.aborted) {
        outcome.cancelled = true;
        break;
      }
      const { pdf, to } = step;
      if (!to) continue;
      try {
        const folder = dirname(to);
        if (!existsSync(folder)) {
          journal.write({ op: 'mkdir', path: relative(target, folder) });
          mkdirSync(folder);
        }
        const sha256 = await hashFile(pdf.path);
        const temporary = join(folder, `.${id}-${i}.tmp`);
        const deed = { from: relative(directory, pdf.path), to: relative(target, to), temporary: relative(target, temporary), sha256 };
        journal.write({ op: request.copy ? 'copy' : 'move', ...deed });
        if (request.copy) await copyInto(pdf.path, to, temporary, sha256);
        else await moveInto(pdf.path, to, temporary, sha256);
        outcome.done.push(step);
      } catch (e) {
        outcome.failed.push({ step, why: e instanceof Error ? e.message : String(e) });
      }
      if (Date.now() - said > 500) {
        said = Date.now();
        report(job.onUpdate, `${request.copy ? 'Copied' : 'Moved'} ${outcome.done.length} of ${steps.length} files`);
      }
    }
  } finally {
    journal.close();
  }
  return outcome;
}

// ---- undo -------------------------------------------------------------------------------------

/** Whether `path`, relative to a directory, stays below it, without any link on the way. */
function isBelow(root: string, path: unknown): path is string {
  if (typeof path !== 'string' || path === '' || path.includes('\0')) return false;
  const full = resolve(root, path);
  if (!full.startsWith(root.endsWith(sep) ? root : root + sep)) return false;
  for (let folder = dirname(full); folder.length > root.length; folder = dirname(folder)) {
    if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink()) return false;
  }
  return true;
}

function findJournal(target: string, undoId: string | undefined): string {
  const folder = join(target, OWN_FOLDER);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => /^journal-[\w-]+\.json$/.test(name)).sort() : [];
  const ids = names.map((name) => name.slice('journal-'.length, -'.json'.length));
  if (ids.length === 0) throw new Problem(`There is nothing to undo in ${target}: no journal in its ${OWN_FOLDER} folder.`);
  const id = undoId ?? ids.at(-1)!;
  if (!ids.includes(id)) throw new Problem(`No run with undo_id "${id.slice(0, 80)}" in ${target}. Available: ${ids.slice(-10).join(', ')}.`);
  return join(folder, `journal-${id}.json`);
}

/** The lines of a journal. A line cut short by a crash is the last one, and its deed was not done. */
function readJournal(path: string): { header: Header; deeds: Deed[] } {
  const lines: unknown[] = [];
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    try {
      if (line) lines.push(JSON.parse(line));
    } catch {
      break;
    }
  }
  const [header, ...deeds] = lines;
  if (!isObject(header) || header.version !== 1 || typeof header.directory !== 'string' || typeof header.target !== 'string' || !Number.isInteger(header.madeLevels)) {
    throw new Problem(`${path} is not a journal of this tool.`);
  }
  return { header: header as Header, deeds: deeds.filter(isObject) as Deed[] };
}

/** Take one deed back. Returns why it was left as it is, or undefined. */
async function undoDeed(deed: Deed, header: Header): Promise<string | undefined> {
  const { directory, target } = header;
  if (deed.op === 'mkdir') {
    if (!isBelow(target, deed.path)) return 'the journal names a folder outside the target';
    try {
      rmdirSync(join(target, deed.path));
    } catch (e) {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(e))) throw e;
    }
    return undefined;
  }
  if (!isBelow(target, deed.to) || !isBelow(target, deed.temporary) || !isBelow(directory, deed.from)) {
    return 'the journal names a path outside its directories';
  }
  const [from, to] = [resolve(directory, deed.from), resolve(target, deed.to)];
  const ours = /^\.\d{8}T\d{6}-[0-9a-f]{6}-\d+\.tmp$/.test(basename(deed.temporary));
  if (from === to || !ours || (deed.op !== 'move' && deed.op !== 'copy')) return 'the journal has a step that this tool never makes';
  rmSync(join(target, deed.temporary), { force: true });
  const there = lstatSync(to, { throwIfNoEntry: false });
  const origin = lstatSync(from, { throwIfNoEntry: false });
  if (!there) return origin ? undefined : `${deed.to} is gone`;
  if (!there.isFile() || (await hashFile(to)) !== deed.sha256) return `${deed.to} has changed since`;
  if (origin) {
    // A copy, or a move that was cut short after the second link or the copy was made.
    if (!origin.isFile() || (await hashFile(from)) !== deed.sha256) return `${deed.from} is taken by another file`;
    unlinkSync(to);
    return undefined;
  }
  if (deed.op === 'copy') return `the original ${deed.from} is gone, so its copy stays`;
  makeDirs(dirname(from));
  await moveInto(to, from, `${from}.undo.tmp`, deed.sha256);
  return undefined;
}

async function undo(request: Request, onUpdate: OnUpdate | undefined): Promise<ToolResult> {
  const given = request.target ?? request.directory;
  if (!given) throw new Problem('directory parameter is required for undo: the folder that was sorted (or target, if there was one).');
  const target = realDirectory(request.target ? 'target' : 'directory', given);
  const path = findJournal(target, request.undoId);
  const { header, deeds } = readJournal(path);
  const directory = request.directory ? realDirectory('directory', request.directory) : target;
  // The journal may have come with a folder from elsewhere: it gets no say in which directories are touched.
  if (header.target !== target || header.directory !== directory) {
    throw new Problem(
      `This run sorted ${header.directory} into ${header.target}. To undo it, give these as directory and target.`,
    );
  }
  report(onUpdate, `Undoing ${deeds.length} steps...`);
  const left: string[] = [];
  let back = 0;
  for (const deed of deeds.reverse()) {
    try {
      const why = await undoDeed(deed, header);
      if (why) left.push(why);
      else if (deed.op !== 'mkdir') back++;
    } catch (e) {
      left.push(`${deed.op === 'mkdir' ? deed.path : deed.to}: ${e instanceof Error ? e.message : String(e)}`);
    }
  }
  const summary = `Undone: ${back} files are back as they were before (${basename(path)}).`;
  if (left.length > 0) {
    return ok(capText(`${summary}\n${left.length} steps were left as they are; the journal is kept:\n${left.map((line) => `  ${shown(line)}`).join('\n')}`));
  }
  rmSync(path);
  removeIfEmpty(dirname(path));
  let folder = target;
  for (let level = 0; level < header.madeLevels && removeIfEmpty(folder); level++) folder = dirname(folder);
  return ok(summary);
}

function removeIfEmpty(folder: string): boolean {
  if (!existsSync(folder) || readdirSync(folder).length > 0) return false;
  rmdirSync(folder);
  return true;
}

// ---- answers ----------------------------------------------------------------------------------

/** A name on one line, whatever characters it has. */
function shown(name: string): string {
  return /[\x00-\x1f\x7f\u2028\u2029]/.test(name) ? JSON.stringify(name) : name;
}

function describeStep(step: Step, job: Job): string {
  const from = shown(relative(job.directory, step.pdf.path));
  const to = step.to ? ` → ${shown(relative(job.target, step.to))}` : '';
  return `  ${from}${to} (score ${step.verdict.score}: ${step.verdict.reasons.slice(0, 6).join(', ') || 'no known words'})`;
}

function describeSteps(steps: Step[], job: Job): string[] {
  const lines: string[] = [];
  const section = (title: string, part: Step[], line: (step: Step) => string): void => {
    if (part.length > 0) lines.push('', `${title} (${part.length}):`, ...part.map(line));
  };
  for (const category of job.rules.categories) {
    section(category.folder, steps.filter((step) => step.to && step.verdict.category === category), (step) => describeStep(step, job));
  }
  const staying = steps.filter((step) => !step.to && !step.pdf.fault);
  section('In place already', staying.filter((step) => step.verdict.category), (step) => describeStep(step, job));
  section(`${job.rules.fallback}, left in place`, staying.filter((step) => !step.verdict.category), (step) => {
    const best = step.verdict.best ? `nearest: ${step.verdict.best}; ` : '';
    const words = step.pdf.textFrom === 'none' ? 'no text; try ocr: true' : `score ${step.verdict.score}`;
    return `  ${shown(relative(job.directory, step.pdf.path))} (${best}${words})`;
  });
  section('Unreadable, left in place', steps.filter((step) => step.pdf.fault), (step) => {
    return `  ${shown(relative(job.directory, step.pdf.path))}: ${step.pdf.fault}`;
  });
  return lines;
}

function reportOf(steps: Step[], job: Job): unknown {
  return steps.map(({ pdf, verdict, to }) => ({
    file: relative(job.directory, pdf.path),
    to: to && relative(job.target, to),
    category: verdict.category?.name ?? (pdf.fault ? null : job.rules.fallback),
    score: verdict.score,
    reasons: verdict.reasons,
    unreadable: pdf.fault,
    pages: pdf.pages,
    title: pdf.title,
    author: pdf.author,
    created: pdf.created,
    text: pdf.textFrom,
    size: pdf.size,
  }));
}

/** The lines as the answer, or saved with the whole report. */
function answer(job: Job, heading: string, lines: string[], steps: Step[]): ToolResult {
  const path = job.request.outputPath;
  if (!path) return ok(capText([heading, ...lines].join('\n')));
  const saved = saveFile(path, `${JSON.stringify(reportOf(steps, job), null, 2)}\n`);
  return ok(`${heading}\n${steps.length} items saved to ${saved}.`);
}

async function scan(job: Job): Promise<ToolResult> {
  const steps = (await readPdfs(job)).map((pdf) => ({ pdf, verdict: { score: 0, reasons: [] } }));
  const lines = steps.map(({ pdf }) => {
    const name = shown(relative(job.directory, pdf.path));
    if (pdf.fault) return `  ${name}: ${pdf.fault}`;
    const facts = [
      `${pdf.pages} pages`,
      pdf.textFrom === 'none' ? 'no text' : pdf.textFrom === 'ocr' ? 'text by OCR' : 'text',
      pdf.title && `title "${shown(pdf.title)}"`,
      pdf.author && `author "${shown(pdf.author)}"`,
      pdf.created && `created ${pdf.created.slice(0, 10)}`,
      pdf.encrypted && 'encrypted, but readable',
    ];
    return `  ${name}: ${facts.filter(Boolean).join(', ')}`;
  });
  return answer(job, `${steps.length} PDF files in ${job.directory}:`, lines, steps);
}

async function plan(job: Job): Promise<ToolResult> {
  const { steps, notes } = await makePlan(job);
  const moving = steps.filter((step) => step.to).length;
  const verb = job.request.copy ? 'copied' : 'moved';
  const heading = `Plan only, nothing was changed: ${moving} of ${steps.length} PDF files would be ${verb} into folders of ${job.target} (${job.rules.source}).`;
  return answer(job, [heading, ...notes].join('\n'), describeSteps(steps, job), steps);
}

async function apply(job: Job): Promise<ToolResult> {
  const { steps, notes } = await makePlan(job);
  const moving = steps.filter((step) => step.to);
  if (moving.length === 0) return answer(job, [`Nothing to do for ${steps.length} PDF files.`, ...notes].join('\n'), describeSteps(steps, job), steps);
  const outcome = await carryOut(job, moving);
  const { id } = outcome.journal.header;
  const undoCall = JSON.stringify({
    action: 'undo',
    directory: job.directory,
    ...(outcome.journal.header.target === job.directory ? {} : { target: job.target }),
    undo_id: id,
  });
  const verb = job.request.copy ? 'copied' : 'moved';
  const heading = [
    `${outcome.done.length} of ${steps.length} PDF files ${verb} into folders of ${job.target}. To undo: ${undoCall}`,
    ...notes,
    ...outcome.failed.map(({ step, why }) => `Not ${verb}: ${shown(relative(job.directory, step.pdf.path))}: ${why}`),
  ].join('\n');
  if (outcome.cancelled) throw new Problem(`Cancelled. ${heading}`);
  const failed = new Set(outcome.failed.map(({ step }) => step));
  return answer(job, heading, describeSteps(steps.filter((step) => !failed.has(step)), job), steps);
}

function showRules(rules: Rules, request: Request): ToolResult {
  const weights = (map: Weights): string => [...map].map(([word, weight]) => `${word.trim()} ${weight}`).join(', ');
  const blocks = rules.categories.map((category) => {
    const lines = [
      `${category.name} → ${category.folder}/`,
      category.keywords.size ? `  keywords: ${weights(category.keywords)}` : '',
      category.filename.size ? `  file name: ${weights(category.filename)}` : '',
      category.author.size ? `  author: ${weights(category.author)}` : '',
      category.regex.length ? `  regex: ${category.regex.map((regex) => `/${regex.source}/`).join(', ')}` : '',
      category.exclude.length ? `  exclude: ${category.exclude.map((word) => word.trim()).join(', ')}` : '',
    ];
    return lines.filter(Boolean).join('\n');
  });
  if (request.outputPath && rules.source === 'built-in rules') {
    return ok(`The built-in rules as JSON, to edit, saved to ${saveFile(request.outputPath, `${JSON.stringify(BUILT_IN, null, 2)}\n`)}.`);
  }
  return ok(capText(`${rules.categories.length} valid categories (${rules.source}); else "${rules.fallback}".\n\n${blocks.join('\n\n')}`));
}

// ---- entry ------------------------------------------------------------------------------------

export async function execute(
  _toolCallId: string,
  params: Params,
  signal?: AbortSignal,
  onUpdate?: OnUpdate,
): Promise<ToolResult> {
  try {
    const action = asChoice('action', params?.action, ACTIONS);
    if (action === undefined) throw new Problem(`action parameter is required. Available: ${ACTIONS.join(', ')}.`);
    if (signal?.aborted) throw new Problem('Cancelled.');
    const request = readRequest(params);
    if (action === 'rules') {
      const directory = request.directory && realDirectory('directory', request.directory);
      return showRules(loadRules(request, directory), request);
    }
    if (action === 'undo') return await undo(request, onUpdate);
    requireCommands(['pdfinfo', 'pdftotext'], 'poppler-utils');
    if (request.ocr) {
      requireCommands(['pdftoppm'], 'poppler-utils');
      requireCommands(['tesseract'], 'tesseract-ocr');
    }
    const job = openJob(request, signal, onUpdate);
    report(onUpdate, `Reading the PDF files in ${job.directory}...`);
    if (action === 'scan') return await scan(job);
    return await (action === 'plan' ? plan(job) : apply(job));
  } catch (e) {
    return failure('PDF error', e);
  }
}
